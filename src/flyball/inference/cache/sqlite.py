"""SQLiteCache: answers in a file, which outlives the process and may be used by several at once."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, TypeVar
from weakref import finalize

from flyball.core.clock import Clock
from flyball.core.errors import ConfigurationFailure
from flyball.inference.cache.store import checked_size
from flyball.inference.system_clock import SYSTEM_CLOCK

if TYPE_CHECKING:
    from sqlite3 import Connection

T = TypeVar("T")

APPLICATION_ID = 0x666C7963
"""Marks the file as a cache of flyball's ("flyc"), in its header."""
FORMAT = 1
"""The format of the file, as its `user_version`."""

_TABLES = (
    "CREATE TABLE answer (seq INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, body BLOB NOT NULL, until REAL)",
    "CREATE INDEX answer_until ON answer (until) WHERE until IS NOT NULL",
    f"PRAGMA application_id = {APPLICATION_ID}",
    f"PRAGMA user_version = {FORMAT}",
)
_PAUSE = 0.01


class SQLiteCache:
    """Answers in a SQLite file. Where there are more than `max_entries` the oldest goes.

    The file is opened when it is first used, and again after `aclose`. Whatever touches it runs in a thread
    of its own, one thing after the other. An answer that was kept outlives a process that is killed; a
    machine that loses its power may lose the last ones.

    Args:
        path: the file; it and its folder are made if they are not there.
        max_entries: how many answers are kept.
        timeout: how many seconds to wait while others hold the file locked.
        clock: tells the time, for tests; processes that share a file share its time.

    Raises:
        UserError: `max_entries` is no whole number from 1.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        max_entries: int = 10_000,
        *,
        timeout: float = 5.0,
        clock: Clock | None = None,
    ) -> None:
        name: str = os.fspath(path)
        self.path = os.path.abspath(os.path.expanduser(name))
        self.max_entries = checked_size(max_entries)
        self._clock = clock or SYSTEM_CLOCK
        self._file = _File(self.path, timeout)
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="flyball-cache")
        finalize(self, self._file.close)

    async def get(self, key: str) -> bytes | None:
        """See `AnswerStore.get`.

        Raises:
            ConfigurationFailure: the path is that of another kind of file.
            sqlite3.Error, OSError: the file cannot be read.
        """
        now = self._clock.now()
        return await self._in_thread(lambda: self._file.get(key, now))

    async def put(self, key: str, answer: bytes, ttl: float | None = None) -> None:
        """See `AnswerStore.put`.

        Raises:
            ConfigurationFailure: the path is that of another kind of file.
            sqlite3.Error, OSError: the file cannot be written.
        """
        now = self._clock.now()
        until = None if ttl is None else now + ttl
        await self._in_thread(lambda: self._file.put(key, answer, until, now, self.max_entries))

    async def aclose(self) -> None:
        """Close the file. Closing twice does no harm, and it is opened again where it is used again."""
        await self._in_thread(self._file.close)

    async def _in_thread(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)


class _File:
    """The file as one process has it open. All of it runs in one thread, but for `close` at the very end."""

    __slots__ = ("_connection", "_path", "_timeout")

    def __init__(self, path: str, timeout: float) -> None:
        self._path = path
        self._timeout = timeout
        self._connection: Connection | None = None

    def get(self, key: str, now: float) -> bytes | None:
        row = (
            self._opened()
            .execute("SELECT body FROM answer WHERE key = ? AND (until IS NULL OR until > ?)", (key, now))
            .fetchone()
        )
        return None if row is None else row[0]

    def put(self, key: str, body: bytes, until: float | None, now: float, most: int) -> None:
        connection = self._opened()
        with connection:  # commits, or rolls back where it fails
            connection.execute("BEGIN IMMEDIATE")
            connection.execute("DELETE FROM answer WHERE until <= ?", (now,))
            connection.execute(
                "INSERT INTO answer (key, body, until) VALUES (?, ?, ?) "
                "ON CONFLICT (key) DO UPDATE SET body = excluded.body, until = excluded.until",
                (key, body, until),
            )
            # Their numbers have gaps where some were past their time: it may be fewer, and is never more.
            connection.execute("DELETE FROM answer WHERE seq <= (SELECT max(seq) FROM answer) - ?", (most,))

    def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _opened(self) -> Connection:
        if self._connection is None:
            import sqlite3

            os.makedirs(os.path.dirname(self._path), exist_ok=True)
            connection = sqlite3.connect(
                self._path, timeout=self._timeout, isolation_level=None, check_same_thread=False
            )
            try:
                self._prepare(connection)
            except sqlite3.DatabaseError as error:
                connection.close()
                if error.sqlite_errorname == "SQLITE_NOTADB":
                    raise self._foreign("is no SQLite file") from error
                raise
            except BaseException:
                connection.close()
                raise
            self._connection = connection
        return self._connection

    def _prepare(self, connection: Connection) -> None:
        """Make the tables where the file is new.

        Raises:
            ConfigurationFailure: it is somebody else's.
        """
        connection.execute("PRAGMA synchronous = NORMAL")
        with connection:
            connection.execute("BEGIN IMMEDIATE")
            whose = connection.execute("PRAGMA application_id").fetchone()[0]
            if whose == 0 and not connection.execute("SELECT 1 FROM sqlite_master").fetchone():
                for statement in _TABLES:
                    connection.execute(statement)
            elif whose != APPLICATION_ID:
                raise self._foreign("is another application's database")
            elif (found := connection.execute("PRAGMA user_version").fetchone()[0]) != FORMAT:
                raise self._foreign(f"has the format {found}, and this flyball reads {FORMAT}")
        self._set_wal(connection)

    def _set_wal(self, connection: Connection) -> None:
        """Have readers and a writer not wait for each other; SQLite does not wait for the lock by itself."""
        import sqlite3

        until = time.monotonic() + self._timeout
        while True:
            try:
                connection.execute("PRAGMA journal_mode = WAL")
            except sqlite3.OperationalError as error:
                if not error.sqlite_errorname.startswith("SQLITE_BUSY") or time.monotonic() >= until:
                    raise
                time.sleep(_PAUSE)
            else:
                return

    def _foreign(self, what: str) -> ConfigurationFailure:
        return ConfigurationFailure(
            f"the cache {self._path} {what}: name another file, or remove it", path=self._path
        )
