"""RetryPolicy: how often something is tried again, after how long, and after which failures.

There is one for all that is tried again: a function (`RetryPolicy.run`), and a model call (`retrying`).
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from math import inf
from typing import TypeVar

from msgspec import Struct

from flyball.core.backoff import LONGEST, Backoff
from flyball.core.clock import Clock
from flyball.core.errors import FlyballError, UserError
from flyball.inference.system_clock import SYSTEM_CLOCK, sleep

T = TypeVar("T")


_LEAST = {
    "backoff": 0.0,
    "factor": 1.0,
    "max_backoff": 0.0,
    "jitter": 0.0,
    "min_remaining": 0.0,
    "max_retry_after": 0.0,
}


class RetryPolicy(Struct, frozen=True):
    """What is tried again, and when: the wait is `backoff` seconds, multiplied by `factor` each time.

    With the defaults of everything but `max_retries` and `backoff` that is a fixed wait, as pagantic has it.
    Where an error says when to come again (its details have `retry_after`, in seconds), that is the wait: it
    is made neither shorter nor longer.

    Args:
        max_retries: how often it is tried again: it is run once more than that at the most.
        backoff: the seconds before the first retry.
        factor: by how much the wait grows from one retry to the next.
        max_backoff: what no wait is longer than, jitter included; without it, a day.
        jitter: by which share of itself a wait may be longer, by chance: 0.25 for up to a quarter.
        retry_if: whether a failure is worth another try; without it, errors of flyball say so themselves
            (`retryable`), and all others are.
        min_remaining: where there is a deadline, how many seconds must be left of it for another try. Nothing
            is waited for that would come after it, either.
        max_retry_after: an error that asks for a longer wait than this is not worth another try; without
            it, any wait is kept, up to a day.
        restart: whether an answer that broke off after some of it was handed on begins again; it is then
            told as void (`flyball.inference.stream.Restart`). Only streams have that.

    Raises:
        UserError: a value that cannot be.
    """

    max_retries: int = 0
    backoff: float = 0.0
    factor: float = 1.0
    max_backoff: float | None = None
    jitter: float = 0.0
    retry_if: Callable[[Exception], bool] | None = None
    min_remaining: float = 0.0
    max_retry_after: float | None = None
    restart: bool = True

    def __post_init__(self) -> None:
        if type(self.max_retries) is not int or self.max_retries < 0:
            raise UserError(f"max_retries is a number from 0, not {self.max_retries!r}")
        for name, least in _LEAST.items():
            value = getattr(self, name)
            if value is None and name.startswith("max_"):
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

    def wait_after(
        self, error: Exception, retries: int, left: float | None = None, chance: float = 0.0
    ) -> float | None:
        """The seconds after which something that failed so, after so many retries, is tried again.

        `left` is how many seconds are left until the deadline, if there is one; `chance` is as for `wait`.
        None: it is not tried again, for it is not worth it, or too late.
        """
        if not self.worth_another_try(error, retries):
            return None
        asked = retry_after(error)
        if asked is None:
            seconds = self.wait(retries + 1, chance)
        elif asked > (LONGEST if self.max_retry_after is None else self.max_retry_after):
            return None
        else:
            seconds = asked
        return None if left is not None and (left < self.min_remaining or seconds >= left) else seconds

    async def run(
        self,
        function: Callable[[], Awaitable[T]],
        *,
        clock: Clock | None = None,
        chance: Callable[[], float] = random.random,
        deadline: float | None = None,
    ) -> T:
        """What a function gives, tried again as this policy says.

        Cancelling is looked for before each try and ends a wait at once; nothing is tried again after it.

        Args:
            function: what is tried.
            clock: where time comes from; without it, the machine's.
            chance: gives a number from 0 to 1 for each wait's jitter.
            deadline: when it is too late to try again, as the clock tells time.

        Raises:
            Exception: the last one that the function raised.
        """
        retries, clock = 0, clock or SYSTEM_CLOCK
        while True:
            await asyncio.sleep(0)  # where a cancellation that has come meanwhile is raised
            try:
                return await function()
            except Exception as error:
                left = None if deadline is None else deadline - clock.now()
                seconds = self.wait_after(error, retries, left, chance() if self.jitter else 0.0)
                if seconds is None:
                    raise
            retries += 1
            await sleep(seconds, clock)


ONCE = RetryPolicy()
"""No retries: what is run is run once."""

MODEL_CALLS = RetryPolicy(
    max_retries=5, backoff=1.0, factor=2.0, max_backoff=30.0, jitter=0.25, min_remaining=20.0
)
"""How model calls are tried again where nobody says otherwise, as gollem has it."""


async def retried(
    function: Callable[[], Awaitable[T]], policy: RetryPolicy | None = None, *, clock: Clock | None = None
) -> T:
    """What a function gives under a policy; without one it is run once.

    Raises:
        Exception: the last one that the function raised.
    """
    return await (policy or ONCE).run(function, clock=clock)


def retry_after(error: Exception) -> float | None:
    """In how many seconds an error says that one should come again, if it does."""
    asked = error.details.get("retry_after") if isinstance(error, FlyballError) else None
    if isinstance(asked, bool) or not isinstance(asked, int | float) or not 0 <= asked < inf:
        return None
    return float(asked)
