"""SQLite's errors as flyball's: which kind each is, and what a person can do about it."""

from __future__ import annotations

import sqlite3

from flyball.core.errors import JournalCorrupt, JournalFailure

_RESTORE = "restore a copy of it, or salvage what is left with the sqlite3 shell's .recover"

_KNOWN: dict[int, tuple[type[JournalFailure], str, str]] = {
    sqlite3.SQLITE_BUSY: (
        JournalFailure,
        "another writer held the file locked for longer than busy_timeout",
        "try again, or raise busy_timeout",
    ),
    sqlite3.SQLITE_FULL: (JournalFailure, "the disk is full", "free some space and try again"),
    sqlite3.SQLITE_IOERR: (
        JournalFailure,
        "the disk gave an I/O error",
        "free some space if it is full, else see the system's log",
    ),
    sqlite3.SQLITE_READONLY: (
        JournalFailure,
        "the file or its folder is read-only for this process",
        "change its permissions, or use another path",
    ),
    sqlite3.SQLITE_CANTOPEN: (
        JournalFailure,
        "the file cannot be opened",
        "check that its folder exists and that this process may write there",
    ),
    sqlite3.SQLITE_PERM: (
        JournalFailure,
        "this process may not use the file",
        "change its permissions, or use another path",
    ),
    sqlite3.SQLITE_NOMEM: (JournalFailure, "there is no memory left", "free some and try again"),
    sqlite3.SQLITE_TOOBIG: (
        JournalFailure,
        "an event is larger than SQLite takes (about 1 GB)",
        "keep large content outside the journal and refer to it",
    ),
    sqlite3.SQLITE_CORRUPT: (JournalCorrupt, "the file is damaged", _RESTORE),
    sqlite3.SQLITE_NOTADB: (
        JournalCorrupt,
        "the file is no SQLite database, or its header is damaged",
        f"use another path, or {_RESTORE}",
    ),
    sqlite3.SQLITE_ERROR: (JournalCorrupt, "the file's tables are not those of a journal", _RESTORE),
}

SQLITE_ERRORS = (sqlite3.Error, UnicodeDecodeError)
"""What calls of sqlite3 raise; it cannot decode its own message where that quotes damaged text."""


def is_busy(error: Exception) -> bool:
    """Whether somebody else holds the lock just now, so that trying again may help."""
    return _primary(error) == sqlite3.SQLITE_BUSY


def fault(error: Exception, path: str, doing: str) -> JournalFailure:
    """The error to raise: which file, what was being done, what was wrong, what to do next.

    Only a lock is `retryable`; details are `path` and `sqlite`, SQLite's own name for the error.
    """
    name: str = getattr(error, "sqlite_errorname", type(error).__name__)
    code = sqlite3.SQLITE_CORRUPT if isinstance(error, UnicodeDecodeError) else _primary(error)
    kind, wrong, remedy = _KNOWN.get(code, (JournalFailure, "SQLite refused", "see SQLite's message"))
    return kind(
        f"{path}: could not {doing}: {wrong} ({name}: {error}): {remedy}",
        retryable=is_busy(error),
        path=path,
        sqlite=name,
    )


def _primary(error: Exception) -> int:
    # Errors that the sqlite3 module raises by itself carry no code. The low byte is the primary code.
    return getattr(error, "sqlite_errorcode", -1) & 0xFF
