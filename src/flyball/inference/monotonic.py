"""A clock for waiting: time that is never put back."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from flyball.core.clock import Timer


class MonotonicClock:
    """Time that only goes forward, timers from the running event loop. It tells no date."""

    __slots__ = ()
    now = staticmethod(time.monotonic)

    def call_at(self, when: float, callback: Callable[[], None]) -> Timer:
        """Call back at a time."""
        return asyncio.get_running_loop().call_later(max(0.0, when - time.monotonic()), callback)


MONOTONIC = MonotonicClock()
