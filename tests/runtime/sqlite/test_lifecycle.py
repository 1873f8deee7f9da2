"""Opening late, closing well, being forgotten; several threads, several event loops."""

from __future__ import annotations

import asyncio
import gc
import os
import sqlite3
import sys
import threading
import weakref
from pathlib import Path

import pytest

from flyball.core.errors import JournalFailure, UserError
from flyball.core.events import Event
from flyball.orchestrate.journal import Journal
from flyball.runtime.sqlite import SQLiteJournal
from flyball.runtime.sqlite.schema import Synchronous
from flyball.runtime.sqlite.store import Store
from flyball.runtime.sqlite.worker import Worker
from flyball.testing.conformance.samples import long_event, numbered
from tests.patience import PATIENCE


def threads() -> set[str]:
    return {thread.name for thread in threading.enumerate() if thread.name.startswith("SQLiteJournal")}


def files(path: Path) -> list[str]:
    return sorted(file.name for file in path.parent.iterdir())


async def test_close_ends_the_thread_and_leaves_one_file(path: Path) -> None:
    before = threads()
    journal = SQLiteJournal(path)
    await journal.append("loop", numbered(2), 0)
    assert threads() - before == {f"SQLiteJournal({path})"}
    await journal.close()
    assert threads() == before
    assert files(path) == ["runs.db"]
    await journal.close()  # nothing more happens


async def test_a_closed_journal_says_so(journal: SQLiteJournal) -> None:
    await journal.append("loop", numbered(2), 0)
    await journal.close()
    for work in (
        journal.append("loop", numbered(1, 2), 2),
        journal.append("loop", [], 2),
        journal.read("loop"),
        journal.wait("loop", 0),
        journal.loops(),
        journal.size("loop"),
        journal.delete("loop"),
        journal.integrity(),
    ):
        with pytest.raises(UserError, match=r"runs\.db: the journal was closed"):
            await work


async def test_closing_finishes_what_was_begun(path: Path) -> None:
    journal = SQLiteJournal(path)
    await journal.append("loop", numbered(1), 0)
    appends = [asyncio.create_task(journal.append(f"loop-{k}", numbered(1), 0)) for k in range(20)]
    await asyncio.sleep(0)
    await journal.close()
    assert await asyncio.gather(*appends) == [1] * 20
    async with SQLiteJournal(path) as again:
        assert len(await again.loops()) == 21


async def test_closing_while_it_is_opened(path: Path) -> None:
    journal = SQLiteJournal(path)
    opening = asyncio.create_task(journal.append("loop", numbered(1), 0))
    await asyncio.sleep(0)
    await journal.close()
    with pytest.raises(UserError, match="was closed"):
        await opening
    assert files(path) == ["runs.db"]


async def test_closing_wakes_those_who_wait(journal: SQLiteJournal) -> None:
    waiting = [asyncio.create_task(journal.wait("loop", 0)) for _ in range(2)]
    for _ in range(3):
        await asyncio.sleep(0)
    await journal.close()
    for task in waiting:
        with pytest.raises(UserError, match="was closed"):
            await asyncio.wait_for(task, PATIENCE)


async def test_tasks_that_open_it_at_once_open_one_file(path: Path) -> None:
    before = threads()
    journal = SQLiteJournal(path)
    results = await asyncio.gather(*[journal.append(f"loop-{k}", numbered(1), 0) for k in range(10)])
    assert results == [1] * 10
    assert len(threads() - before) == 1
    await journal.close()


def test_a_journal_that_nobody_closes_is_closed_when_it_is_forgotten(path: Path) -> None:
    before = threads()

    async def use() -> weakref.ref[Journal]:
        journal = SQLiteJournal(path)
        await journal.append("loop", numbered(2), 0)
        return weakref.ref(journal)

    forgotten = asyncio.run(use())
    gc.collect()
    assert forgotten() is None
    for thread in threading.enumerate():
        if thread.name in threads() - before:
            thread.join(PATIENCE)
    assert threads() == before
    assert files(path) == ["runs.db"]


@pytest.mark.parametrize("synchronous", ["full", "normal"])
def test_one_event_loop_after_the_other(path: Path, synchronous: Synchronous) -> None:
    journal = SQLiteJournal(path, synchronous=synchronous)
    for n in range(3):
        assert asyncio.run(journal.append("loop", numbered(1, n), n)) == n + 1
    assert asyncio.run(journal.read("loop")) == numbered(3)
    asyncio.run(journal.close())


