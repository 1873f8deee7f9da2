"""Which files are opened, which are refused, and that a refused one is left as it was."""

# ruff: noqa: ASYNC240 - a test may wait for its files

from __future__ import annotations

import os
import sqlite3
import tempfile
from collections.abc import Generator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from flyball.core.errors import JournalCorrupt, JournalFailure, JournalTooNew, UserError
from flyball.orchestrate.journal import Journal
from flyball.runtime.sqlite import SQLiteJournal, schema
from flyball.runtime.sqlite.schema import APPLICATION_ID, FORMAT
from flyball.testing.conformance.samples import numbered


def execute(path: Path, *statements: str) -> list[Any]:
    """Statements of somebody who is not flyball; gives the rows of the last one."""
    rows: list[Any] = []
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        for statement in statements:
            rows = connection.execute(statement).fetchall()
    return rows


async def refusal(path: Path) -> JournalFailure:
    """The error with which a journal at this path is refused; it must name the path."""
    journal = SQLiteJournal(path, busy_timeout=0.05)
    with pytest.raises(JournalFailure) as caught:
        await journal.read("loop")
    await journal.close()
    assert str(path) in str(caught.value)
    assert caught.value.details["path"] == str(path)
    return caught.value


def test_is_a_journal(path: Path) -> None:
    assert isinstance(SQLiteJournal(path), Journal)


async def test_nothing_is_made_before_the_first_use(path: Path) -> None:
    journal = SQLiteJournal(path)
    assert not path.exists()
    await journal.close()
    assert not path.exists()


async def test_the_folder_is_made(tmp_path: Path) -> None:
    path = tmp_path / "a" / "b" / "runs.db"
    async with SQLiteJournal(path) as journal:
        await journal.append("loop", numbered(1), 0)
    assert path.is_file()


async def test_a_path_below_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    async with SQLiteJournal("~/runs.db") as journal:
        assert journal.path == str(tmp_path / "runs.db")
    assert (tmp_path / "runs.db").is_file()


