"""The journal's file: how it is recognised, made and opened.

One table holds all events of all loops. What keeps a journal a journal stands in the schema, so that it holds
for every writer: a number is there once (UNIQUE), and only as the one after the last (the trigger). Hence a
plain INSERT is a compare-and-set: it goes in exactly if the loop has as many events as its number says.

Rows are stored in the order of arrival, whichever loop they are of: with many loops at work this writes the
fewest pages (a table clustered by loop needs twice the pages for events of 1.5 kB).

`application_id` and `user_version` say whose file it is and in which format. A file that is not ours is left
untouched.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any, Literal, TypeAlias

from flyball.core.errors import JournalCorrupt, JournalFailure, JournalTooNew, UserError

Synchronous: TypeAlias = Literal["full", "normal"]

APPLICATION_ID = 0x666C7962
"""Marks the file as flyball's ("flyb"), in its header."""
FORMAT = 1
"""The format of the file, as its `user_version`. A file with a greater one is refused."""

_SCHEMA = (
    """
    CREATE TABLE event (
        seq INTEGER PRIMARY KEY,
        loop_id TEXT NOT NULL,
        n INTEGER NOT NULL,
        crc INTEGER NOT NULL,
        body BLOB NOT NULL,
        UNIQUE (loop_id, n)
    ) STRICT
    """,
    "CREATE INDEX event_loops ON event (seq, loop_id) WHERE n = 0",
    """
    CREATE TRIGGER event_follows BEFORE INSERT ON event
    WHEN NEW.n IS NOT (SELECT coalesce(max(n) + 1, 0) FROM event WHERE loop_id = NEW.loop_id)
    BEGIN
        SELECT RAISE(ABORT, 'the number is not the next one of the loop');
    END
    """,
    f"PRAGMA application_id = {APPLICATION_ID}",
    f"PRAGMA user_version = {FORMAT}",
)


def connect(path: str, synchronous: Synchronous) -> sqlite3.Connection:
    """A connection to the journal at this path, which is made if nothing is there.

    It waits for no lock (sqlite3.OperationalError with SQLITE_BUSY instead), and never checkpoints by itself.

    Raises:
        JournalFailure: the path is a folder, or another application's database.
        JournalTooNew: a newer flyball made the file.
        sqlite3.Error: anything that SQLite could not do.
    """
    if sqlite3.sqlite_version_info < (3, 37):
        raise UserError(f"SQLiteJournal needs SQLite 3.37 or newer; this Python has {sqlite3.sqlite_version}")
    _make_folder(path)
    connection = sqlite3.connect(path, timeout=0, isolation_level=None, check_same_thread=False)
    try:
        connection.execute(f"PRAGMA synchronous = {synchronous}")
        # Where an fsync reaches only the drive's own memory (macOS), these reach the disk.
        connection.execute(f"PRAGMA fullfsync = {int(synchronous == 'full')}")
        connection.execute("PRAGMA checkpoint_fullfsync = 1")
        with transaction(connection, "BEGIN"):
            new = _is_new(connection, path)
        _set_wal(connection, path)
        if new:
            with transaction(connection, "BEGIN IMMEDIATE"):
                _create(connection, path)
        connection.execute("PRAGMA wal_autocheckpoint = 0")
    except BaseException:
        connection.close()
        raise
    return connection


@contextmanager
def transaction(connection: sqlite3.Connection, begin: str) -> Generator[None]:
    """A transaction around a block: committed at its end, rolled back if the block or the commit fails."""
    connection.execute(begin)
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        roll_back(connection)
        raise


def roll_back(connection: sqlite3.Connection) -> None:
    """End the transaction without a trace, if there still is one: SQLite ends some itself when they fail."""
    if connection.in_transaction:
        connection.execute("ROLLBACK")


def pragma(connection: sqlite3.Connection, statement: str) -> Any:
    """The one value that a pragma gives."""
    return connection.execute(f"PRAGMA {statement}").fetchone()[0]


def _make_folder(path: str) -> None:
    if os.path.isdir(path):
        raise JournalFailure(f"{path}: is a folder: a journal is one file, name that", path=path)
    folder = os.path.dirname(path)
    try:
        os.makedirs(folder, exist_ok=True)
    except OSError as error:
        raise JournalFailure(
            f"{path}: its folder cannot be made ({error}): make it, or use another path", path=path
        ) from error


def _is_new(connection: sqlite3.Connection, path: str) -> bool:
    """Whether the file is empty, and so may become a journal; it is refused if it is not ours."""
    application = pragma(connection, "application_id")
    version = pragma(connection, "user_version")
    (tables,) = connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
    if application == version == tables == 0:
        return True
    if application != APPLICATION_ID:
        raise JournalFailure(
            f"{path}: is the database of another application (application_id {application:#x}, "
            f"{tables} tables), and was left untouched: use another path",
            path=path,
        )
    if version > FORMAT:
        raise JournalTooNew(
            f"{path}: is in file format {version}; this flyball reads up to {FORMAT}: upgrade flyball",
            path=path,
            version=version,
            supported=FORMAT,
        )
    if version != FORMAT:
        raise JournalCorrupt(
            f"{path}: says that it is in file format {version}, which never was: restore a copy of it",
            path=path,
        )
    return False


def _set_wal(connection: sqlite3.Connection, path: str) -> None:
    mode = pragma(connection, "journal_mode = WAL")
    if mode != "wal":
        raise JournalFailure(
            f"{path}: its file system cannot do write-ahead logging (journal_mode stays {mode!r}): "
            "keep the journal on a local disk",
            path=path,
        )


def _create(connection: sqlite3.Connection, path: str) -> None:
    if _is_new(connection, path):  # still: another process may have been quicker
        for statement in _SCHEMA:
            connection.execute(statement)
