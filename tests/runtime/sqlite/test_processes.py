"""Several processes on one file, and some that die."""

from __future__ import annotations

import asyncio
import os
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

import flyball
from flyball.core.errors import JournalFailure
from flyball.runtime.sqlite import SQLiteJournal
from flyball.testing.conformance.samples import numbered
from tests.patience import PATIENCE
from tests.runtime.sqlite.children import go, said, start

SYNCHRONOUS = ("full", "normal")


@pytest.mark.integration
@pytest.mark.parametrize("synchronous", SYNCHRONOUS)
async def test_of_many_processes_one_wins_each_number(path: Path, synchronous: str) -> None:
    writers, appends = 3, 25
    # All at once from the start: the making of the file is raced for as well.
    children = [start("race", path, synchronous, writer, appends) for writer in range(writers)]
    for child in children:
        go(child)
    places: dict[int, int] = {}
    for writer, child in enumerate(children):
        for k, place in enumerate(map(int, said(child).split())):
            assert place not in places
            places[place] = 10_000 * writer + 2 * k
    async with SQLiteJournal(path) as journal:
        found = await journal.read("shared")
        assert [event.at for event in found] == [
            places[place] + part for place in sorted(places) for part in (0, 1)
        ]
        assert len(found) == 2 * writers * appends
        for writer in range(writers):
            assert await journal.read(f"own-{writer}") == numbered(appends)
        assert await journal.integrity() == []


@pytest.mark.integration
@pytest.mark.parametrize("synchronous", SYNCHRONOUS)
@pytest.mark.parametrize("acknowledged", [1, 40])
async def test_what_was_acknowledged_survives_kill_9(path: Path, synchronous: str, acknowledged: int) -> None:
    child = start("stream", path, synchronous)
    assert child.stdout is not None
    go(child)
    lines = [child.stdout.readline() for _ in range(acknowledged)]
    child.send_signal(signal.SIGKILL)
    lines += child.stdout.readlines()
    child.communicate()
    assert child.returncode == -signal.SIGKILL
    last = int([line for line in lines if line.endswith("\n")][-1])
    async with SQLiteJournal(path) as journal:
        found = await journal.read("loop")
        assert last <= len(found) <= last + 3
        assert len(found) % 3 == 0, "half an append"
        assert found == numbered(len(found))
        assert await journal.append("loop", numbered(1, len(found)), len(found)) == len(found) + 1
        assert await journal.integrity() == []


KILLED = """
import os, signal, sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("PRAGMA cache_size = 1")  # so that pages are written before the commit
connection.execute("BEGIN IMMEDIATE")
for n in range(1, 500):
    row = ("loop", n, 0, b"x" * 999)
    connection.execute("INSERT INTO event (loop_id, n, crc, body) VALUES (?, ?, ?, ?)", row)
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.integration
async def test_a_writer_killed_inside_a_transaction_leaves_nothing(path: Path) -> None:
    async with SQLiteJournal(path) as journal:
        await journal.append("loop", numbered(1), 0)
    child = await asyncio.create_subprocess_exec(sys.executable, "-c", KILLED, str(path))
    assert await child.wait() == -signal.SIGKILL
    assert os.stat(f"{path}-wal").st_size > 100_000
    async with SQLiteJournal(path) as journal:
        assert await journal.read("loop") == numbered(1)
        assert await journal.append("loop", numbered(1, 1), 1) == 2
        assert await journal.integrity() == []


@pytest.mark.integration
@pytest.mark.parametrize("synchronous", SYNCHRONOUS)
async def test_another_process_wakes_those_who_wait(path: Path, synchronous: str) -> None:
    child = start("append", path, synchronous, 2)
    async with SQLiteJournal(path, poll_interval=0.005) as journal:
        waiting = [asyncio.create_task(journal.wait("loop", length)) for length in (0, 1, 2)]
        assert await journal.wait("loop", 0, timeout=0.05) is False
        go(child)
        assert await asyncio.wait_for(asyncio.gather(*waiting[:2]), PATIENCE) == [True, True]
        assert not waiting[2].done()
        waiting[2].cancel()
        said(child)
        assert await journal.read("loop") == numbered(2)


@pytest.mark.integration
def test_a_file_that_may_not_grow(path: Path) -> None:
    child = start("outgrow", path, "full")
    go(child)
    name, intact = said(child).split()
    assert name.startswith("SQLITE_IOERR")
    assert intact == "True"


async def test_a_process_that_holds_the_file_for_itself(path: Path) -> None:
    """Reading too can meet a lock, if rarely; it waits for it, and no longer than it should."""
    async with SQLiteJournal(path) as journal:
        await journal.append("loop", numbered(1), 0)
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("PRAGMA locking_mode = EXCLUSIVE")
        other.execute("BEGIN IMMEDIATE")
        other.execute("COMMIT")
        journal = SQLiteJournal(path, busy_timeout=0.02)
        with pytest.raises(JournalFailure, match="busy_timeout") as caught:
            await journal.read("loop")
        assert caught.value.retryable
    assert await journal.read("loop") == numbered(1)
    await journal.close()
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("PRAGMA locking_mode = EXCLUSIVE")
        other.execute("BEGIN IMMEDIATE")
        journal = SQLiteJournal(path, busy_timeout=30)
        reading = asyncio.create_task(journal.read("loop"))
        assert await asyncio.wait([reading], timeout=0.02) == (set(), {reading})
    assert await reading == numbered(1)
    await journal.close()


FORK = """
import asyncio, os, sys
from flyball.runtime.sqlite import SQLiteJournal
from flyball.testing.conformance.samples import numbered

journal = SQLiteJournal(sys.argv[1], synchronous=sys.argv[2], busy_timeout=30)

async def append(name):
    length = await journal.size(name)
    return await journal.append(name, numbered(1, length), length)

assert asyncio.run(append("loop")) == 1
child = os.fork()
assert asyncio.run(append("parent" if child else "child")) == 1
assert asyncio.run(append("loop")) >= 2 if child == 0 else True
if child:
    assert os.waitpid(child, 0)[1] == 0
    assert asyncio.run(append("loop")) == 3
    assert sorted(asyncio.run(journal.loops())) == ["child", "loop", "parent"]
    assert asyncio.run(journal.integrity()) == []
"""


@pytest.mark.integration
@pytest.mark.parametrize("synchronous", SYNCHRONOUS)
def test_a_forked_child_opens_the_file_for_itself(path: Path, synchronous: str) -> None:
    environment = {**os.environ, "PYTHONPATH": str(Path(flyball.__file__).parents[1])}
    done = subprocess.run(
        [sys.executable, "-W", "ignore::DeprecationWarning", "-c", FORK, str(path), synchronous],
        check=False,
        timeout=PATIENCE,
        capture_output=True,
        text=True,
        env=environment,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert [file.name for file in path.parent.iterdir()] == ["runs.db"]  # closed at exit, though nobody did
