"""SQLiteJournal: a Journal in one file."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import TypeVar

from flyball.core.errors import JournalCorrupt, JournalFailure, LoopNotFound, UserError
from flyball.core.events import Event
from flyball.orchestrate.journal import Claim
from flyball.runtime.sqlite.claims import FileClaims
from flyball.runtime.sqlite.faults import SQLITE_ERRORS, fault, is_busy
from flyball.runtime.sqlite.file import FileSettings
from flyball.runtime.sqlite.group import conflict
from flyball.runtime.sqlite.handle import Handle
from flyball.runtime.sqlite.integrity import problems
from flyball.runtime.sqlite.reader import Reader
from flyball.runtime.sqlite.record import events_of, rows_of, seed_of
from flyball.runtime.sqlite.schema import Synchronous

T = TypeVar("T")

_DECODED_AT_ONCE = 1000
"""How many events are decoded before other tasks get their turn."""
_RETRY = 0.005
_ROOM = 8 << 20
"""Bytes that a disk must have left for a journal that is to be written to: its log alone may take so much."""


class SQLiteJournal:
    """A journal in one SQLite file, shared by any number of loops, tasks, threads and processes of a machine.

    `synchronous` says what a finished append survives:

    - `"full"` (the default): power loss. Each commit waits for the disk, in a thread of the journal's own,
      and appends that come meanwhile share the next commit.
    - `"normal"`: `kill -9` and any crash of the process, but at power loss the last appends may be missing;
      the rest is intact. A commit then costs some 20 µs, less than handing it to a thread, so it is made in
      place; only what has to wait (for a lock, for the disk) goes to the thread.

    In neither does an event loop wait for an fsync or for another process's lock. `busy_timeout` is how many
    seconds an append waits while others hold the file locked; `poll_interval` is how often those who `wait`
    look for other processes' appends.

    The file is opened, and its folder made, at the first use. The journal may be used in several event loops
    and threads, and after a fork (the child opens the file for itself; forking while it is in use is still
    unwise). It must not lie on a network file system. Close it with `close()` or `async with`; if that is
    forgotten, nothing is lost.

    A cancelled `append` is decided when CancelledError leaves it: it is in the journal, or never will be.

    Raises:
        UserError: `synchronous` is another word, a time is negative, or the path is no file's.
    """

    __slots__ = ("__weakref__", "_claims", "_handle", "_settings")

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        synchronous: Synchronous = "full",
        busy_timeout: float = 5.0,
        poll_interval: float = 0.05,
    ) -> None:
        if synchronous not in ("full", "normal"):
            raise UserError(
                f"synchronous={synchronous!r}: use 'full' (survives power loss) or 'normal' (survives a "
                "crash of the process); with 'off' a power loss could damage the whole file"
            )
        if not busy_timeout >= 0 or not poll_interval > 0:
            raise UserError(
                f"busy_timeout={busy_timeout} and poll_interval={poll_interval} are seconds: "
                "at least 0, and more than 0"
            )
        name = os.fspath(path)
        if not name or name == ":memory:" or "\0" in name:
            raise UserError(f"path={name!r} names no file: name one, or use MemoryJournal to keep nothing")
        self._settings = FileSettings(
            os.path.abspath(os.path.expanduser(name)), synchronous, busy_timeout, poll_interval
        )
        self._handle = Handle(self._settings)
        self._claims = FileClaims(self._settings.path)

    def __repr__(self) -> str:
        return f"SQLiteJournal({self.path!r}, synchronous={self._settings.synchronous!r})"

    @property
    def path(self) -> str:
        """The file."""
        return self._settings.path

    async def append(self, loop_id: str, events: Sequence[Event], expected: int) -> int:
        """See `Journal.append`. No events: only checks that the loop has as many as expected."""
        rows = rows_of(loop_id, events, expected)
        if not rows:
            if (actual := await self.size(loop_id)) != expected:
                raise conflict(loop_id, expected, actual)
            return expected
        opened = self._handle.opened or await self._handle.open()
        length = expected + len(rows)
        if self._settings.synchronous == "normal" and opened.store.append_now(rows):
            if opened.store.log_is_long:
                self._handle.flush_soon()
            opened.watch.notify(loop_id, length)
            return length
        pending = opened.group.submit(rows)
        self._handle.flush_soon()
        try:
            await pending.outcome()
        finally:
            if pending.committed:
                opened.watch.notify(loop_id, length)
        return length

    async def read(self, loop_id: str, start: int = 0) -> list[Event]:
        """See `Journal.read`.

        Raises:
            JournalCorrupt: a number is missing, or bytes are not those that were written. It names the event.
            JournalTooNew: a newer flyball wrote the file, or one of the events.
            UserError: `start` is negative, or the loop id cannot be one.
        """
        seed_of(loop_id)
        if start < 0:
            raise UserError(f"start={start}: events are numbered from 0")
        rows = await self._asked(lambda reader: reader.rows(loop_id, start), f"read loop {loop_id!r}")
        events: list[Event] = []
        for begin in range(0, len(rows), _DECODED_AT_ONCE):
            if begin:
                await asyncio.sleep(0)
            part = rows[begin : begin + _DECODED_AT_ONCE]
            events += events_of(part, self.path, loop_id, start + begin)
        return events

    async def wait(self, loop_id: str, length: int, timeout: float | None = None) -> bool:  # noqa: ASYNC109
        """See `Journal.wait`. Other processes' appends are noticed within the poll interval.

        Raises:
            UserError: the journal was closed meanwhile.
        """
        watch = (self._handle.opened or await self._handle.open()).watch
        waiter = watch.enter(loop_id, length)
        try:
            if await self.size(loop_id) > length:
                return True
            async with asyncio.timeout(timeout):
                await waiter.grown
        except TimeoutError:
            return False
        finally:
            watch.leave(waiter)
        return True

    async def loops(self, before: str = "", limit: int | None = None) -> list[str]:
        """See `Journal.loops`: the one whose first event came last is first."""
        if before:
            seed_of(before)
        names = await self._asked(lambda reader: reader.loops(before, limit), "list the loops")
        if names is None:
            raise LoopNotFound(f"there is no loop {before!r} in {self.path}", loop_id=before)
        try:
            return [name.decode() for name in names]
        except UnicodeDecodeError as error:
            raise JournalCorrupt(
                f"{self.path}: the name of a loop is damaged ({error}): restore a copy of the file",
                path=self.path,
            ) from error

    async def sizes(self, loop_ids: Sequence[str]) -> list[int]:
        """See `Journal.sizes`."""
        for loop_id in loop_ids:
            seed_of(loop_id)
        return await self._asked(lambda reader: reader.sizes(loop_ids), "read the sizes of loops")

    async def size(self, loop_id: str) -> int:
        """How many events the loop has; 0 for an unknown one."""
        seed_of(loop_id)
        return await self._asked(lambda reader: reader.size(loop_id), f"read loop {loop_id!r}")

    def claim(self, loop_id: str) -> Claim | None:
        """See `Claimable.claim`: known to all processes that use the file."""
        return self._claims.claim(loop_id)

    def is_claimed(self, loop_id: str) -> bool:
        """See `Claimable.is_claimed`."""
        return self._claims.is_claimed(loop_id)

    async def delete(self, loop_id: str) -> int:
        """Remove a loop for good; returns how many events it had. Their space in the file is used again.

        Raises:
            JournalFailure: it could not be removed, and all of it is still there.
        """
        seed_of(loop_id)
        return await self._handle.call(lambda file: file.delete(loop_id))

    async def integrity(self) -> list[str]:
        """What is wrong with the file, in words; nothing if it is sound. It reads all of it, in a thread."""
        await self._handle.open()
        return await asyncio.to_thread(problems, self.path, self._settings.busy_timeout)

    async def check(self) -> None:
        """Look whether runs can be recorded: the file is still there, and its disk has room for more.

        Raises:
            JournalFailure: they cannot; the message says why.
        """
        opened = self._handle.opened or await self._handle.open()
        reason = await asyncio.to_thread(_why_not, self.path, opened.identity)
        if reason:
            raise JournalFailure(f"{self.path}: {reason}", path=self.path)

    async def close(self) -> None:
        """Finish what was begun, and close the file. Using the journal afterwards is a UserError."""
        await self._handle.close()
        self._claims.close()

    async def __aenter__(self) -> SQLiteJournal:
        """The journal, with its file open.

        Raises:
            JournalFailure: it cannot be opened.
        """
        await self._handle.open()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close it."""
        await self.close()

    async def _asked(self, question: Callable[[Reader], T], doing: str) -> T:
        """The answer of the file's reading end; a lock, which can only be momentary, is waited out."""
        reader = (self._handle.opened or await self._handle.open()).reader
        deadline = time.monotonic() + self._settings.busy_timeout
        while True:
            try:
                return question(reader)
            except SQLITE_ERRORS as error:
                if not is_busy(error) or time.monotonic() >= deadline:
                    raise fault(error, self.path, doing) from error
            await asyncio.sleep(_RETRY)


def _why_not(path: str, identity: tuple[int, int]) -> str:
    """Why nothing more can be recorded in a file; empty if it can."""
    try:
        found, disk = os.stat(path), os.statvfs(path)
    except OSError as error:
        return f"the journal's file is gone ({error.strerror}): restart with the file in its place"
    if (found.st_dev, found.st_ino) != identity:
        return "another file has taken the journal's place: restart, to use that one"
    if (room := disk.f_bavail * disk.f_frsize) < _ROOM:
        return f"its disk is full: {room} bytes are left, of at least {_ROOM}"
    return ""
