"""What every store of answers promises, over each of them; and what only the one on disk does."""

from __future__ import annotations

import asyncio
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flyball.core.errors import ConfigurationFailure, UserError
from flyball.inference.cache.sqlite import SQLiteCache
from flyball.inference.cache.store import AnswerStore, MemoryCache
from flyball.testing import FakeClock
from tests.effort import examples
from tests.patience import PATIENCE

Make: TypeAlias = Callable[[int, FakeClock], AnswerStore]


@pytest.fixture(params=["memory", "sqlite"])
def make(request: pytest.FixtureRequest, tmp_path: Path) -> Make:
    def made(size: int = 10, clock: FakeClock | None = None) -> AnswerStore:
        if request.param == "memory":
            return MemoryCache(size, clock=clock)
        return SQLiteCache(tmp_path / "folder" / "answers.db", size, clock=clock)

    return made


async def test_what_was_put_is_got(make: Make) -> None:
    store = make(10, FakeClock())
    assert await store.get("a") is None
    await store.put("a", b"one")
    await store.put("b", b"two")
    assert [await store.get("a"), await store.get("b"), await store.get("c")] == [b"one", b"two", None]
    await store.put("a", b"three")
    assert await store.get("a") == b"three"


async def test_what_is_past_its_time_is_gone(make: Make) -> None:
    clock = FakeClock()
    store = make(10, clock)
    await store.put("a", b"short", 5.0)
    await store.put("b", b"long")
    await clock.advance(4.9)
    assert await store.get("a") == b"short"
    await clock.advance(0.1)
    assert [await store.get("a"), await store.get("b")] == [None, b"long"]
    await store.put("a", b"again", 5.0)
    assert await store.get("a") == b"again"


async def test_where_there_are_too_many_the_oldest_goes(make: Make) -> None:
    store = make(3, FakeClock())
    for number in range(5):
        await store.put(str(number), b"x")
    assert [await store.get(str(number)) for number in range(5)] == [None, None, b"x", b"x", b"x"]


@pytest.mark.parametrize("size", [0, -1, 1.5, True, None])
def test_a_size_is_a_whole_number(size: object, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="max_entries="):
        MemoryCache(size)  # pyright: ignore[reportArgumentType]
    with pytest.raises(UserError, match="max_entries="):
        SQLiteCache(tmp_path / "a.db", size)  # pyright: ignore[reportArgumentType]


steps = st.lists(
    st.one_of(
        st.tuples(st.just("put"), st.integers(0, 5), st.none() | st.integers(1, 9)),
        st.tuples(st.just("get"), st.integers(0, 5), st.none()),
        st.tuples(st.just("wait"), st.integers(1, 9), st.none()),
    ),
    max_size=30,
)


@examples(30)
@given(st.integers(1, 4), steps)
async def test_nothing_is_found_but_what_was_put_last_and_is_in_time(
    tmp_path_factory: pytest.TempPathFactory, size: int, script: list[tuple[str, int, int | None]]
) -> None:
    clock = FakeClock()
    stores = [
        MemoryCache(size, clock=clock),
        SQLiteCache(tmp_path_factory.mktemp("cache") / "a.db", size, clock=clock),
    ]
    put: dict[str, tuple[bytes, float]] = {}
    for number, (action, argument, ttl) in enumerate(script):
        key = str(argument)
        if action == "wait":
            await clock.advance(argument)
        elif action == "put":
            put[key] = (str(number).encode(), clock.now() + (ttl or 1e9))
            for store in stores:
                await store.put(key, put[key][0], ttl)
                assert await store.get(key) == put[key][0]
        else:
            last, until = put.get(key, (None, 0.0))
            for store in stores:
                assert await store.get(key) in (None, last if until > clock.now() else None)
    assert len(stores[0]) <= size  # pyright: ignore[reportArgumentType]
    await stores[1].aclose()  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]
    rows = sqlite3.connect(stores[1].path)  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType, reportUnknownArgumentType]
    assert rows.execute("SELECT count(*) FROM answer").fetchone()[0] <= size if put else True
    rows.close()


# On disk


async def test_a_file_outlives_its_store(tmp_path: Path) -> None:
    first = SQLiteCache(tmp_path / "a.db")
    await first.put("a", b"one")
    await first.aclose()
    await first.aclose()
    assert await SQLiteCache(str(tmp_path / "a.db")).get("a") == b"one"
    assert await first.get("a") == b"one", "it is opened again"


