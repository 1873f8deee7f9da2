"""Reading: on a connection of its own, which sees the last commit and waits for no writer."""

from __future__ import annotations

import sqlite3
import threading

from flyball.runtime.sqlite.record import Found

_ROWS = "SELECT n, crc, body FROM event WHERE loop_id = ? AND n >= ? ORDER BY n"
_SIZE = "SELECT max(n) FROM event WHERE loop_id = ?"
# As bytes: what damage has made of a name must not fail inside sqlite3.
_LOOPS = "SELECT CAST(loop_id AS BLOB) FROM event WHERE n = 0 ORDER BY seq DESC"


class Reader:
    """Questions to the file. Each is one statement, thus one snapshot, and takes microseconds a row.

    It may be used from several threads. Raises sqlite3.Error as it comes; SQLITE_BUSY is possible, for a
    moment, while another process recovers the file after a crash or closes it.
    """

    __slots__ = ("_connection", "_lock")

    def __init__(self, connection: sqlite3.Connection) -> None:
        connection.execute("PRAGMA query_only = ON")
        self._connection = connection
        self._lock = threading.Lock()

    def rows(self, loop_id: str, start: int) -> list[Found]:
        """The loop's rows from number `start` on."""
        with self._lock:
            return self._connection.execute(_ROWS, (loop_id, start)).fetchall()

    def size(self, loop_id: str) -> int:
        """How many events the loop has."""
        with self._lock:
            return size(self._connection, loop_id)

    def loops(self) -> list[bytes]:
        """The names of all loops as UTF-8, the newest first."""
        with self._lock:
            return [name for (name,) in self._connection.execute(_LOOPS)]

    def close(self) -> None:
        """Give the connection back. Nothing can be read afterwards."""
        with self._lock:
            self._connection.close()


def size(connection: sqlite3.Connection, loop_id: str) -> int:
    """How many events a loop has, as this connection sees it."""
    (last,) = connection.execute(_SIZE, (loop_id,)).fetchone()
    return 0 if last is None else last + 1
