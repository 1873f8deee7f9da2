"""Appends that fail: nothing is written, the error says why, and the journal works on."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import subprocess
from collections.abc import Generator
from contextlib import closing
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from flyball.core.errors import JournalConflict, JournalFailure, UserError
from flyball.core.events import Started
from flyball.core.spec import LoopSpec
from flyball.runtime.sqlite import SQLiteJournal, file, group, store
from flyball.runtime.sqlite.record import rows_of
from flyball.runtime.sqlite.schema import Synchronous, connect
from flyball.testing.conformance.samples import long_event, numbered
from tests.patience import PATIENCE


@pytest.fixture
def limited(monkeypatch: pytest.MonkeyPatch) -> list[sqlite3.Connection]:
    """Lets the file of every journal grow to 40 pages only; gives the connections, the writing one second."""
    connections: list[sqlite3.Connection] = []

    def small(*args: Any) -> sqlite3.Connection:
        connection = connect(*args)
        connection.execute("PRAGMA max_page_count = 40")
        connections.append(connection)
        return connection

    monkeypatch.setattr(file, "connect", small)
    return connections


async def test_a_full_disk(limited: list[sqlite3.Connection], journal: SQLiteJournal) -> None:
    await journal.append("loop", numbered(2), 0)
    with pytest.raises(JournalFailure, match="disk is full") as caught:
        await journal.append("loop", [*numbered(1, 2), long_event(200_000)], 2)
    assert caught.value.details == {"path": journal.path, "sqlite": "SQLITE_FULL"}
    assert "nothing was written" in str(caught.value)
    assert await journal.read("loop") == numbered(2)
    assert await journal.append("loop", numbered(1, 2), 2) == 3  # a small one still fits
    limited[1].execute("PRAGMA max_page_count = 1000")
    assert await journal.append("loop", [long_event(200_000)], 3) == 4
    assert await journal.integrity() == []


async def test_one_that_fails_does_not_take_others_with_it(
    limited: list[sqlite3.Connection], journal: SQLiteJournal
) -> None:
    """They share a commit; the one that is too large is refused, the others are written."""
    await journal.append("taken", numbered(1), 0)
    results = await asyncio.gather(
        journal.append("a", numbered(2), 0),
        journal.append("large", [*numbered(1), long_event(200_000)], 0),
        journal.append("taken", numbered(2), 0),
        journal.append("b", numbered(6), 0),
        return_exceptions=True,
    )
    assert results[0] == 2
    assert isinstance(results[1], JournalFailure)
    assert results[1].details["sqlite"] == "SQLITE_FULL"
    assert isinstance(results[2], JournalConflict)
    assert results[3] == 6
    assert sorted(await journal.loops()) == ["a", "b", "taken"]
    assert await journal.read("b") == numbered(6)


@pytest.fixture
def small_disk(tmp_path: Path) -> Generator[Path]:
    """A file system of 400 kB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=400k", "tmpfs", str(folder)]
    if os.geteuid() != 0 or subprocess.run(command, check=False, capture_output=True).returncode != 0:
        pytest.skip("needs the right to mount a small file system")
    try:
        yield folder
    finally:
        # Lazily: a test that fails may still have files open there, and must not leave the mount behind.
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


@pytest.mark.integration
async def test_a_disk_that_is_really_full(small_disk: Path) -> None:
    ballast = small_disk / "ballast"
    async with SQLiteJournal(small_disk / "runs.db") as journal:
        await journal.append("loop", numbered(1), 0)
        ballast.write_bytes(b"x" * 200_000)
        length, failed = 1, None
        for _ in range(100):
            try:
                length = await journal.append("loop", numbered(20, length), length)
            except JournalFailure as error:
                failed = error
                break
        assert failed is not None
        assert failed.details["sqlite"] == "SQLITE_FULL"
        assert await journal.read("loop") == numbered(length)
        ballast.unlink()
        length = await journal.append("loop", numbered(20, length), length)
        assert await journal.read("loop") == numbered(length)
        assert await journal.integrity() == []
    async with SQLiteJournal(small_disk / "runs.db") as journal:
        assert await journal.read("loop") == numbered(length)


