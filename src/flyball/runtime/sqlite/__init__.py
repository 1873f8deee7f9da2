"""Loops kept in one SQLite file: durable on one machine, shared by its processes, no server.

    journal    SQLiteJournal, the Journal of this package
    schema     the file: how it is recognised, made and opened
    record     an event as a row: its bytes and its checksum
    reader     reads: snapshots that wait for nobody
    store      writes: the one connection that does, and its log
    group      appends that share a commit; pending: one of them, on its way
    watch      who waits for events, and how other processes' appends are noticed
    integrity  the whole file looked over
    file       reader, store, group and watch of one process; worker: the thread it all waits in
    handle     when the file is opened and let go
    faults     SQLite's errors as flyball's

Rules:
- nothing that can block on a disk or a lock runs in an event loop's thread;
- a row is never changed: the schema itself refuses doubles and gaps, whoever writes;
- every sqlite3.Error leaves this package as a JournalFailure that names the file and what to do.
"""

from __future__ import annotations

from flyball.runtime.sqlite.journal import SQLiteJournal

__all__ = ["SQLiteJournal"]