@pytest.mark.parametrize("synchronous", ["full", "normal"])
def test_several_event_loops_at_once(path: Path, synchronous: Synchronous) -> None:
    """An append in one wakes those who wait in another, without a look at the file."""
    journal = SQLiteJournal(path, synchronous=synchronous, poll_interval=600)
    count = 4
    found: list[list[Event]] = []
    start = threading.Barrier(count)

    async def pass_it_on(writer: int) -> None:
        """Each thread appends when it is its turn, and waits for the one before."""
        await journal.loops()
        await asyncio.to_thread(start.wait, PATIENCE)
        for k in range(10):
            turn = count * k + writer
            if turn:
                assert await journal.wait("loop", turn - 1, timeout=PATIENCE)
            await journal.append("loop", numbered(1, turn), turn)
            await journal.append(f"own-{writer}", numbered(1, k), k)
        found.append(await journal.read(f"own-{writer}"))

    def serve(writer: int) -> None:
        asyncio.run(pass_it_on(writer))

    serving = [threading.Thread(target=serve, args=(writer,)) for writer in range(count)]
    for thread in serving:
        thread.start()
    for thread in serving:
        thread.join(PATIENCE)
    assert found == [numbered(10)] * count
    assert asyncio.run(journal.read("loop")) == numbered(10 * count)
    asyncio.run(journal.close())


def test_an_event_loop_that_is_gone_disturbs_nobody(path: Path) -> None:
    """Its appends are decided all the same, and the thread serves on."""
    journal = SQLiteJournal(path)

    async def leave() -> None:
        await journal.loops()
        for k in range(5):
            task = asyncio.create_task(journal.append(f"loop-{k}", numbered(2), 0))
            await asyncio.sleep(0)
            task.cancel()

    asyncio.run(leave())
    assert asyncio.run(journal.append("loop", numbered(1), 0)) == 1
    asyncio.run(journal.close())


def test_an_answer_to_an_event_loop_that_is_closed_is_dropped() -> None:
    worker, begun, go_on = Worker("test"), threading.Event(), threading.Event()

    def slow() -> None:
        begun.set()
        assert go_on.wait(PATIENCE)

    async def ask() -> None:
        worker.call(slow)
        await asyncio.to_thread(begun.wait, PATIENCE)

    asyncio.run(ask())
    go_on.set()

    async def ask_again() -> int:
        return await worker.call(lambda: 42)

    assert asyncio.run(ask_again()) == 42
    worker.stop()
    worker.join()


async def test_a_checkpoint_that_fails_loses_nothing(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[float] = []

    def fail(self: Store, deadline: float) -> None:
        tried.append(deadline)
        raise sqlite3.OperationalError("disk I/O error")

    monkeypatch.setattr(Store, "checkpoint", fail)
    async with SQLiteJournal(path) as journal:
        for n in range(3):
            await journal.append("loop", [long_event(3_000_000)], n)
        await journal.append("loop", numbered(1), 3)
        # An append is acknowledged before the checkpoint; the file's thread does this after both.
        assert await journal.delete("another loop") == 0
        assert tried
        assert await journal.size("loop") == 4


async def test_other_journal_objects_are_noticed(path: Path) -> None:
    async with (
        SQLiteJournal(path, poll_interval=0.005) as one,
        SQLiteJournal(path, synchronous="normal") as other,
    ):
        waiting = asyncio.create_task(one.wait("loop", 1))
        await asyncio.sleep(0)
        assert await other.append("loop", numbered(1), 0) == 1
        assert await one.wait("loop", 0, timeout=PATIENCE)
        assert not waiting.done()
        assert await other.append("loop", numbered(1, 1), 1) == 2
        assert await asyncio.wait_for(waiting, PATIENCE)


async def test_a_long_loop_is_read_without_holding_up_others(path: Path) -> None:
    async with SQLiteJournal(path, synchronous="normal") as journal:
        await journal.append("loop", numbered(3_500), 0)
        turns = 0

        async def count() -> None:
            nonlocal turns
            while True:
                turns += 1
                await asyncio.sleep(0)

        counting = asyncio.create_task(count())
        assert await journal.read("loop") == numbered(3_500)
        counting.cancel()
        assert turns >= 3


@pytest.mark.integration
def test_importing_flyball_does_not_import_sqlite() -> None:
    import subprocess

    import flyball

    code = "import sys, flyball; sys.exit('sqlite3' in sys.modules)"
    environment = {"PYTHONPATH": str(Path(flyball.__file__).parents[1])}
    assert subprocess.run([sys.executable, "-c", code], env=environment, check=False).returncode == 0


def test_it_says_what_it_is(path: Path) -> None:
    assert repr(SQLiteJournal(path)) == f"SQLiteJournal({str(path)!r}, synchronous='full')"


async def test_a_journal_says_whether_it_can_be_written_to(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with SQLiteJournal(path) as journal:
        await journal.check()
        with monkeypatch.context() as full:
            full.setattr("flyball.runtime.sqlite.journal._ROOM", 1 << 62)
            with pytest.raises(JournalFailure, match="its disk is full"):
                await journal.check()
        os.rename(path, path.with_name("moved.db"))
        with pytest.raises(JournalFailure, match="is gone"):
            await journal.check()
        os.close(os.open(path, os.O_CREAT | os.O_WRONLY))
        with pytest.raises(JournalFailure, match="another file has taken"):
            await journal.check()
