"""The machine's own clock, and how to wait by a clock."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from flyball.core.clock import Clock, Timer


class SystemClock:
    """Time as the operating system tells it, timers from the running event loop."""

    __slots__ = ()
    now = staticmethod(time.time)

    def call_at(self, when: float, callback: Callable[[], None]) -> Timer:
        """Call back at a time."""
        return asyncio.get_running_loop().call_later(max(0.0, when - time.time()), callback)


SYSTEM_CLOCK = SystemClock()


async def sleep(seconds: float, clock: Clock = SYSTEM_CLOCK) -> None:
    """Come back after so many seconds of a clock; at once where there are none. Cancelling ends it."""
    if seconds <= 0:
        return
    over: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def end() -> None:
        if not over.done():
            over.set_result(None)

    timer = clock.call_at(clock.now() + seconds, end)
    try:
        await over
    finally:
        timer.cancel()
