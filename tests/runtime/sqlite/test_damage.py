"""Damaged files: what is read is what was written, or an error says where the damage is."""

from __future__ import annotations

import asyncio
import sqlite3
import tempfile
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flyball.core.codec import encode_event
from flyball.core.errors import JournalConflict, JournalCorrupt, JournalFailure, JournalTooNew
from flyball.core.events import VERSION, Event, Resumed
from flyball.runtime.sqlite import SQLiteJournal
from flyball.runtime.sqlite.record import events_of, rows_of
from flyball.testing.conformance.samples import every_event, numbered
from tests.effort import examples

# ruff: noqa: ASYNC240 - a test may wait for its files

LOOPS: dict[str, list[Event]] = {"first": every_event(), "second": numbered(40), "third": numbered(1)}


async def write(path: Path) -> None:
    async with SQLiteJournal(path, synchronous="normal") as journal:
        for name, events in LOOPS.items():
            await journal.append(name, events, 0)


@pytest.fixture(scope="module")
def sound() -> bytes:
    """A journal's file."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "runs.db"
        asyncio.run(write(path))
        return path.read_bytes()


async def read_damaged(contents: bytes) -> list[JournalFailure]:
    """Read and append to a damaged file: only typed errors and true events may come of it."""
    errors: list[JournalFailure] = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "runs.db"
        path.write_bytes(contents)
        journal = SQLiteJournal(path, synchronous="normal", busy_timeout=0.05)
        for name, events in LOOPS.items():
            try:
                found = await journal.read(name)
                assert found == events[: len(found)], "what was never written"
                if name == "third":
                    await journal.append("third", numbered(1, len(found)), len(found))
            except JournalFailure as error:
                errors.append(error)
        for question in (journal.loops, journal.integrity):
            try:
                await question()
            except JournalFailure as error:
                errors.append(error)
        await journal.close()
    assert all("runs.db" in str(error) for error in errors)
    return errors


@examples(40)
@given(places=st.lists(st.tuples(st.integers(0, 1 << 20), st.integers(1, 255)), min_size=1, max_size=4))
def test_flipped_bytes_are_never_read_as_events(sound: bytes, places: list[tuple[int, int]]) -> None:
    contents = bytearray(sound)
    for place, mask in places:
        contents[place % len(contents)] ^= mask
    asyncio.run(read_damaged(bytes(contents)))


@examples(10)
@given(length=st.integers(1, 1 << 20))
def test_a_truncated_file_is_refused(sound: bytes, length: int) -> None:
    assert asyncio.run(read_damaged(sound[: length % (len(sound) - 1) + 1])), "the damage was not noticed"


def test_damaged_table_definitions_are_refused(sound: bytes) -> None:
    """Also where sqlite3 trips over its own message, because that quotes what is no text any more."""
    begin = sound.index(b"CREATE TABLE event")
    for place in range(begin, begin + 120, 7):
        contents = bytearray(sound)
        contents[place] = 0x8A
        assert asyncio.run(read_damaged(bytes(contents))), f"the damage at {place} was not noticed"


@examples(10)
@given(page=st.integers(1, 1 << 20), noise=st.binary(min_size=16, max_size=16))
def test_a_page_of_noise_is_refused(sound: bytes, page: int, noise: bytes) -> None:
    place = page % (len(sound) // 4096 - 1) * 4096 + 4096
    contents = sound[:place] + noise * 256 + sound[place + 4096 :]
    assert asyncio.run(read_damaged(contents)), "the damage was not noticed"


async def execute(path: Path, statement: str, *values: object) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        assert connection.execute(statement, values).rowcount > 0


async def test_a_changed_letter_is_refused_and_named(path: Path) -> None:
    await write(path)
    change = "UPDATE event SET body = CAST(replace(body, '17.0', '18.0') AS BLOB) "
    await execute(path, f"{change} WHERE loop_id = 'second' AND n = 17")
    async with SQLiteJournal(path) as journal:
        with pytest.raises(JournalCorrupt, match=r"runs\.db: loop 'second', event 17 .*checksum") as caught:
            await journal.read("second")
        assert caught.value.details == {"path": str(path), "loop_id": "second", "event": 17}
        assert await journal.read("second", 18) == numbered(22, 18)
        assert await journal.read("first") == LOOPS["first"]
        assert [problem for problem in await journal.integrity() if "event 17" in problem]


async def test_a_missing_event_is_refused_and_named(path: Path) -> None:
    await write(path)
    await execute(path, "DELETE FROM event WHERE loop_id = 'second' AND n IN (5, 6)")
    async with SQLiteJournal(path) as journal:
        with pytest.raises(JournalCorrupt, match=r"loop 'second', event 5 is missing \(event 7 comes next\)"):
            await journal.read("second")
        with pytest.raises(JournalCorrupt, match="event 6 is missing"):
            await journal.read("second", 6)
        assert await journal.read("second", 7) == numbered(33, 7)
        with pytest.raises(JournalConflict):  # the gap is not filled with something else
            await journal.append("second", numbered(1, 5), 5)
        assert len(await journal.integrity()) == 1


async def test_an_event_in_anothers_place_is_refused(path: Path) -> None:
    await write(path)
    await execute(path, "DELETE FROM event WHERE loop_id = 'third'")
    await execute(path, "UPDATE event SET loop_id = 'third', n = 0 WHERE loop_id = 'second' AND n = 39")
    async with SQLiteJournal(path) as journal:
        with pytest.raises(JournalCorrupt, match="loop 'third', event 0"):
            await journal.read("third")


async def test_a_loops_name_that_is_no_text_is_refused(path: Path) -> None:
    await write(path)
    await execute(path, "UPDATE event SET loop_id = CAST(x'ff' AS TEXT) WHERE loop_id = 'third'")
    async with SQLiteJournal(path) as journal:
        with pytest.raises(JournalCorrupt, match="name of a loop is damaged"):
            await journal.loops()
        assert await journal.read("second") == numbered(40)
        assert len(await journal.integrity()) == 1


async def test_bytes_that_are_no_event_are_refused_and_named(path: Path) -> None:
    from zlib import crc32

    await write(path)
    body = b'{"event": "ended", "at": 1.0}'
    await execute(
        path, "UPDATE event SET body = ?, crc = ? WHERE loop_id = 'third'", body, crc32(body, crc32(b"third"))
    )
    async with SQLiteJournal(path) as journal:
        with pytest.raises(JournalCorrupt, match="loop 'third', event 0: not an event"):
            await journal.read("third")


async def test_a_newer_event_is_refused(path: Path) -> None:
    async with SQLiteJournal(path) as journal:
        await journal.append("loop", [*numbered(1), Resumed(at=1.0, version=VERSION + 1, epoch=1)], 0)
        with pytest.raises(JournalTooNew, match="loop 'loop', event 1") as caught:
            await journal.read("loop")
        assert caught.value.details["version"] == VERSION + 1


async def test_an_empty_log_loses_what_was_in_it_and_nothing_else(path: Path) -> None:
    """As after a power loss with synchronous="normal": the loop is shorter, and whole."""
    async with SQLiteJournal(path) as journal:
        await journal.append("loop", numbered(3), 0)
    async with SQLiteJournal(path) as journal:
        await journal.append("loop", numbered(2, 3), 3)
        copy = path.with_name("copy.db")
        copy.write_bytes(path.read_bytes())  # as it is on disk while the log is not yet moved into it
    path.with_name("copy.db-wal").touch()
    async with SQLiteJournal(copy) as journal:
        assert await journal.read("loop") == numbered(3)
        assert await journal.append("loop", numbered(1, 3), 3) == 4
        assert await journal.integrity() == []


@examples(12)
@given(cut=st.integers(0, 1 << 20), mask=st.integers(0, 255), place=st.integers(0, 1 << 20))
def test_a_damaged_log_gives_whole_appends(cut: int, mask: int, place: int) -> None:
    async def check() -> None:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "runs.db"
            async with SQLiteJournal(path, synchronous="normal") as journal:
                for k in range(8):
                    await journal.append("loop", numbered(3, 3 * k), 3 * k)
                copy = path.with_name("copy.db")
                copy.write_bytes(path.read_bytes())
                log = bytearray(Path(f"{path}-wal").read_bytes())
            if mask:
                log[place % len(log)] ^= mask
            else:
                del log[cut % len(log) :]
            path.with_name("copy.db-wal").write_bytes(log)
            async with SQLiteJournal(copy, synchronous="normal") as journal:
                found = await journal.read("loop")
                assert found == numbered(len(found))
                assert len(found) % 3 == 0
                assert await journal.append("loop", numbered(1, len(found)), len(found)) == len(found) + 1

    asyncio.run(check())


# The rows themselves

events = st.lists(st.sampled_from(every_event()), max_size=5)
ids = st.text(st.characters(exclude_categories=("Cs",)), min_size=1, max_size=8)


@given(loop_id=ids, written=events, first=st.integers(0, 1 << 40))
def test_rows_are_read_back(loop_id: str, written: list[Event], first: int) -> None:
    rows = rows_of(loop_id, written, first)
    assert [row[:2] for row in rows] == [(loop_id, first + k) for k in range(len(written))]
    assert [row[3] for row in rows] == [encode_event(event) for event in written]
    assert events_of([row[1:] for row in rows], "path", loop_id, first) == written


@given(
    loop_id=ids,
    written=st.sampled_from(every_event()),
    n=st.integers(0, 1000),
    other=ids,
    place=st.integers(0, 1 << 16),
    mask=st.integers(1, 255),
)
def test_a_row_that_was_changed_is_refused(
    *, loop_id: str, written: Event, n: int, other: str, place: int, mask: int
) -> None:
    [(_, _, crc, body)] = rows_of(loop_id, [written], n)
    changed = bytearray(body)
    changed[place % len(body)] ^= mask
    wrong = [
        ((n, crc, bytes(changed)), loop_id, n),
        ((n, crc ^ mask, body), loop_id, n),
        ((n + 1, crc, body), loop_id, n),
        ((n + 1, crc, body), loop_id, n + 1),
        ((n, crc, None), loop_id, n),
        ((n, crc, body.decode()), loop_id, n),
        ((None, crc, body), loop_id, n),
        *([((n, crc, body), other, n)] if other != loop_id else []),
    ]
    for row, name, start in wrong:
        with pytest.raises(JournalCorrupt, match="path: loop"):
            events_of([row], "path", name, start)
