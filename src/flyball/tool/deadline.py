"""A time limit on a coroutine that costs nothing where the coroutine never waits.

Setting and cancelling a timer costs more than many tools do. asyncio cannot stop code that does not wait, so
a coroutine is first run up to where it waits; only then, if it has not ended, is the timer set, counted from
the beginning.
"""

from __future__ import annotations

from asyncio import Timeout, get_running_loop, timeout_at
from collections.abc import Coroutine, Generator
from typing import Any


class Deadline:
    """A time limit, in seconds, for one coroutine at a time."""

    __slots__ = ("_limit", "_scope")

    def __init__(self, limit: float) -> None:
        self._limit = limit
        self._scope: Timeout | None = None

    @property
    def passed(self) -> bool:
        """Whether the coroutine was cancelled because it took longer."""
        return self._scope is not None and self._scope.expired()

    async def run(self, running: Coroutine[Any, Any, Any]) -> Any:
        """What the coroutine gives.

        Raises:
            TimeoutError: it took longer than the limit, and was cancelled.
        """
        began = get_running_loop().time()
        try:
            waits_for = running.send(None)
        except StopIteration as ended:
            return ended.value
        async with timeout_at(began + self._limit) as self._scope:
            return await _Rest(running, waits_for)


class _Rest:
    """What is left of a coroutine that has run up to where it first waits."""

    __slots__ = ("_running", "_waits_for")

    def __init__(self, running: Coroutine[Any, Any, Any], waits_for: Any) -> None:
        self._running = running
        self._waits_for = waits_for

    def __await__(self) -> Generator[Any, Any, Any]:
        running, waits_for = self._running, self._waits_for
        while True:
            try:
                sent = yield waits_for
            except BaseException as error:  # whatever is thrown in belongs to the coroutine
                go_on, what = running.throw, error
            else:
                go_on, what = running.send, sent
            try:
                waits_for = go_on(what)
            except StopIteration as ended:
                return ended.value
