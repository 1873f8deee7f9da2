"""RetryPolicy: how often something is tried again, after how long, and after which failures."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from math import inf
from typing import TypeVar

from msgspec import Struct

from flyball.core.backoff import Backoff
from flyball.core.clock import Clock
from flyball.core.errors import FlyballError, UserError
from flyball.inference.monotonic import MONOTONIC

T = TypeVar("T")


class RetryPolicy(Struct, frozen=True):
    """What is tried again, and when: the wait is `backoff` seconds, multiplied by `factor` each time.

    With the defaults of everything but `max_retries` and `backoff` that is a fixed wait, as pagantic has it.

    Args:
        max_retries: how often it is tried again: it is run once more than that at the most.
        backoff: the seconds before the first retry.
        factor: by how much the wait grows from one retry to the next.
        max_backoff: what no wait is longer than, jitter included; without it, a day.
        jitter: by which share of itself a wait may be longer, by chance: 0.25 for up to a quarter.
        retry_if: whether a failure is worth another try; without it, errors of flyball say so themselves
            (`retryable`), and all others are.

    Raises:
        UserError: a value that cannot be.
    """

    max_retries: int = 0
    backoff: float = 0.0
    factor: float = 1.0
    max_backoff: float | None = None
    jitter: float = 0.0
    retry_if: Callable[[Exception], bool] | None = None

    def __post_init__(self) -> None:
        if type(self.max_retries) is not int or self.max_retries < 0:
            raise UserError(f"max_retries is a number from 0, not {self.max_retries!r}")
        for name, least in (("backoff", 0.0), ("factor", 1.0), ("max_backoff", 0.0), ("jitter", 0.0)):
            value = getattr(self, name)
            if value is None and name == "max_backoff":
                continue
            if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value < inf:
                raise UserError(f"{name} is a number from {least:g}, not {value!r}")
        if self.retry_if is not None and not callable(self.retry_if):
            raise UserError(f"retry_if is a function of an error, not {self.retry_if!r}")

    def worth_another_try(self, error: Exception, retries: int) -> bool:
        """Whether something that failed so, after so many retries, is tried again."""
        if retries >= self.max_retries:
            return False
        if self.retry_if is not None:
            return bool(self.retry_if(error))
        return error.retryable if isinstance(error, FlyballError) else True

    def wait(self, retry: int, chance: float = 0.0) -> float:
        """The seconds before the nth retry, counted from 1; `chance`, from 0 to 1, decides the jitter."""
        return self.waits.wait(retry, chance)

    @property
    def waits(self) -> Backoff:
        """How long is waited, as data."""
        return Backoff(self.backoff, self.factor, self.max_backoff, self.jitter)

    async def run(
        self,
        function: Callable[[], Awaitable[T]],
        *,
        clock: Clock | None = None,
        chance: Callable[[], float] = random.random,
    ) -> T:
        """What a function gives, tried again as this policy says.

        Cancelling is looked for before each try and ends a wait at once; nothing is tried again after it.

        Args:
            function: what is tried.
            clock: where time comes from; without it, the machine's.
            chance: gives a number from 0 to 1 for each wait's jitter.

        Raises:
            Exception: the last one that the function raised.
        """
        retries = 0
        while True:
            await asyncio.sleep(0)  # where a cancellation that has come meanwhile is raised
            try:
                return await function()
            except Exception as error:
                if not self.worth_another_try(error, retries):
                    raise
            retries += 1
            await waited(self.wait(retries, chance() if self.jitter else 0.0), clock or MONOTONIC)


ONCE = RetryPolicy()
"""No retries: what is run is run once."""


async def retried(
    function: Callable[[], Awaitable[T]], policy: RetryPolicy | None = None, *, clock: Clock | None = None
) -> T:
    """What a function gives under a policy; without one it is run once.

    Raises:
        Exception: the last one that the function raised.
    """
    return await (policy or ONCE).run(function, clock=clock)


async def waited(seconds: float, clock: Clock) -> None:
    """Wait for so long, by a clock; cancelling ends it at once."""
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
