"""The connection that writes: appends in place, transactions, and the log's checkpoints.

Whoever uses it holds `lock`. An event loop's thread only ever tries for it, and does without if
it is taken; the journal's thread waits for it, for other processes' locks, and for the disk.
"""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from collections.abc import Callable, Sequence
from typing import TypeVar

from flyball.runtime.sqlite.faults import SQLITE_ERRORS, is_busy
from flyball.runtime.sqlite.reader import size
from flyball.runtime.sqlite.record import Row
from flyball.runtime.sqlite.schema import pragma, roll_back, transaction

T = TypeVar("T")

_MOST_ROWS = 4
"""How many rows one statement inserts, which is atomic by itself; more need a transaction around them."""
_INSERTS = [
    "INSERT INTO event (loop_id, n, crc, body) VALUES " + ", ".join(["(?, ?, ?, ?)"] * count)
    for count in range(_MOST_ROWS + 1)
]
_PAGE = 4096
_LONG_LOG = 1000 * _PAGE
"""How long the log may be before it is moved into the file: SQLite's own number."""
_LONGEST_LOG = 2 * _LONG_LOG
"""How long it may be while somebody still appends in place."""
_SHORTEST_PAUSE, _LONGEST_PAUSE = 0.001, 0.016


class Store:
    """Writes to the file. All methods but `append_now` and `data_version` ask that the lock be held."""

    __slots__ = ("_checkpointer", "_connection", "_data_version", "_logged", "lock")

    def __init__(self, connection: sqlite3.Connection, checkpointer: sqlite3.Connection, path: str) -> None:
        self._connection = connection
        self._checkpointer = checkpointer
        self._data_version = 0
        self._logged = _log_size(path)
        self.lock = threading.Lock()

    def append_now(self, rows: Sequence[Row]) -> bool:
        """Append in place, if that can be done at once. False: nothing was written, for whatever reason.

        One is that the log is much too long: who moves it into the file has not come to it, while others kept
        the processor and this connection. Who appends waits for that, as for anything that is queued.
        """
        if self._logged >= _LONGEST_LOG or not self.lock.acquire(blocking=False):
            return False
        try:
            if len(rows) <= _MOST_ROWS:
                values = rows[0] if len(rows) == 1 else [value for row in rows for value in row]
                self._connection.execute(_INSERTS[len(rows)], values)
            else:
                with transaction(self._connection, "BEGIN IMMEDIATE"):
                    self._connection.executemany(_INSERTS[1], rows)
            self._count(rows)
        except (*SQLITE_ERRORS, OverflowError):
            return False
        finally:
            self.lock.release()
        return True

    def data_version(self) -> int:
        """A number that changes when somebody else has written to the file: not this connection.

        While the connection is in use it is as of the last transaction's begin.
        """
        if self.lock.acquire(blocking=False):
            try:
                self._note_data_version()
            finally:
                self.lock.release()
        return self._data_version

    def begin(self, deadline: float) -> None:
        """Begin a transaction, waiting for other writers until the deadline (on the monotonic clock).

        Raises:
            sqlite3.Error: SQLITE_BUSY once the deadline has passed; anything else at once.
        """
        self.roll_back()  # whatever a failed one may have left
        patiently(lambda: self._connection.execute("BEGIN IMMEDIATE"), deadline)
        self._note_data_version()

    def insert(self, rows: Sequence[Row]) -> None:
        """Insert into the open transaction, all rows or none.

        Raises:
            sqlite3.IntegrityError: the first row's number is not the loop's next. The transaction goes on.
            sqlite3.Error, OverflowError: anything else. The transaction must be rolled back.
        """
        # Where the first row is the loop's next, so are the others: it is refused before any is written.
        self._connection.executemany(_INSERTS[1], rows)
        self._count(rows)

    def delete(self, loop_id: str) -> int:
        """Delete a loop's rows in the open transaction; returns how many they were."""
        return self._connection.execute("DELETE FROM event WHERE loop_id = ?", (loop_id,)).rowcount

    def size(self, loop_id: str) -> int:
        """How many events a loop has, as the open transaction sees it."""
        return size(self._connection, loop_id)

    def commit(self) -> None:
        """Make the transaction last."""
        self._connection.execute("COMMIT")

    def roll_back(self) -> None:
        """Leave no trace of the transaction, if there is one."""
        roll_back(self._connection)

    @property
    def log_is_long(self) -> bool:
        """Whether `checkpoint` is due."""
        return self._logged >= _LONG_LOG

    def checkpoint(self, deadline: float) -> None:
        """Move the log into the file, as far as readers allow. Nothing is lost if it fails: the log stays.

        Nobody can write meanwhile. Otherwise the log of a busy file might never be emptied; and SQLite before
        3.51.3 could, very rarely, damage a file whose log is begun anew by one process during another's
        checkpoint. It takes a second connection, because no transaction may be open in the one that does it.

        Raises:
            sqlite3.Error: it failed, and will be due again when the log has grown as much once more.
        """
        self._logged = 0
        self.begin(deadline)
        try:
            self._checkpointer.execute("PRAGMA wal_checkpoint(PASSIVE)")
        finally:
            self.roll_back()

    def close(self) -> None:
        """Close the connections; the last one of all processes moves the log into the file and removes it."""
        self._checkpointer.close()
        self._connection.close()

    def _note_data_version(self) -> None:
        self._data_version = pragma(self._connection, "data_version")

    def _count(self, rows: Sequence[Row]) -> None:
        # An estimate: a commit logs at least the page of the row and the page of its index entry.
        self._logged += 2 * _PAGE + sum([len(body) for _, _, _, body in rows])


def patiently(action: Callable[[], T], deadline: float) -> T:
    """Do something that a lock may prevent, again and again until the deadline (on the monotonic clock).

    Raises:
        sqlite3.Error: SQLITE_BUSY once the deadline has passed; anything else at once.
    """
    pause = _SHORTEST_PAUSE
    while True:
        try:
            return action()
        except sqlite3.Error as error:
            left = deadline - time.monotonic()
            if not is_busy(error) or left <= 0:
                raise
        time.sleep(min(pause, left))
        pause = min(2 * pause, _LONGEST_PAUSE)


def _log_size(path: str) -> int:
    try:
        return os.stat(f"{path}-wal").st_size
    except OSError:
        return 0
