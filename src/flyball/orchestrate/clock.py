"""The machine's own clock."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from flyball.core.clock import Timer


class SystemClock:
    """Time as the operating system tells it, timers from the running event loop."""

    __slots__ = ()
    now = staticmethod(time.time)

    def call_at(self, when: float, callback: Callable[[], None]) -> Timer:
        """Call back at a time."""
        return asyncio.get_running_loop().call_later(max(0.0, when - time.time()), callback)


SYSTEM_CLOCK = SystemClock()
