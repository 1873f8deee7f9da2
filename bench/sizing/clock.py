"""What happens next: a heap of times, and processes that wait by yielding what they wait for."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Generator
from typing import TypeAlias

Then: TypeAlias = Callable[[], None]
Wait: TypeAlias = Callable[[Then], None]
"""Something that can be waited for: it is given what to do when it has come."""
Process: TypeAlias = Generator[Wait, None, None]


class Clock:
    """The time, and what is to come. Of two things at one time the one that was planned first is first."""

    def __init__(self) -> None:
        self.now = 0.0
        self._heap: list[tuple[float, int, Then]] = []
        self._planned = 0

    def at(self, when: float, then: Then) -> None:
        """Do something at a time, or now if that is over."""
        self._planned += 1
        heapq.heappush(self._heap, (max(when, self.now), self._planned, then))

    def until(self, when: float) -> Wait:
        """A wait for a time."""
        return lambda then: self.at(when, then)

    def run(self) -> None:
        """Go on until nothing is to come."""
        heap = self._heap
        while heap:
            self.now, _, then = heapq.heappop(heap)
            then()


class Running:
    """A process under way. One that is stopped does not go on, whatever it has set in motion."""

    def __init__(self, process: Process, ended: Then) -> None:
        self._process, self._ended = process, ended
        self._stopped = False
        self._go_on()

    def stop(self) -> None:
        """As a kill does: at once, and with nothing said."""
        self._stopped = True

    def _go_on(self) -> None:
        if self._stopped:
            return
        try:
            wait = next(self._process)
        except StopIteration:
            self._ended()
        else:
            wait(self._go_on)
