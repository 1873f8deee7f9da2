"""The whole file looked over: its pages, its numbers, its bytes."""

from __future__ import annotations

import sqlite3
import time
from itertools import groupby
from operator import itemgetter

from flyball.core.errors import JournalFailure, UserError
from flyball.runtime.sqlite.faults import SQLITE_ERRORS, fault
from flyball.runtime.sqlite.record import events_of
from flyball.runtime.sqlite.schema import connect
from flyball.runtime.sqlite.store import patiently

_ALL = "SELECT CAST(loop_id AS BLOB), n, crc, body FROM event ORDER BY loop_id, n"


def problems(path: str, busy_timeout: float) -> list[str]:
    """What is wrong with the file, in words; nothing if it is sound. Takes as long as reading all of it.

    SQLite looks at its pages first; if they are sound, every event of every loop is read and decoded.

    Raises:
        JournalFailure: it cannot be opened at all, or is no journal.
    """
    try:
        connection = patiently(lambda: connect(path, "normal"), time.monotonic() + busy_timeout)
        try:
            found = [text for (text,) in connection.execute("PRAGMA integrity_check") if text != "ok"]
            return found or _unreadable(connection, path)
        finally:
            connection.close()
    except SQLITE_ERRORS as error:
        raise fault(error, path, "check the journal") from error


def _unreadable(connection: sqlite3.Connection, path: str) -> list[str]:
    found: list[str] = []
    for name, rows in groupby(connection.execute(_ALL), key=itemgetter(0)):
        try:
            events_of((row[1:] for row in rows), path, name.decode(), 0)
        except (JournalFailure, UserError, UnicodeDecodeError) as error:
            found.append(str(error))
    return found
