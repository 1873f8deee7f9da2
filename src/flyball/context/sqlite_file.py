"""SQLiteFile: one file, or memory, that many tasks, threads and processes read and write. And word indexes.

The ground of all that this package keeps in SQLite. No event loop waits for the disk: work is done in a
thread, one piece at a time for each object. What was written is durable when the call has returned.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Sequence
from contextlib import closing
from threading import Lock
from typing import TYPE_CHECKING, TypeVar
from weakref import finalize

from flyball.core.errors import KnowledgeFailed, MissingLibrary

if TYPE_CHECKING:
    from sqlite3 import Connection, Cursor

T = TypeVar("T")

_TOKENIZER = "porter unicode61 remove_diacritics 2"


class SQLiteFile:
    """A SQLite file that is opened, and has its tables, from the beginning until `close`.

    Args:
        path: the file; it and its folder are made if they are not there. `:memory:` is none.
        tables: statements that make the tables where they are not there yet.
        called: what the file is, in errors.
        timeout: how many seconds a call waits while others hold the file locked.

    Raises:
        KnowledgeFailed: the file cannot be opened, or is none of SQLite's.
        MissingLibrary: this Python's SQLite has no full-text search.
    """

    def __init__(
        self, path: str | os.PathLike[str], tables: Sequence[str], *, called: str, timeout: float
    ) -> None:
        name = os.fspath(path)
        self.path = name if name == ":memory:" else os.path.abspath(os.path.expanduser(name))
        self._called = called
        self._lock = Lock()
        connection = self._opened(tables, timeout)
        self._connection: Connection | None = connection
        self._close = finalize(self, connection.close)

    async def read(self, work: Callable[[Connection], T]) -> T:
        """What comes of reading, in a thread.

        Raises:
            KnowledgeFailed: the file cannot be read, or is closed.
        """
        return await asyncio.to_thread(self._using, "read", work)

    async def write(self, work: Callable[[Cursor], T]) -> T:
        """What comes of writing, in a thread and in one transaction: all of it or nothing.

        Raises:
            KnowledgeFailed: the file cannot be written, or is closed.
        """
        return await asyncio.to_thread(self._using, "written", lambda connection: _whole(connection, work))

    def close(self) -> None:
        """Close the file. Closing twice does no harm."""
        with self._lock:
            self._connection = None
            self._close()

    def _opened(self, tables: Sequence[str], timeout: float) -> Connection:
        import sqlite3

        try:
            if self.path != ":memory:":
                os.makedirs(os.path.dirname(self.path), exist_ok=True)
            connection = sqlite3.connect(
                self.path, timeout=timeout, isolation_level=None, check_same_thread=False
            )
        except (sqlite3.Error, OSError, ValueError) as error:
            raise self._failed("opened", error) from error
        try:
            connection.execute("PRAGMA journal_mode=WAL")
            for table in tables:
                connection.execute(table)
        except sqlite3.Error as error:
            connection.close()
            if "fts5" in str(error):
                raise MissingLibrary(
                    "the SQLite of this Python has no full-text search (FTS5): use a Python whose SQLite has "
                    "it, or a knowledge base of your own"
                ) from error
            raise self._failed("opened", error) from error
        return connection

    def _using(self, doing: str, work: Callable[[Connection], T]) -> T:
        """Do something with the file, alone."""
        import sqlite3

        with self._lock:
            connection = self._connection
            if connection is None:
                raise KnowledgeFailed(f"{self._called} {self.path} is closed: open it anew", doing=doing)
            try:
                return work(connection)
            except sqlite3.Error as error:
                raise self._failed(doing, error) from error

    def _failed(self, doing: str, error: Exception) -> KnowledgeFailed:
        return KnowledgeFailed(
            f"{self._called} {self.path} could not be {doing}: {error}",
            retryable="locked" in str(error),
            doing=doing,
        )


def word_index(table: str, *columns: str) -> tuple[str, ...]:
    """Statements that make an index (FTS5) of the words in a table's columns, and keep it up by triggers.

    The index is called `<table>_words`, and has the table's `id` as its `rowid`. Words are found in any form
    that English gives them, and without accents. A row and its words are there together, or neither is. The
    names are the program's own, never a user's.
    """
    index, names = f"{table}_words", ", ".join(columns)
    new, old = (", ".join([f"{row}.{column}" for column in columns]) for row in ("new", "old"))
    return (
        f"CREATE VIRTUAL TABLE IF NOT EXISTS {index} USING fts5({names}, content='{table}', "
        f"content_rowid='id', tokenize='{_TOKENIZER}')",
        f"CREATE TRIGGER IF NOT EXISTS {index}_added AFTER INSERT ON {table} BEGIN "
        f"INSERT INTO {index} (rowid, {names}) VALUES (new.id, {new}); END",
        f"CREATE TRIGGER IF NOT EXISTS {index}_removed AFTER DELETE ON {table} BEGIN "
        f"INSERT INTO {index} ({index}, rowid, {names}) VALUES ('delete', old.id, {old}); END",
    )


def _whole(connection: Connection, work: Callable[[Cursor], T]) -> T:
    with closing(connection.cursor()) as cursor:
        cursor.execute("BEGIN IMMEDIATE")
        try:
            done = work(cursor)
        except BaseException:
            cursor.execute("ROLLBACK")
            raise
        cursor.execute("COMMIT")
        return done
