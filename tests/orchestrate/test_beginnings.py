"""Loops that come into a journal are found once each, the oldest first, also where others were deleted."""

from __future__ import annotations

from pathlib import Path

import pytest

from flyball import Agent
from flyball.orchestrate.beginnings import Beginnings
from flyball.orchestrate.journal import Journal, MemoryJournal
from flyball.runtime.sqlite import SQLiteJournal
from flyball.testing import ScriptedEngine


async def begin(journal: Journal, *names: str) -> None:
    for name in names:
        await Agent(ScriptedEngine("Hello")).run("?", journal=journal, loop_id=name)


async def test_each_is_given_until_it_was_seen() -> None:
    journal = MemoryJournal()
    beginnings = Beginnings(journal)
    assert await beginnings.new() == []
    await begin(journal, "a", "b", "c")
    assert await beginnings.new() == ["a", "b", "c"]
    beginnings.seen("a")
    assert await beginnings.new() == ["b", "c"]
    beginnings.seen("b")
    beginnings.seen("c")
    await begin(journal, "d")
    assert await beginnings.new() == ["d"]


async def test_what_was_there_before_is_left_out_if_so_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("flyball.orchestrate.beginnings._AT_ONCE", 2)
    journal = MemoryJournal()
    await begin(journal, *[f"old-{n}" for n in range(5)])
    beginnings, all_of_them = Beginnings(journal), Beginnings(journal)
    await beginnings.skip()
    await begin(journal, *[f"new-{n}" for n in range(5)])
    assert await beginnings.new() == [f"new-{n}" for n in range(5)]
    assert len(await all_of_them.new()) == 10


async def test_one_that_was_deleted_is_no_landmark(tmp_path: Path) -> None:
    async with SQLiteJournal(tmp_path / "runs.db") as journal:
        await _look_after_deleting(journal)


async def _look_after_deleting(journal: SQLiteJournal) -> None:
    beginnings = Beginnings(journal)
    await begin(journal, "a", "b")
    for name in await beginnings.new():
        beginnings.seen(name)
    await journal.delete("b")
    await begin(journal, "c")
    assert await beginnings.new() == ["c"]
