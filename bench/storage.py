"""Appending to a SQLiteJournal, beside a raw INSERT and commit of the same bytes with the same pragmas.

The events are those of a run of W2, appended one by one, as a driver does it. The raw table has what any
journal must have, a key to find a loop's events by; it has no checksum, no check that the number is the next
one, and its bytes are there already. The journal must afterwards hold what was appended.
"""

from __future__ import annotations

import sqlite3
import tempfile
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path
from statistics import median
from time import perf_counter_ns
from typing import Literal

import workloads as c

from bench.asking import Void
from bench.figures import Figures
from bench.flyball_peer import Peer
from bench.proof import prove
from bench.runs import tool_proof
from bench.timing import Effort, in_turns
from flyball.core.codec import encode_event
from flyball.core.events import Event
from flyball.runtime.sqlite import SQLiteJournal

Synchronous = Literal["full", "normal"]


async def normal(effort: Effort) -> Figures:
    """Commits that survive a crash of the process: CPU time."""
    with tempfile.TemporaryDirectory(prefix="flyball-bench-") as folder:
        async with _both(Path(folder), "normal") as (raw, journal):
            inserts, appends = await in_turns([raw.write, journal.write], effort)
            raw.check(inserts.calls)
            await journal.check(appends.calls)
    return Figures(inserts.ns, appends.ns)


async def full(effort: Effort) -> Figures:
    """Commits that survive power loss: they wait for the disk, so it is the time on the wall that counts.

    Others use the disk too, so turns change with every commit, and the figure is the median of all.
    """
    times: tuple[list[int], list[int]] = ([], [])
    with tempfile.TemporaryDirectory(prefix="flyball-bench-") as folder:
        async with _both(Path(folder), "full") as (raw, journal):
            for _ in range(commits := 30 * effort.rounds):
                for subject, taken in zip((raw, journal), times, strict=True):
                    began = perf_counter_ns()
                    await subject.write()
                    taken.append(perf_counter_ns() - began)
            raw.check(commits)
            await journal.check(commits)
    return Figures(median(times[0]), median(times[1]))


@asynccontextmanager
async def _both(folder: Path, synchronous: Synchronous) -> AsyncGenerator[tuple[RawTable, Appends]]:
    events = await w2_events()
    async with SQLiteJournal(folder / "journal.db", synchronous=synchronous) as journal:
        yield RawTable(folder / "raw.db", synchronous, events), Appends(journal, events)


async def w2_events() -> list[Event]:
    """The journal of a run of W2."""
    peer = Peer(c.TURNS)
    await peer.tools()
    await prove(peer.result, tool_proof(c.TURNS))
    assert peer.result is not None
    return await peer.result.events()


class Appends:
    """Appends a run's events to the journal one by one, then the same to another loop, and so on."""

    def __init__(self, journal: SQLiteJournal, events: Sequence[Event]) -> None:
        self._journal = journal
        self._events = events
        self._next = _places(len(events)).__next__

    async def write(self) -> None:
        loop_id, n = self._next()
        await self._journal.append(loop_id, (self._events[n],), n)

    async def check(self, appends: int) -> None:
        """Read back what was written.

        Raises:
            Void: it is not there.
        """
        written = 0
        for loop_id in await self._journal.loops():
            events = await self._journal.read(loop_id)
            if events != self._events[: len(events)]:
                raise Void(f"loop {loop_id} does not hold the events that were appended to it")
            written += len(events)
        if written != appends:
            raise Void(f"the journal holds {written} events, not the {appends} that were appended")


class RawTable:
    """The same bytes, written by hand."""

    def __init__(self, path: Path, synchronous: Synchronous, events: Sequence[Event]) -> None:
        self._bodies = [encode_event(event) for event in events]
        self._next = _places(len(events)).__next__
        self._connection = sqlite3.connect(path, isolation_level=None)
        # The log is moved into the file after 1,000 pages, by SQLite here and by the journal's thread there.
        self._connection.execute("PRAGMA journal_mode = WAL")
        self._connection.execute(f"PRAGMA synchronous = {synchronous}")
        self._connection.execute(
            "CREATE TABLE event (loop_id TEXT, n INTEGER, body BLOB, PRIMARY KEY (loop_id, n))"
        )

    async def write(self) -> None:
        loop_id, n = self._next()
        self._connection.execute("INSERT INTO event VALUES (?, ?, ?)", (loop_id, n, self._bodies[n]))

    def check(self, inserts: int) -> None:
        """Count what was written, and close.

        Raises:
            Void: it is not there.
        """
        (rows,) = self._connection.execute("SELECT count(*) FROM event").fetchone()
        self._connection.close()
        if rows != inserts:
            raise Void(f"the raw table holds {rows} rows, not {inserts}")


def _places(size: int) -> Iterator[tuple[str, int]]:
    """Where the next event goes: which loop, and its number there."""
    for loop in count():
        loop_id = f"{loop:032x}"
        for n in range(size):
            yield loop_id, n