async def test_a_path_is_no_uri(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    async with SQLiteJournal("file:runs.db?mode=memory") as journal:
        await journal.append("loop", numbered(1), 0)
    assert (tmp_path / "file:runs.db?mode=memory").is_file()


async def test_a_closed_file_is_one_file_that_says_what_it_is(path: Path) -> None:
    async with SQLiteJournal(path) as journal:
        await journal.append("loop", numbered(3), 0)
    assert [file.name for file in path.parent.iterdir()] == ["runs.db"]
    assert execute(path, "PRAGMA application_id") == [(APPLICATION_ID,)]
    assert execute(path, "PRAGMA user_version") == [(FORMAT,)]
    assert execute(path, "PRAGMA journal_mode") == [("wal",)]
    assert execute(path, "SELECT loop_id, n FROM event") == [("loop", 0), ("loop", 1), ("loop", 2)]


@pytest.mark.parametrize(("word", "number"), [("full", 2), ("normal", 1)])
async def test_synchronous_is_what_was_asked_for(path: Path, word: Any, number: int) -> None:
    from flyball.runtime.sqlite.schema import connect

    with closing(connect(str(path), word)) as connection:
        assert connection.execute("PRAGMA synchronous").fetchone() == (number,)


async def test_an_empty_file_becomes_a_journal(path: Path) -> None:
    path.touch()
    async with SQLiteJournal(path) as journal:
        assert await journal.append("loop", numbered(1), 0) == 1


async def test_a_journal_whose_making_was_interrupted_is_made(path: Path) -> None:
    execute(path, "PRAGMA journal_mode = WAL")
    async with SQLiteJournal(path) as journal:
        assert await journal.append("loop", numbered(1), 0) == 1


async def test_two_that_make_the_file_at_once(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The one that comes second finds it made, though it was not when it looked."""
    set_wal = schema._set_wal  # pyright: ignore[reportPrivateUsage] - the moment between looking and making

    def overtaken(connection: sqlite3.Connection, path: str) -> None:
        monkeypatch.setattr(schema, "_set_wal", set_wal)
        schema.connect(path, "normal").close()
        set_wal(connection, path)

    monkeypatch.setattr(schema, "_set_wal", overtaken)
    async with SQLiteJournal(path) as journal:
        assert await journal.append("loop", numbered(1), 0) == 1


async def test_a_folder_is_refused(tmp_path: Path) -> None:
    assert "is a folder" in str(await refusal(tmp_path))


async def test_a_path_below_a_file_is_refused(path: Path) -> None:
    path.touch()
    assert "folder cannot be made" in str(await refusal(path / "runs.db"))


@pytest.mark.parametrize(
    "statements",
    [
        ("CREATE TABLE event (x)",),
        ("CREATE TABLE event (x)", "PRAGMA journal_mode = WAL"),
        ("PRAGMA application_id = 42",),
        ("PRAGMA user_version = 7",),
    ],
)
async def test_another_applications_database_is_refused_untouched(
    path: Path, statements: tuple[str, ...]
) -> None:
    execute(path, *statements)
    before = path.read_bytes()
    error = await refusal(path)
    assert "another application" in str(error)
    assert not isinstance(error, JournalCorrupt | JournalTooNew)
    assert path.read_bytes() == before


async def test_what_is_no_database_is_refused_untouched(path: Path) -> None:
    path.write_text("Dear diary, " * 500)
    error = await refusal(path)
    assert isinstance(error, JournalCorrupt)
    assert path.read_text() == "Dear diary, " * 500


async def test_a_newer_format_is_refused_untouched(path: Path) -> None:
    async with SQLiteJournal(path) as journal:
        await journal.append("loop", numbered(1), 0)
    execute(path, f"PRAGMA user_version = {FORMAT + 1}")
    before = path.read_bytes()
    error = await refusal(path)
    assert isinstance(error, JournalTooNew)
    assert error.details == {"path": str(path), "version": FORMAT + 1, "supported": FORMAT}
    assert path.read_bytes() == before


async def test_a_format_that_never_was_is_refused(path: Path) -> None:
    async with SQLiteJournal(path):
        pass
    execute(path, "PRAGMA user_version = 0")
    assert isinstance(await refusal(path), JournalCorrupt)


async def test_missing_tables_are_refused(path: Path) -> None:
    execute(path, f"PRAGMA application_id = {APPLICATION_ID}", f"PRAGMA user_version = {FORMAT}")
    error = await refusal(path)
    assert isinstance(error, JournalCorrupt)
    assert "no such table" in str(error)


async def test_a_refused_file_may_be_tried_again(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    path.mkdir()
    async with SQLiteJournal(tmp_path / "other.db"):  # an unrelated one works on
        journal = SQLiteJournal(path)
        with pytest.raises(JournalFailure):
            await journal.append("loop", numbered(1), 0)
        path.rmdir()
        assert await journal.append("loop", numbered(1), 0) == 1
        await journal.close()


@contextmanager
def read_only(files: dict[str, bytes]) -> Generator[Path]:
    """A folder with files that this process may read, but not write: root becomes nobody for the block."""
    root = os.geteuid() == 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for file, contents in files.items():
            (folder / file).write_bytes(contents)
            (folder / file).chmod(0o444)
        folder.chmod(0o555)
        if root:
            os.seteuid(65534)
        try:
            yield folder
        finally:
            if root:
                os.seteuid(0)
            folder.chmod(0o755)


async def test_a_folder_that_may_not_be_written_is_refused() -> None:
    with read_only({}) as folder:
        error = await refusal(folder / "runs.db")
        assert error.details["sqlite"].startswith("SQLITE_CANTOPEN")
        assert "may write" in str(error)
        assert "folder cannot be made" in str(await refusal(folder / "new" / "runs.db"))


async def test_a_file_that_may_not_be_written_is_refused(path: Path) -> None:
    async with SQLiteJournal(path) as journal:
        await journal.append("loop", numbered(1), 0)
    before = path.read_bytes()
    with read_only({"runs.db": before}) as folder:
        journal = SQLiteJournal(folder / "runs.db")
        with pytest.raises(JournalFailure, match=r"permissions|may write"):
            await journal.append("loop", numbered(1, 1), 1)
        await journal.close()
        assert (folder / "runs.db").read_bytes() == before


async def test_an_old_sqlite_is_refused(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite3, "sqlite_version_info", (3, 36, 0))
    with pytest.raises(UserError, match=r"needs SQLite 3\.37"):
        await SQLiteJournal(path).loops()
    assert not path.exists()


@pytest.mark.parametrize("wrong", ["", ":memory:", "a\0b"])
def test_a_path_that_names_no_file_is_refused(wrong: str) -> None:
    with pytest.raises(UserError, match="names no file"):
        SQLiteJournal(wrong)


@pytest.mark.parametrize("wrong", ["off", "FULL", "extra", ""])
def test_another_synchronous_is_refused(path: Path, wrong: Any) -> None:
    with pytest.raises(UserError, match="synchronous"):
        SQLiteJournal(path, synchronous=wrong)


@pytest.mark.parametrize(
    "wrong",
    [{"busy_timeout": -1}, {"busy_timeout": float("nan")}, {"poll_interval": 0}, {"poll_interval": -0.1}],
)
def test_times_that_make_no_sense_are_refused(path: Path, wrong: dict[str, float]) -> None:
    with pytest.raises(UserError, match="seconds"):
        SQLiteJournal(path, **wrong)  # pyright: ignore[reportArgumentType]
