"""Journal: where a loop's events are kept, and the one in memory."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from itertools import dropwhile, islice
from typing import Protocol, runtime_checkable

from flyball.core.errors import JournalConflict, LoopNotFound, UserError
from flyball.core.events import Event, Started


@runtime_checkable
class Journal(Protocol):
    """Append-only lists of events, one a loop.

    Guarantees: an append is all or nothing, and durable (as durable as the journal is) when it returns; it
    happens only if the loop has exactly `expected` events, so of two writers one wins and the other gets
    JournalConflict; what was appended is read back equal and in order; loops do not disturb each other.
    `flyball.testing.conformance.JournalConformance` checks an implementation.
    """

    async def append(self, loop_id: str, events: Sequence[Event], expected: int) -> int:
        """Append events to a loop that has `expected` events now; returns how many it has then.

        Raises:
            JournalConflict: the loop has another number of events. Nothing was written.
            JournalFailure: it could not be written (a full disk, a lock). Nothing was written.
        """
        ...

    async def read(self, loop_id: str, start: int = 0) -> list[Event]:
        """The loop's events from number `start` on; none for an unknown loop.

        Raises:
            JournalTooNew, JournalCorrupt: they cannot be read.
        """
        ...

    async def wait(self, loop_id: str, length: int, timeout: float | None = None) -> bool:  # noqa: ASYNC109
        """Wait until the loop has more than `length` events; False if the time-out (seconds) came first."""
        ...

    async def loops(self, before: str = "", limit: int | None = None) -> list[str]:
        """The ids of the loops, the newest first: all of them, or those that began before one, and no more
        than so many. Where a loop stands among the others is decided when it begins, and never changes.

        Raises:
            LoopNotFound: there is no loop `before`.
        """
        ...

    async def sizes(self, loop_ids: Sequence[str]) -> list[int]:
        """How many events some loops have, in their order; 0 for an unknown one. No event is read for it."""
        ...


class Claim:
    """That a loop is driven by whoever has this; see `Claimable`. One that is forgotten is released, too."""

    __slots__ = ("_release",)

    def __init__(self, release: Callable[[], object]) -> None:
        self._release: Callable[[], object] | None = release

    def release(self) -> None:
        """Let go of the loop. A second time does nothing."""
        release, self._release = self._release, None
        if release is not None:
            release()

    __del__ = release


@runtime_checkable
class Claimable(Protocol):
    """A journal that knows which of its loops are driven just now, by any process that uses it.

    A claim is a courtesy, and no lock: who drives a loop has one, and who would go on with loops by itself (a
    runtime, a server that was started again) leaves those alone that are claimed. What keeps two drivers
    apart is the journal: one that takes a loop over fences the other off, claimed or not. A claim ends with
    the process that has it, however that ends.
    """

    def claim(self, loop_id: str) -> Claim | None:
        """Claim a loop, whether or not it is there yet; None while somebody else has it."""
        ...

    def is_claimed(self, loop_id: str) -> bool:
        """Whether somebody has claimed a loop: in this process or in another."""
        ...


class MemoryJournal:
    """A journal in memory: for runs that need not outlive their process, and for tests.

    It belongs to one event loop, and to its thread.
    """

    __slots__ = ("_arrival", "_claimed", "_loops")

    def __init__(self, first: Started | None = None) -> None:
        """Make a journal: empty, or with the first event of a loop."""
        self._loops: dict[str, list[Event]] = {} if first is None else {first.loop_id: [first]}
        self._arrival: dict[str, asyncio.Event] | None = None
        self._claimed: set[str] | None = None

    async def append(self, loop_id: str, events: Sequence[Event], expected: int) -> int:
        """See `Journal.append`."""
        return self.put(loop_id, events, expected)

    def put(self, loop_id: str, events: Sequence[Event], expected: int) -> int:
        """`append`, at once: in memory there is nothing to wait for."""
        if not loop_id:
            raise UserError("a loop needs an id: the loop id is empty")
        loop = self._loops.get(loop_id)
        if loop is None and expected == 0:
            loop = list(events)
            if loop:
                self._loops[loop_id] = loop
        elif loop is not None and len(loop) == expected:
            loop.extend(events)
        else:
            there = 0 if loop is None else len(loop)
            raise JournalConflict(
                f"loop {loop_id!r} has {there} events, not {expected}: somebody else appended to it",
                loop_id=loop_id,
                expected=expected,
                actual=there,
            )
        if self._arrival and (arrival := self._arrival.pop(loop_id, None)) is not None:
            arrival.set()
        return len(loop)

    async def read(self, loop_id: str, start: int = 0) -> list[Event]:
        """See `Journal.read`."""
        return self._loops.get(loop_id, [])[start:]

    async def wait(self, loop_id: str, length: int, timeout: float | None = None) -> bool:  # noqa: ASYNC109
        """See `Journal.wait`."""
        try:
            async with asyncio.timeout(timeout):
                while len(self._loops.get(loop_id, ())) <= length:
                    if self._arrival is None:
                        self._arrival = {}
                    await self._arrival.setdefault(loop_id, asyncio.Event()).wait()
        except TimeoutError:
            return False
        return True

    async def loops(self, before: str = "", limit: int | None = None) -> list[str]:
        """See `Journal.loops`."""
        newest = reversed(self._loops)
        if before:
            if before not in self._loops:
                raise LoopNotFound(f"there is no loop {before!r} in the journal", loop_id=before)
            newest = islice(dropwhile(lambda loop_id: loop_id != before, newest), 1, None)
        return list(islice(newest, limit))

    async def sizes(self, loop_ids: Sequence[str]) -> list[int]:
        """See `Journal.sizes`."""
        return [len(self._loops.get(loop_id, ())) for loop_id in loop_ids]

    def claim(self, loop_id: str) -> Claim | None:
        """See `Claimable.claim`."""
        if self._claimed is None:
            self._claimed = set()
        if loop_id in self._claimed:
            return None
        self._claimed.add(loop_id)
        return Claim(partial(self._claimed.discard, loop_id))

    def is_claimed(self, loop_id: str) -> bool:
        """See `Claimable.is_claimed`."""
        return self._claimed is not None and loop_id in self._claimed
