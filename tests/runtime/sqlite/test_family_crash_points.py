"""Processes with loops under others are killed before and after every append, and resumed each time."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from flyball.core.errors import CancelledSignal
from flyball.core.events import Ended, Event, Outcome
from flyball.orchestrate.machine import fold
from flyball.orchestrate.projections import normal_form
from flyball.runtime.sqlite import SQLiteJournal
from tests.runtime.sqlite.crash_child import LOOP, PROMPT, architect, boss
from tests.runtime.sqlite.test_crash_points import killed_at

ARCHITECT, BOSS = 14, 34
"""How many moments there are at the most before and after the appends of each family."""


def points(folder: Path, shape: str, most: int) -> list[Path]:
    """A folder for each moment, with what the process left there that was killed in it."""
    folders = [folder / str(point) for point in range(most + 1)]
    for one in folders:
        one.mkdir()
    killed = killed_at(folder, shape, len(folders))
    assert all(killed[:10])
    assert not killed[-1], "the points do not reach to the end"
    return folders


@pytest.mark.slow
def test_an_architect_killed_at_any_point_has_its_editor_begun_and_brought_to_its_end(tmp_path: Path) -> None:
    async def finish(folder: Path) -> list[list[Event]]:
        async with SQLiteJournal(folder / "runs.db") as journal:
            begun = bool(await journal.read(LOOP))
            running = (
                architect().resume(LOOP, journal)
                if begun
                else architect().run(PROMPT, journal=journal, loop_id=LOOP)
            )
            result = await running
            assert result.editor is not None
            assert (result.output, result.editor.output) == ("a plan", "built")
            assert len(await journal.loops()) == 2
            return [normal_form(await one.events()) for one in (result, result.editor)]

    ends = [asyncio.run(finish(folder)) for folder in points(tmp_path, "architect", ARCHITECT)]
    assert all(end == ends[-1] for end in ends)


@pytest.mark.slow
def test_a_family_killed_at_any_point_is_cancelled_to_the_last_of_it(tmp_path: Path) -> None:
    async def finish(folder: Path) -> None:
        async with SQLiteJournal(folder / "runs.db") as journal:
            begun = bool(await journal.read(LOOP))
            running = (
                boss().resume(LOOP, journal) if begun else boss().run(PROMPT, journal=journal, loop_id=LOOP)
            )
            with pytest.raises(CancelledSignal, match="enough"):
                await running
            loops = await journal.loops()
            assert len(loops) == 3
            for loop_id in loops:
                events = await journal.read(loop_id)
                state = fold(events)
                assert (state.at, state.outcome) == ("done", Outcome.CANCELLED), (folder.name, loop_id)
                assert sum(isinstance(event, Ended) for event in events) == 1

    for folder in points(tmp_path, "boss", BOSS):
        asyncio.run(finish(folder))
