"""A journal's hold on its file: opened at first use and anew after a fork, let go when nobody needs it."""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable
from typing import TypeVar

from flyball.core.errors import UserError
from flyball.runtime.sqlite.file import FileSettings, JournalFile, OpenFile

T = TypeVar("T")

_inherited: list[object] = []
"""What a forked child got from its parent: SQLite forbids the child to use or close it, so it is kept."""


class Handle:
    """Opens the file when it is needed. Safe in several threads and event loops.

    The lock makes sure that nothing is asked of the file's thread after it was told to stop.
    """

    __slots__ = ("__weakref__", "_closed", "_file", "_finalizer", "_lock", "_opened", "_pid", "_settings")

    def __init__(self, settings: FileSettings) -> None:
        self._settings = settings
        self._closed = False
        self._start_anew()

    def _start_anew(self) -> None:
        self._pid = os.getpid()
        self._lock = threading.Lock()
        self._file: JournalFile | None = None
        self._opened: OpenFile | None = None
        self._finalizer: weakref.finalize[..., Handle] | None = None

    @property
    def opened(self) -> OpenFile | None:
        """The open file, if it is open in this process."""
        return self._opened if self._pid == os.getpid() else None

    async def open(self) -> OpenFile:
        """The open file.

        Raises:
            JournalFailure: it cannot be opened. It may be tried again.
            UserError: the journal was closed.
        """
        opened = await self.call(JournalFile.open)
        with self._lock:
            if self._closed:
                raise self._refusal()
            self._opened = opened
        return opened

    async def call(self, action: Callable[[JournalFile], T]) -> T:
        """Do something with the file, in its thread.

        Raises:
            UserError: the journal was closed.
        """
        self._part_from_parent()
        with self._lock:
            if self._closed:
                raise self._refusal()
            file = self._file
            if file is None:
                file = self._file = JournalFile(self._settings)
                self._finalizer = weakref.finalize(self, JournalFile.abandon, file)
            result = file.worker.call(lambda: action(file))
        return await result

    def flush_soon(self) -> None:
        """Have the thread write what is queued, unless the journal was closed: then that was refused."""
        with self._lock:
            if self._file is not None:
                self._file.flush_soon()

    async def close(self) -> None:
        """Write what is queued, close the file and end the thread. A second time does nothing."""
        self._part_from_parent()
        with self._lock:
            self._closed = True
            file, opened, finalizer = self._file, self._opened, self._finalizer
            self._file = self._opened = self._finalizer = None
            if file is None:
                return
            closing = file.worker.call(file.close)
            file.worker.stop()
        if finalizer is not None:
            finalizer.detach()
        if opened is not None:
            opened.watch.close(self._refusal())
        await closing
        file.worker.join()

    def _part_from_parent(self) -> None:
        """In a forked child, which has no threads but the one that is here: begin as if nothing were open."""
        if self._pid != os.getpid():
            if self._finalizer is not None:
                self._finalizer.detach()
            _inherited.append((self._file, self._opened))
            self._start_anew()

    def _refusal(self) -> UserError:
        return UserError(f"{self._settings.path}: the journal was closed: make another SQLiteJournal")