async def test_a_lock_that_is_not_let_go(journal: SQLiteJournal) -> None:
    await journal.append("loop", numbered(1), 0)
    with closing(sqlite3.connect(journal.path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        outcomes = await asyncio.gather(
            journal.append("loop", numbered(1, 1), 1),
            journal.append("other", numbered(1), 0),
            journal.delete("loop"),
            return_exceptions=True,
        )
        for outcome in outcomes:
            assert isinstance(outcome, JournalFailure)
            assert outcome.details["sqlite"] == "SQLITE_BUSY"
            assert outcome.retryable
            assert "busy_timeout" in str(outcome)
        assert await journal.read("loop") == numbered(1)  # reading waits for nobody
        other.execute("ROLLBACK")
    assert await journal.append("loop", numbered(1, 1), 1) == 2


async def test_a_lock_that_is_let_go_in_time(path: Path) -> None:
    for synchronous in ("full", "normal"):
        async with SQLiteJournal(path, synchronous=synchronous, busy_timeout=30) as journal:
            length = await journal.size("loop")
            with closing(sqlite3.connect(path, isolation_level=None)) as other:
                other.execute("BEGIN IMMEDIATE")
                waiting = asyncio.create_task(journal.append("loop", numbered(1, length), length))
                beat = 0
                while beat < 20:  # the event loop goes on meanwhile
                    await asyncio.sleep(0)
                    beat += 1
                assert not waiting.done()
                other.execute("ROLLBACK")
            assert await waiting == length + 1


async def test_each_append_waits_for_its_own_time(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """When the lock comes too late for the first, it may still come in time for the second."""
    now = 0.0
    monkeypatch.setattr(group, "time", SimpleNamespace(monotonic=lambda: now))
    deadlines: list[float] = []
    begin = store.Store.begin

    def late(self: store.Store, deadline: float) -> None:
        nonlocal now
        deadlines.append(deadline)
        if len(deadlines) == 1:
            now = 5.0
            error = sqlite3.OperationalError("database is locked")
            error.sqlite_errorcode = sqlite3.SQLITE_BUSY
            raise error
        begin(self, deadline)

    monkeypatch.setattr(store.Store, "begin", late)
    writing = store.Store(connect(str(path), "normal"), connect(str(path), "normal"), str(path))
    commits = group.GroupCommit(writing, str(path), busy_timeout=5.0)
    first = commits.submit(rows_of("first", numbered(1), 0))
    now = 3.0
    second = commits.submit(rows_of("second", numbered(1), 0))
    commits.flush()
    with pytest.raises(JournalFailure, match="busy_timeout"):
        await first.outcome()
    await second.outcome()
    assert second.committed
    assert not first.committed
    assert deadlines == [5.0, 8.0]
    commits.close()
    with pytest.raises(JournalFailure, match="the journal was closed"):
        await commits.submit(rows_of("third", numbered(1), 0)).outcome()
    writing.close()


@pytest.mark.parametrize("synchronous", ["full", "normal"])
async def test_cancelled_while_it_waits_for_a_lock(path: Path, synchronous: Synchronous) -> None:
    """It is withdrawn: nothing is written when the lock is let go."""
    async with SQLiteJournal(path, synchronous=synchronous, busy_timeout=PATIENCE) as journal:
        await journal.append("loop", numbered(1), 0)
        with closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            waiting = asyncio.create_task(journal.append("loop", numbered(1, 1), 1))
            for _ in range(5):
                await asyncio.sleep(0)
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting
            other.execute("ROLLBACK")
        assert await journal.append("other", numbered(1), 0) == 1
        assert await journal.read("loop") == numbered(1)


async def test_cancelled_while_it_is_committed(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The task waits, even if it is cancelled twice, and whoever waits for the event is woken."""
    import threading

    committing, go_on = threading.Event(), threading.Event()
    commit = store.Store.commit

    def slow(self: store.Store) -> None:
        committing.set()
        assert go_on.wait(PATIENCE)
        commit(self)

    async with SQLiteJournal(path) as journal:
        await journal.append("loop", numbered(1), 0)
        monkeypatch.setattr(store.Store, "commit", slow)
        waiting = asyncio.create_task(journal.wait("loop", 1))
        appending = asyncio.create_task(journal.append("loop", numbered(2, 1), 1))
        await asyncio.to_thread(committing.wait, PATIENCE)
        for _ in range(2):
            appending.cancel()
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            assert not appending.done()
        go_on.set()
        with pytest.raises(asyncio.CancelledError):
            await appending
        assert await journal.read("loop") == numbered(3)
        assert await asyncio.wait_for(waiting, PATIENCE)


async def test_many_share_a_commit(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    commits: list[int] = []
    commit = store.Store.commit

    def counted(self: store.Store) -> None:
        commits.append(1)
        commit(self)

    monkeypatch.setattr(store.Store, "commit", counted)
    async with SQLiteJournal(path) as journal:

        async def run(name: str) -> None:
            for n in range(3):
                await journal.append(name, numbered(1, n), n)

        await asyncio.gather(*[run(f"loop-{k}") for k in range(200)])
        assert len(commits) < 60  # of 600 appends
        assert len(await journal.loops()) == 200


async def test_the_log_does_not_grow_without_end(path: Path) -> None:
    for synchronous in ("full", "normal"):
        async with SQLiteJournal(path, synchronous=synchronous) as journal:
            length = await journal.size("loop")
            for k in range(60):
                length = await journal.append("loop", [long_event(300_000 + k)], length)
            log = os.stat(f"{path}-wal").st_size
            assert log < 14_000_000, f"{log} bytes of log after 18 MB of events"


def test_nobody_appends_in_place_while_the_log_is_much_too_long(path: Path) -> None:
    with closing(connect(str(path), "normal")) as writing, closing(connect(str(path), "normal")) as moving:
        watched, numbers = store.Store(writing, moving, str(path)), count()
        for _ in range(2):
            appended = 0
            while appended < 60 and watched.append_now([("loop", next(numbers), 0, b"x" * 300_000)]):
                appended += 1
            assert 20 < appended < 40, "8 MB of log, in pieces of 0.3"
            watched.checkpoint(deadline=0.0)
            numbers = count(next(numbers) - 1)  # the one that was refused is the next


def test_nobody_writes_during_a_checkpoint(path: Path) -> None:
    with closing(connect(str(path), "normal")) as writing, closing(connect(str(path), "normal")) as other:

        class Checkpointer:
            def execute(self, statement: str) -> None:
                assert "wal_checkpoint" in statement
                with pytest.raises(sqlite3.OperationalError, match="locked"):
                    other.execute("BEGIN IMMEDIATE")

        watched = store.Store(writing, cast("sqlite3.Connection", Checkpointer()), str(path))
        watched.checkpoint(deadline=0.0)
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(sqlite3.OperationalError, match="locked"):
            watched.checkpoint(deadline=0.0)


async def test_what_json_cannot_hold_is_refused(journal: SQLiteJournal) -> None:
    await journal.append("loop", numbered(1), 0)
    wrong = Started(at=1.0, version=1, loop_id="loop", spec=LoopSpec(), metadata={"x": object()})
    with pytest.raises(UserError, match="event 2 of loop 'loop', a Started"):
        await journal.append("loop", [*numbered(1, 1), wrong], 1)
    surrogate = Started(at=1.0, version=1, loop_id="loop", spec=LoopSpec(), metadata={"x": "\ud800"})
    with pytest.raises(UserError, match="event 1 of loop"):
        await journal.append("loop", [surrogate], 1)
    assert await journal.read("loop") == numbered(1)


async def test_ids_that_cannot_be_are_refused(journal: SQLiteJournal) -> None:
    for wrong in ("", "\ud800"):
        for work in (
            journal.append(wrong, numbered(1), 0),
            journal.append(wrong, [], 0),
            journal.read(wrong),
            journal.size(wrong),
            journal.delete(wrong),
            journal.wait(wrong, 0, timeout=0),
        ):
            with pytest.raises(UserError, match="loop id"):
                await work
    with pytest.raises(UserError, match="start=-1"):
        await journal.read("loop", -1)


async def test_delete(journal: SQLiteJournal) -> None:
    for name in ("a", "b", "c"):
        await journal.append(name, numbered(3), 0)
    assert await journal.delete("b") == 3
    assert await journal.delete("b") == 0
    assert await journal.loops() == ["c", "a"]
    assert await journal.read("b") == []
    assert await journal.size("b") == 0
    assert await journal.size("a") == 3
    with pytest.raises(JournalConflict):
        await journal.append("b", numbered(1, 3), 3)
    assert await journal.append("b", numbered(1), 0) == 1
    assert await journal.loops() == ["b", "c", "a"]
    assert await journal.integrity() == []
