"""Who waits for a loop to grow, and how they learn of it.

Appends of this journal object wake them at once. Those of other processes are noticed by looking, several
times a second and only while somebody waits, at a number that SQLite changes with every foreign commit; only
when it has changed are the loops looked at.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import NamedTuple

from flyball.runtime.sqlite.faults import SQLITE_ERRORS, fault, is_busy
from flyball.runtime.sqlite.worker import tell


class Sight(NamedTuple):
    """What a watch can see of the file."""

    path: str
    data_version: Callable[[], int]
    size: Callable[[str], int]


class Waiter(NamedTuple):
    """Somebody who waits until a loop has more than `length` events."""

    loop_id: str
    length: int
    grown: asyncio.Future[None]


class Watch:
    """All who wait. Each event loop has a room of its own, which is used only in its thread."""

    __slots__ = ("_interval", "_rooms", "_sight")

    def __init__(self, sight: Sight, interval: float) -> None:
        self._sight = sight
        self._interval = interval
        self._rooms: dict[asyncio.AbstractEventLoop, _Room] = {}

    def enter(self, loop_id: str, length: int) -> Waiter:
        """Begin to wait. Look at the loop's size afterwards: it may have grown just before."""
        event_loop = asyncio.get_running_loop()
        room = self._rooms.get(event_loop)
        if room is None:
            room = self._rooms[event_loop] = _Room(event_loop, self._sight, self._interval)
        waiter = Waiter(loop_id, length, event_loop.create_future())
        room.enter(waiter)
        return waiter

    def leave(self, waiter: Waiter) -> None:
        """Wait no more."""
        event_loop = waiter.grown.get_loop()
        if self._rooms[event_loop].leave(waiter):
            del self._rooms[event_loop]

    def notify(self, loop_id: str, size: int) -> None:
        """A loop has grown to this size. Called in an event loop's thread."""
        if not self._rooms:
            return
        here = asyncio.get_running_loop()
        for event_loop, room in list(self._rooms.items()):
            if event_loop is here:
                room.notify(loop_id, size)
            else:
                tell(event_loop, room.notify, loop_id, size)

    def close(self, error: Exception) -> None:
        """Nothing more will come: all who wait get the error."""
        for event_loop, room in list(self._rooms.items()):
            tell(event_loop, room.fail, error)


class _Room:
    """Those who wait in one event loop."""

    __slots__ = ("_event_loop", "_interval", "_seen", "_sight", "_timer", "_waiters")

    def __init__(self, event_loop: asyncio.AbstractEventLoop, sight: Sight, interval: float) -> None:
        self._event_loop = event_loop
        self._sight = sight
        self._interval = interval
        self._seen: int | None = None
        self._waiters: dict[str, list[Waiter]] = {}
        self._timer = event_loop.call_later(interval, self._look)

    def enter(self, waiter: Waiter) -> None:
        self._waiters.setdefault(waiter.loop_id, []).append(waiter)

    def leave(self, waiter: Waiter) -> bool:
        """Whether the room is now empty."""
        waiters = self._waiters[waiter.loop_id]
        waiters.remove(waiter)
        if not waiters:
            del self._waiters[waiter.loop_id]
        if not self._waiters:
            self._timer.cancel()
        return not self._waiters

    def notify(self, loop_id: str, size: int) -> None:
        for waiter in self._waiters.get(loop_id, ()):
            if size > waiter.length and not waiter.grown.done():
                waiter.grown.set_result(None)

    def fail(self, error: Exception) -> None:
        for waiters in self._waiters.values():
            for waiter in waiters:
                if not waiter.grown.done():
                    waiter.grown.set_exception(error)

    def _look(self) -> None:
        """Look whether somebody else has written, and if so which loops have grown."""
        try:
            version = self._sight.data_version()
            if version != self._seen:
                for loop_id in self._waiters:
                    self.notify(loop_id, self._sight.size(loop_id))
                self._seen = version
        except SQLITE_ERRORS as error:
            if not is_busy(error):
                self.fail(fault(error, self._sight.path, "look for new events"))
                return
        self._timer = self._event_loop.call_later(self._interval, self._look)
