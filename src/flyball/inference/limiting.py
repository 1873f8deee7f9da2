"""Limits on how an endpoint is asked: calls under way at once, and calls and tokens in a minute.

    model = limited("openai:gpt-5", requests_per_minute=60, tokens_per_minute=90_000, max_concurrent=4)
    writer, checker = Agent(model), Agent(model)      # one endpoint: they share its limit

Rules kept here:
- first come, first served: nobody who came later begins earlier;
- no window of 60 seconds, wherever it begins, has more beginnings, or more tokens, than it may, as far as a
  call's tokens are known: they are estimated before it begins, and counted when its answer says them;
- who goes away while waiting, or before it has begun, leaves nothing behind: its place is the next one's;
- a limit holds in one process and one event loop at a time. Several processes have several.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable

from flyball.core.clock import Clock
from flyball.inference.engine import Engine
from flyball.inference.estimating import call_tokens
from flyball.inference.gate import Gate
from flyball.inference.registry import DEFAULT, Registry, resolve_engine
from flyball.inference.request import Request, Result
from flyball.inference.stream import Finish, StreamEvent, close_stream
from flyball.inference.window import Limit
from flyball.inference.wrapper import WrapperEngine


class LimitedEngine(WrapperEngine):
    """An engine behind a gate. All else is the engine's own: what it answers, what it can, how it fails."""

    def __init__(self, engine: Engine, gate: Gate, estimate: Callable[[Request], int] = call_tokens) -> None:
        """`estimate` says how many tokens a call will have; it is asked where the gate counts them."""
        super().__init__(engine)
        self.gate = gate
        self._estimate = estimate if gate.limit.tokens_per_minute is not None else _uncounted

    async def infer(self, request: Request) -> Result:
        """See `Engine.infer`; it waits for its turn first."""
        async with self.gate.call(self._estimate(request)) as call:
            result = await self.engine.infer(request)
            call.used(result.message.usage)
            return result

    async def stream(self, request: Request) -> AsyncGenerator[StreamEvent, None]:
        """See `Engine.stream`; it waits for its turn before the first piece."""
        async with self.gate.call(self._estimate(request)) as call:
            pieces = self.engine.stream(request)
            try:
                async for piece in pieces:
                    if type(piece) is Finish:
                        call.used(piece.usage)
                    yield piece
            finally:
                await close_stream(pieces)


def limited(
    model: str | Engine,
    *,
    requests_per_minute: int | None = None,
    max_concurrent: int | None = None,
    tokens_per_minute: int | None = None,
    min_delay: float | None = None,
    estimate: Callable[[Request], int] = call_tokens,
    clock: Clock | None = None,
    registry: Registry = DEFAULT,
) -> LimitedEngine:
    """A model that is asked no more than it may be: for as many agents as use it, together.

    Args:
        model: a model string, or an engine.
        requests_per_minute: how many calls may begin in any 60 seconds.
        max_concurrent: how many may be under way at once.
        tokens_per_minute: how many tokens the calls may have that begin in any 60 seconds. A call counts with
            what is expected of it until its answer says what it used; one that is larger than a whole minute
            goes alone.
        min_delay: how many seconds are at least between the beginnings of two calls.
        estimate: says how many tokens a call will have. By default those of its messages, tools and schema,
            four bytes each, and all that `max_tokens` allows for the answer.
        clock: tells the time, for tests.
        registry: where a model string is looked up.

    Raises:
        UserError: a limit is no whole number from 1, or the delay is none of up to a minute.
        ConfigurationFailure: there is no such model (see `Registry.resolve`).
    """
    gate = Gate(Limit(requests_per_minute, max_concurrent, tokens_per_minute, min_delay), clock)
    return LimitedEngine(resolve_engine(model, registry), gate, estimate)


def behind(gate: Gate, engine: Engine) -> LimitedEngine:
    """An engine behind a gate that others may stand behind too."""
    return LimitedEngine(engine, gate)


def _uncounted(_: Request) -> int:
    return 0