async def test_two_stores_see_each_other(tmp_path: Path) -> None:
    one, other = SQLiteCache(tmp_path / "a.db"), SQLiteCache(tmp_path / "a.db")
    await asyncio.gather(*[store.put(f"{n}", b"x") for n in range(40) for store in (one, other)])
    await one.put("a", b"one")
    assert await other.get("a") == b"one"


WRITER = """
import asyncio, sys
from flyball.inference.cache.sqlite import SQLiteCache
async def main():
    store = SQLiteCache(sys.argv[1])
    for number in range(25):
        await store.put(f"{sys.argv[2]}-{number}", sys.argv[2].encode() * 100)
        assert await store.get(f"{sys.argv[2]}-{number}") is not None
asyncio.run(main())
"""


@pytest.mark.integration
async def test_several_processes_use_one_file(tmp_path: Path) -> None:
    """Also where none of them has made it before."""
    path = tmp_path / "new" / "a.db"
    code = [sys.executable, "-W", "error", "-c", WRITER, str(path)]
    writers = [
        await asyncio.create_subprocess_exec(*code, name, stderr=subprocess.PIPE) for name in ("a", "b", "c")
    ]
    async with asyncio.timeout(PATIENCE):
        for writer in writers:
            _, said = await writer.communicate()
            assert (writer.returncode, said) == (0, b"")
    store = SQLiteCache(path)
    for name in ("a", "b", "c"):
        for number in range(25):
            assert await store.get(f"{name}-{number}") == name.encode() * 100


@pytest.mark.parametrize("whose", ["text", "application", "table", "newer"])
async def test_a_file_of_others_is_left_alone(tmp_path: Path, whose: str) -> None:
    path = tmp_path / "theirs.db"
    if whose == "text":
        path.write_bytes(b"dear diary, " * 100)
    else:
        database = sqlite3.connect(path)
        if whose == "newer":
            database.execute("PRAGMA application_id = 1718385001")
        statement = {
            "application": "PRAGMA application_id = 77",
            "table": "CREATE TABLE mine (x)",
            "newer": "PRAGMA user_version = 99",
        }[whose]
        database.execute(statement)
        if whose == "newer":
            database.execute(f"PRAGMA application_id = {0x666C7963}")
        database.close()
    before = path.read_bytes()
    store = SQLiteCache(path)
    with pytest.raises(ConfigurationFailure, match=r"theirs\.db"):
        await store.get("a")
    with pytest.raises(ConfigurationFailure):
        await store.put("a", b"x")
    assert path.read_bytes() == before


async def test_a_path_that_cannot_be_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match="file"):
        await SQLiteCache(tmp_path / "file" / "a.db").get("a")
    with pytest.raises(sqlite3.OperationalError):
        await SQLiteCache(tmp_path).get("a")


async def test_nothing_of_it_runs_in_the_event_loops_thread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads: set[int] = set()
    real: Callable[..., sqlite3.Connection] = sqlite3.connect

    def connect(*args: object, **options: object) -> sqlite3.Connection:
        threads.add(threading.get_ident())
        return real(*args, **options)

    monkeypatch.setattr(sqlite3, "connect", connect)
    store = SQLiteCache(tmp_path / "a.db")
    await store.put("a", b"x")
    assert threads
    assert threading.get_ident() not in threads


async def test_who_waits_for_a_lock_may_go_away(tmp_path: Path) -> None:
    store = SQLiteCache(tmp_path / "a.db", timeout=0.2)
    await store.put("a", b"x")
    holder = sqlite3.connect(store.path, isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    waiting = asyncio.ensure_future(store.put("b", b"y"))
    await asyncio.sleep(0.01)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    with pytest.raises(sqlite3.OperationalError):
        await store.put("c", b"z")
    assert await store.get("a") == b"x", "readers do not wait for who writes"
    holder.execute("ROLLBACK")
    holder.close()
    await store.put("c", b"z")
    assert await store.get("c") == b"z"


async def test_a_file_that_others_read_in_the_old_way_is_waited_for(tmp_path: Path) -> None:
    """Until its log can be set up: SQLite does not wait for that by itself."""
    store = SQLiteCache(tmp_path / "a.db", timeout=0.05)
    await store.put("a", b"x")
    await store.aclose()
    reader = sqlite3.connect(store.path, isolation_level=None)
    reader.execute("PRAGMA journal_mode = DELETE")
    reader.execute("BEGIN")
    reader.execute("SELECT * FROM answer").fetchall()
    with pytest.raises(sqlite3.OperationalError, match="locked"):
        await store.get("a")
    reader.close()
    assert await store.get("a") == b"x"
