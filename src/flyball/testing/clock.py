"""A clock that tests move by hand."""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Callable
from itertools import count


class FakeTimer:
    """A call that waits for `FakeClock.advance`."""

    __slots__ = ("callback",)

    def __init__(self, callback: Callable[[], None]) -> None:
        self.callback: Callable[[], None] | None = callback

    def cancel(self) -> None:
        """Do not make the call."""
        self.callback = None


class FakeClock:
    """Time that stands still until it is moved. Timers that fall due are called in their order."""

    def __init__(self, now: float = 1_700_000_000.0) -> None:
        self._now = now
        self._timers: list[tuple[float, int, FakeTimer]] = []
        self._order = count()

    def now(self) -> float:
        """The time that it was moved to."""
        return self._now

    def call_at(self, when: float, callback: Callable[[], None]) -> FakeTimer:
        """Call back when time has been moved there; at once (from the event loop) if it is past."""
        timer = FakeTimer(callback)
        if when <= self._now:
            asyncio.get_running_loop().call_soon(self._fire, timer)
        else:
            heapq.heappush(self._timers, (when, next(self._order), timer))
        return timer

    async def advance(self, seconds: float) -> None:
        """Move time on, calling what falls due on the way, and let what was waiting for it run."""
        until = self._now + seconds
        while self._timers and self._timers[0][0] <= until:
            when, _, timer = heapq.heappop(self._timers)
            self._now = max(self._now, when)
            self._fire(timer)
            await asyncio.sleep(0)
        self._now = until
        await asyncio.sleep(0)

    @staticmethod
    def _fire(timer: FakeTimer) -> None:
        if timer.callback is not None:
            timer.callback()
