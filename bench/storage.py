"""Appending to a SQLiteJournal, beside a raw INSERT and commit of the same bytes with the same pragmas.

The events are those of a run of W2, appended one by one, as a driver does it. The raw table has what any
journal must have, a key to find a loop's events by; it has no checksum, no check that the number is the next
one, and its bytes are there already. The journal must afterwards hold what was appended.
"""

from __future__ import annotations

import sqlite3
import tempfile
from collections.abc import Sequence
from itertools import count
from pathlib import Path
from time import perf_counter_ns, process_time_ns
from typing import Literal

import workloads as c

from bench.figures import Figures
from bench.flyball_peer import Peer
from bench.proof import Void, prove
from bench.runs import tool_proof
from bench.timing import Clock, Effort, in_turns
from flyball.core.codec import encode_event
from flyball.core.events import Event
from flyball.runtime.sqlite import SQLiteJournal

Synchronous = Literal["full", "normal"]


async def normal(effort: Effort) -> Figures:
    """Commits that survive a crash of the process: CPU time."""
    return await _measure("normal", effort, process_time_ns)


async def full(effort: Effort) -> Figures:
    """Commits that survive power loss: they wait for the disk, so it is the time on the wall that counts."""
    return await _measure("full", effort, perf_counter_ns)


async def _measure(synchronous: Synchronous, effort: Effort, clock: Clock) -> Figures:
    events = await w2_events()
    with tempfile.TemporaryDirectory(prefix="flyball-bench-") as folder:
        raw = RawTable(Path(folder) / "raw.db", synchronous, events)
        async with SQLiteJournal(Path(folder) / "journal.db", synchronous=synchronous) as journal:
            subject = Appends(journal, events)
            times = await in_turns([raw.write, subject.write], effort, clock)
            await subject.check(times[1].calls)
            raw.check(times[0].calls)
    return Figures(times[0].ns / len(events), times[1].ns / len(events))


async def w2_events() -> list[Event]:
    """The journal of a run of W2."""
    peer = Peer(c.TURNS)
    await peer.tools()
    await prove(peer.result, tool_proof(c.TURNS))
    assert peer.result is not None
    return await peer.result.events()


class Appends:
    """Appends a run's events to the journal, as another loop each time."""

    def __init__(self, journal: SQLiteJournal, events: Sequence[Event]) -> None:
        self._journal = journal
        self._events = events
        self._numbers = count()

    async def write(self) -> None:
        loop_id = f"{next(self._numbers):032x}"
        length = 0
        for event in self._events:
            length = await self._journal.append(loop_id, (event,), length)

    async def check(self, loops: int) -> None:
        """Read back what was written.

        Raises:
            Void: it is not there.
        """
        if len(await self._journal.loops()) != loops:
            raise Void(f"the journal does not hold the {loops} loops that were appended")
        for number in (0, loops - 1):
            if await self._journal.read(f"{number:032x}") != self._events:
                raise Void(f"the journal does not hold the events that were appended to loop {number}")


class RawTable:
    """The same bytes, written by hand."""

    def __init__(self, path: Path, synchronous: Synchronous, events: Sequence[Event]) -> None:
        self._bodies = [encode_event(event) for event in events]
        self._numbers = count()
        self._connection = sqlite3.connect(path, isolation_level=None)
        # The log is moved into the file after 1,000 pages, by SQLite here and by the journal's thread there.
        self._connection.execute("PRAGMA journal_mode = WAL")
        self._connection.execute(f"PRAGMA synchronous = {synchronous}")
        self._connection.execute(
            "CREATE TABLE event (loop_id TEXT, n INTEGER, body BLOB, PRIMARY KEY (loop_id, n))"
        )

    async def write(self) -> None:
        loop_id = f"{next(self._numbers):032x}"
        for n, body in enumerate(self._bodies):
            self._connection.execute("INSERT INTO event VALUES (?, ?, ?)", (loop_id, n, body))

    def check(self, loops: int) -> None:
        """Count what was written, and close.

        Raises:
            Void: it is not there.
        """
        (rows,) = self._connection.execute("SELECT count(*) FROM event").fetchone()
        self._connection.close()
        if rows != loops * len(self._bodies):
            raise Void(f"the raw table holds {rows} rows, not {loops * len(self._bodies)}")
