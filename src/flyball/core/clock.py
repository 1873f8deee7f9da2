"""Where time comes from. Whatever needs the time takes a clock, so that tests can hold it still."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol


class Timer(Protocol):
    """A call that was put off."""

    def cancel(self) -> None:
        """Do not make it; harmless if it was made already."""
        ...


class Clock(Protocol):
    """Tells the time, and calls back at a time."""

    def now(self) -> float:
        """The seconds since the epoch."""
        ...

    def call_at(self, when: float, callback: Callable[[], None]) -> Timer:
        """Call back at a time (at once, if it is past), in the running event loop."""
        ...
