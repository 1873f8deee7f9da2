"""Reading: on a connection of its own, which sees the last commit and waits for no writer."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Sequence

from flyball.runtime.sqlite.record import Found

_ROWS = "SELECT n, crc, body FROM event WHERE loop_id = ? AND n >= ? ORDER BY n"
_SIZE = "SELECT max(n) FROM event WHERE loop_id = ?"
# As bytes: what damage has made of a name must not fail inside sqlite3.
_LOOPS = "SELECT CAST(loop_id AS BLOB) FROM event WHERE n = 0 AND seq < ? ORDER BY seq DESC LIMIT ?"
_BEGAN = "SELECT seq FROM event WHERE loop_id = ? AND n = 0"
_LATEST = (1 << 63) - 1


class Reader:
    """Questions to the file, each of which takes microseconds a row.

    What is asked of one loop is one statement, thus one snapshot.

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

    def sizes(self, loop_ids: Sequence[str]) -> list[int]:
        """How many events some loops have."""
        with self._lock:
            return [size(self._connection, loop_id) for loop_id in loop_ids]

    def loops(self, before: str, limit: int | None) -> list[bytes] | None:
        """The names of loops as UTF-8, the newest first; None if the one that they are to be before is not
        there. Where a loop stands does not change, so two statements do no harm.
        """
        with self._lock:
            first = self._connection.execute(_BEGAN, (before,)).fetchone() if before else (_LATEST,)
            if first is None:
                return None
            most = -1 if limit is None else limit
            return [name for (name,) in self._connection.execute(_LOOPS, (*first, most))]

    def close(self) -> None:
        """Give the connection back. Nothing can be read afterwards."""
        with self._lock:
            self._connection.close()


def size(connection: sqlite3.Connection, loop_id: str) -> int:
    """How many events a loop has, as this connection sees it."""
    (last,) = connection.execute(_SIZE, (loop_id,)).fetchone()
    return 0 if last is None else last + 1
