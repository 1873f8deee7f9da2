"""retrying: a model that is asked again where it failed for a reason that may pass.

    model = retrying("openai:gpt-5")                               # as gollem does it: see MODEL_CALLS
    model = retrying("openai:gpt-5", RetryPolicy(max_retries=2, backoff=0.5))

Rules kept here:
- whether a failure may pass is the error's to say (`retryable`), or the policy's (`retry_if`);
- nothing is tried again that the run's deadline (`Request.deadline`) leaves no time for;
- what is raised in the end is the last failure; it, or the answer, says which tries failed before
  (`flyball.inference.attempts`), and each is logged to `flyball.models`.
"""

from __future__ import annotations

import logging
import random
from collections.abc import AsyncGenerator, Callable

from flyball.core.clock import Clock
from flyball.core.errors import FlyballError
from flyball.inference.attempts import Attempts
from flyball.inference.engine import Engine
from flyball.inference.registry import DEFAULT, Registry, resolve_engine
from flyball.inference.request import Request, Result
from flyball.inference.retry_policy import MODEL_CALLS, RetryPolicy
from flyball.inference.stream import StreamEvent
from flyball.inference.system_clock import SYSTEM_CLOCK, sleep
from flyball.inference.trying import asked, streamed
from flyball.inference.wrapper import WrapperEngine

_log = logging.getLogger("flyball.models")


class RetryingEngine(WrapperEngine):
    """An engine that is asked again as a policy says. All else is the engine's own.

    Cancelling ends a wait at once. Calls that wait do not keep each other waiting.
    """

    def __init__(
        self,
        engine: Engine,
        policy: RetryPolicy = MODEL_CALLS,
        *,
        clock: Clock | None = None,
        chance: Callable[[], float] = random.random,
    ) -> None:
        """`clock` and `chance` (a number from 0 to 1, for a wait's jitter) are for tests."""
        super().__init__(engine)
        self.policy = policy
        self.clock = clock or SYSTEM_CLOCK
        self.chance = chance

    async def infer(self, request: Request) -> Result:
        """See `Engine.infer`."""
        return await asked(_Retries(self, request), request)

    def stream(self, request: Request) -> AsyncGenerator[StreamEvent, None]:
        """See `Engine.stream`."""
        return streamed(_Retries(self, request), request)


class _Retries:
    """The tries of one call."""

    __slots__ = ("_deadline", "_retries", "_wrapper", "attempts")

    def __init__(self, wrapper: RetryingEngine, request: Request) -> None:
        self.attempts = Attempts()
        self._wrapper = wrapper
        self._deadline = request.deadline
        self._retries = 0

    @property
    def engine(self) -> Engine:
        return self._wrapper.engine

    async def after(self, error: Exception, *, shown: bool) -> None:
        policy, clock = self._wrapper.policy, self._wrapper.clock
        seconds = None
        if (policy.restart or not shown) and (policy.retry_if is not None or may_pass(error)):
            left = None if self._deadline is None else self._deadline - clock.now()
            chance = self._wrapper.chance() if policy.jitter else 0.0
            seconds = policy.wait_after(error, self._retries, left, chance)
        if seconds is None:
            raise self.attempts.on_error(error)
        name = self.engine.model_info().name
        self._retries += 1
        self.attempts.failed(name, error)
        _log.warning(
            "the model %r failed and is asked again in %.3g s (retry %d of %d): %s",
            name,
            seconds,
            self._retries,
            policy.max_retries,
            error,
        )
        await sleep(seconds, clock)


def may_pass(error: Exception) -> bool:
    """Whether a failure may pass: the error says so, or a connection that an engine did not tell as one."""
    return error.retryable if isinstance(error, FlyballError) else isinstance(error, OSError)


def retrying(
    model: str | Engine,
    policy: RetryPolicy = MODEL_CALLS,
    *,
    clock: Clock | None = None,
    registry: Registry = DEFAULT,
) -> RetryingEngine:
    """A model that is asked again where it failed for a reason that may pass.

    Without a policy: up to 5 times, after 1 s, 2 s, 4 s and so on up to 30 s, each up to a quarter longer by
    chance, or after what the server asks for; and not where less than 20 s of the run's time are left.

    Args:
        model: a model string, or an engine.
        policy: how often, after how long and after which failures.
        clock: tells the time, for tests; it is to tell the same time as `Request.deadline`.
        registry: where a model string is looked up.

    Raises:
        ConfigurationFailure: there is no such model (see `Registry.resolve`).
    """
    return RetryingEngine(resolve_engine(model, registry), policy, clock=clock)
