"""The journal's file as one process has it open: its connections, and the thread that waits for the disk."""

from __future__ import annotations

import os
import sqlite3
import time
from contextlib import ExitStack, closing
from typing import NamedTuple

from msgspec import Struct

from flyball.runtime.sqlite.faults import SQLITE_ERRORS, fault
from flyball.runtime.sqlite.group import GroupCommit
from flyball.runtime.sqlite.reader import Reader
from flyball.runtime.sqlite.schema import Synchronous, connect
from flyball.runtime.sqlite.store import Store, patiently
from flyball.runtime.sqlite.watch import Sight, Watch
from flyball.runtime.sqlite.worker import Worker


class FileSettings(Struct, frozen=True):
    """Which file, and how it is used; times are in seconds."""

    path: str
    synchronous: Synchronous
    busy_timeout: float
    poll_interval: float


class OpenFile(NamedTuple):
    """What one reads, writes and waits with."""

    reader: Reader
    store: Store
    group: GroupCommit
    watch: Watch
    identity: tuple[int, int]
    """Which file it is: another may have its name by now."""


class JournalFile:
    """Opens, writes and closes one file, in a thread of its own.

    Everything here runs in that thread, but `flush_soon` and `abandon`.
    """

    __slots__ = ("_opened", "_settings", "worker")

    def __init__(self, settings: FileSettings) -> None:
        self._settings = settings
        self._opened: OpenFile | None = None
        self.worker = Worker(f"SQLiteJournal({settings.path})")

    def open(self) -> OpenFile:
        """Open the file, if it is not open yet.

        Raises:
            JournalFailure: it cannot be opened, or is no journal of ours. It may be tried again.
        """
        if self._opened is None:
            path = self._settings.path
            with ExitStack() as undo:
                reading, writing, checkpointing = [
                    undo.enter_context(closing(self._connect())) for _ in range(3)
                ]
                reader, store = Reader(reading), Store(writing, checkpointing, path)
                undo.pop_all()
            group = GroupCommit(store, path, self._settings.busy_timeout)
            watch = Watch(Sight(path, store.data_version, reader.size), self._settings.poll_interval)
            found = os.stat(path)
            self._opened = OpenFile(reader, store, group, watch, (found.st_dev, found.st_ino))
        return self._opened

    def flush_soon(self) -> None:
        """Have the thread write what is queued, and move the log into the file if it has grown long."""
        self.worker.post(self._flush)

    def delete(self, loop_id: str) -> int:
        """Remove a loop; returns how many events it had.

        Raises:
            JournalFailure: it could not be removed, and all of it is still there.
        """
        store = self.open().store
        with store.lock:
            try:
                store.begin(self._deadline())
                removed = store.delete(loop_id)
                store.commit()
            except SQLITE_ERRORS as error:
                store.roll_back()
                raise fault(error, self._settings.path, f"delete loop {loop_id!r}") from error
        return removed

    def close(self) -> None:
        """Close the file; whatever is still queued is refused."""
        if self._opened is not None:
            opened, self._opened = self._opened, None
            opened.group.close()
            opened.reader.close()
            with opened.store.lock:
                opened.store.close()

    def abandon(self) -> None:
        """Close the file and end the thread: for a journal that nobody closed, as it is collected or at exit.

        Waits for it (not for long) where that holds up no event loop, so that a script leaves a tidy file.
        """
        if self.worker.is_ours:
            self.worker.post(self.close)
            self.worker.stop()
            self.worker.join_if_idle_here(timeout=1.0)

    def _flush(self) -> None:
        if self._opened is None:
            return
        self._opened.group.flush()
        store = self._opened.store
        if store.log_is_long:
            with store.lock:
                try:
                    store.checkpoint(self._deadline())
                except SQLITE_ERRORS:
                    return  # the events are safe in the log, and the next append meets the same disk

    def _connect(self) -> sqlite3.Connection:
        path, synchronous = self._settings.path, self._settings.synchronous
        try:
            return patiently(lambda: connect(path, synchronous), self._deadline())
        except SQLITE_ERRORS as error:
            raise fault(error, path, "open the journal") from error

    def _deadline(self) -> float:
        return time.monotonic() + self._settings.busy_timeout
