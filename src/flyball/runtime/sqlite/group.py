"""Group commit: appends that arrive while a commit is under way share the next one.

A commit that waits for the disk costs the same for one append as for a thousand. So the journal's thread
takes all that is queued into one transaction. Each append still stands or falls for itself: a conflict writes
nothing of its own and leaves the others alone, and a group that fails is tried again one by one.
"""

from __future__ import annotations

import sqlite3
import time
from collections import deque
from collections.abc import Iterable

from flyball.core.errors import JournalConflict, JournalFailure
from flyball.runtime.sqlite.faults import SQLITE_ERRORS, fault, is_busy
from flyball.runtime.sqlite.pending import PendingAppend
from flyball.runtime.sqlite.record import Row
from flyball.runtime.sqlite.store import Store
from flyball.runtime.sqlite.worker import tell


class GroupCommit:
    """The queue of appends, and how they are written."""

    __slots__ = ("_busy_timeout", "_closed", "_path", "_queue", "_store")

    def __init__(self, store: Store, path: str, busy_timeout: float) -> None:
        self._store = store
        self._path = path
        self._busy_timeout = busy_timeout
        self._queue: deque[PendingAppend] = deque()
        self._closed = False

    def submit(self, rows: list[Row]) -> PendingAppend:
        """Queue an append. Called in an event loop's thread; somebody must see to it that `flush` is run."""
        pending = PendingAppend(rows, time.monotonic() + self._busy_timeout)
        self._queue.append(pending)
        if self._closed:
            self.close()
        return pending

    def flush(self) -> None:
        """Write all that is queued. Called in the journal's thread."""
        while self._queue and not self._closed:
            with self._store.lock:
                settled = self._write_group()
            _deliver(settled)

    def close(self) -> None:
        """Refuse all that is queued, and whatever comes later."""
        self._closed = True
        _deliver(self._given_up(None))

    def _write_group(self) -> list[PendingAppend]:
        try:
            self._store.begin(self._queue[0].deadline)
        except Exception as error:
            # The queue is in the order of the deadlines; those that may still wait, wait on.
            until = time.monotonic() if is_busy(error) else None
            return self._given_up(error, until)
        # Taken only now: whatever came while a lock was waited for goes in with this commit.
        group = self._taken()
        try:
            for pending in group:
                self._insert(pending)
            self._store.commit()
        except Exception:
            # One of them may be to blame (too large, or the first that did not fit on the disk).
            self._store.roll_back()
            for pending in group:
                self._write_alone(pending)
        return group

    def _write_alone(self, pending: PendingAppend) -> None:
        pending.error = None
        try:
            self._store.begin(pending.deadline)
            self._insert(pending)
            self._store.commit()
        except Exception as error:
            pending.error = self._failure(error, pending)
            self._store.roll_back()

    def _insert(self, pending: PendingAppend) -> None:
        try:
            self._store.insert(pending.rows)
        except sqlite3.IntegrityError:
            loop_id, expected, _, _ = pending.rows[0]
            pending.error = conflict(loop_id, expected, self._store.size(loop_id))

    def _taken(self, until: float | None = None) -> list[PendingAppend]:
        """The appends whose deadline has come (or all), without those that were withdrawn."""
        taken: list[PendingAppend] = []
        while self._queue and (until is None or self._queue[0].deadline <= until):
            pending = self._queue.popleft()
            if pending.claim():
                taken.append(pending)
        return taken

    def _given_up(self, cause: Exception | None, until: float | None = None) -> list[PendingAppend]:
        given_up = self._taken(until)
        for pending in given_up:
            pending.error = self._failure(cause, pending)
        return given_up

    def _failure(self, cause: Exception | None, pending: PendingAppend) -> JournalFailure:
        doing = f"append to loop {pending.rows[0][0]!r} (nothing was written)"
        if isinstance(cause, SQLITE_ERRORS):
            failure = fault(cause, self._path, doing)
        else:
            wrong = "the journal was closed" if cause is None else repr(cause)
            failure = JournalFailure(f"{self._path}: could not {doing}: {wrong}", path=self._path)
        failure.__cause__ = cause
        return failure


def conflict(loop_id: str, expected: int, actual: int) -> JournalConflict:
    """The refusal of an append that expects another number of events."""
    return JournalConflict(
        f"loop {loop_id!r} has {actual} events, not {expected}: somebody else appended to it",
        loop_id=loop_id,
        expected=expected,
        actual=actual,
    )


def _deliver(settled: Iterable[PendingAppend]) -> None:
    """Wake the tasks that wait, with one call for each event loop."""
    by_loop: dict[int, list[PendingAppend]] = {}
    for pending in settled:
        by_loop.setdefault(id(pending.event_loop), []).append(pending)
    for group in by_loop.values():
        tell(group[0].event_loop, _settle, group)


def _settle(group: list[PendingAppend]) -> None:
    for pending in group:
        pending.settle()
