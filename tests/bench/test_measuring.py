"""The rows beside the workloads: what they write and count is really there. No time is looked at."""

from __future__ import annotations

from pathlib import Path

import pytest
from bench.asking import Void
from bench.growth import deltas, journal, turns
from bench.memory import growth, in_fresh_process
from bench.storage import Appends, RawTable, full, normal, w2_events
from bench.timing import Effort

from flyball.core.events import Event
from flyball.runtime.sqlite import SQLiteJournal

ONCE = Effort(rounds=1, samples=1, sample_ns=1)


@pytest.fixture
async def events() -> list[Event]:
    return await w2_events()


async def test_the_journal_must_hold_what_was_appended(tmp_path: Path, events: list[Event]) -> None:
    async with SQLiteJournal(tmp_path / "journal.db", synchronous="normal") as kept:
        appends = Appends(kept, events)
        for _ in range(len(events) + 1):
            await appends.write()
        await appends.check(len(events) + 1)
        with pytest.raises(Void, match="holds 24 events, not the 25 that were appended"):
            await appends.check(len(events) + 2)
        with pytest.raises(Void, match="does not hold the events"):
            await Appends(kept, events[1:]).check(len(events) + 1)


async def test_the_raw_table_must_hold_what_was_inserted(tmp_path: Path, events: list[Event]) -> None:
    table = RawTable(tmp_path / "raw.db", "normal", events)
    await table.write()
    with pytest.raises(Void, match="holds 1 rows, not 2"):
        table.check(2)


async def test_both_kinds_of_commit_are_measured() -> None:
    for measure in (normal, full):
        figures = await measure(ONCE)
        assert figures.base > 0
        assert figures.flyball > 0


async def test_growth_is_measured_on_runs_that_are_proven() -> None:
    for measure in (turns, deltas):
        figures = await measure(ONCE)
        assert figures.unit == "ns"
        assert figures.base > 0
        assert figures.flyball > 0


async def test_the_journal_grows_with_the_turns_and_not_with_their_square() -> None:
    figures = await journal(ONCE)
    assert figures.base > 100
    assert figures.flyball / figures.base <= 1.1


@pytest.mark.slow
async def test_traced_memory_grows_while_the_runs_are_in_flight() -> None:
    assert await growth("flyball", "traced") > 1_000_000


@pytest.mark.slow
def test_the_resident_set_of_a_fresh_process_grows() -> None:
    assert in_fresh_process("flyball", "resident") > 1_000_000
