"""Limits on how an endpoint is asked: calls under way at once, and calls begun in a minute.

    model = limited("openai:gpt-5", requests_per_minute=60, max_concurrent=4)
    writer, checker = Agent(model), Agent(model)      # one endpoint: they share its limit

Rules kept here:
- first come, first served: nobody who came later begins earlier;
- no window of 60 seconds, wherever it begins, has more beginnings than it may;
- who goes away while waiting, or before it has begun, leaves nothing behind: its place is the next one's;
- a limit holds in one process and one event loop at a time. Several processes have several.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator
from types import TracebackType

from msgspec import Struct

from flyball.core.clock import Clock, Timer
from flyball.core.errors import UserError
from flyball.inference.engine import Engine
from flyball.inference.monotonic import MONOTONIC
from flyball.inference.registry import DEFAULT, Registry, resolve_engine
from flyball.inference.request import Request, Result
from flyball.inference.stream import StreamEvent, close_stream
from flyball.inference.wrapper import WrapperEngine

WINDOW = 60.0
"""Seconds of the window that `requests_per_minute` counts in."""


class Limit(Struct, frozen=True):
    """How much an endpoint may be asked; None is no limit.

    `requests_per_minute`: how many calls may begin in any 60 seconds. `max_concurrent`: how many may be under
    way at once; a stream is under way until it has ended or was closed.
    """

    requests_per_minute: int | None = None
    max_concurrent: int | None = None

    def __post_init__(self) -> None:
        for name in self.__struct_fields__:
            value = getattr(self, name)
            if value is not None and (type(value) is not int or value < 1):
                raise UserError(f"{name}={value!r}: a limit is a whole number from 1, or None for none")


class Gate:
    """Lets calls begin as a limit allows: `async with gate:` around each call.

    Cancelling somebody who waits takes them out of the line. Whoever shares a gate shares its limit.
    """

    __slots__ = ("_begun", "_clock", "_inside", "_line", "_timer", "limit")

    def __init__(self, limit: Limit, clock: Clock | None = None) -> None:
        """`clock` tells the time, for tests; else it is the machine's, which is never put back."""
        self.limit = limit
        self._clock = clock or MONOTONIC
        self._inside = 0
        self._begun: deque[_Beginning] = deque()
        """The beginnings that may still be in somebody's window, the oldest first."""
        self._line: deque[asyncio.Future[_Beginning]] = deque()
        self._timer: Timer | None = None

    @property
    def inside(self) -> int:
        """How many calls are under way."""
        return self._inside

    @property
    def waiting(self) -> int:
        """How many wait for their turn."""
        return sum(not place.done() for place in self._line)

    async def __aenter__(self) -> None:
        if not self._line and self._is_open():
            self._let_in()
            return
        place: asyncio.Future[_Beginning] = asyncio.get_running_loop().create_future()
        self._line.append(place)
        self._go_on()
        try:
            beginning = await place
        except asyncio.CancelledError:
            if place.done() and not place.cancelled():
                # Let in and called away at the same moment: it did not begin.
                self._inside -= 1
                self._forget(place.result())
            elif place in self._line:
                self._line.remove(place)
            self._go_on()
            raise
        # It begins now, and not when it was let in: the loop may have been busy in between.
        beginning.at = self._clock.now()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._inside -= 1
        self._go_on()

    def _is_open(self) -> bool:
        limit = self.limit
        if limit.max_concurrent is not None and self._inside >= limit.max_concurrent:
            return False
        return limit.requests_per_minute is None or self._due() is None

    def _due(self) -> float | None:
        """When the next call may begin as far as the minute is concerned; None is now."""
        allowed, now = self.limit.requests_per_minute, self._clock.now()
        while self._begun and self._begun[0].at + WINDOW <= now:
            self._begun.popleft()
        return None if allowed is None or len(self._begun) < allowed else self._begun[0].at + WINDOW

    def _let_in(self) -> _Beginning:
        beginning = _Beginning(self._clock.now())
        self._inside += 1
        if self.limit.requests_per_minute is not None:
            self._begun.append(beginning)
        return beginning

    def _forget(self, beginning: _Beginning) -> None:
        for number, one in enumerate(self._begun):
            if one is beginning:
                del self._begun[number]
                return

    def _go_on(self) -> None:
        """Let in whoever may come now, in order."""
        while self._line and self._is_open():
            place = self._line.popleft()
            if not place.done():
                place.set_result(self._let_in())
        self._set_timer()

    def _set_timer(self) -> None:
        """Be called when the minute allows the next one; who leaves calls for the others."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        due = self._due() if self._line else None
        if due is not None:
            self._timer = self._clock.call_at(due, self._go_on)


class _Beginning:
    """When a call began."""

    __slots__ = ("at",)

    def __init__(self, at: float) -> None:
        self.at = at


class LimitedEngine(WrapperEngine):
    """An engine behind a gate. All else is the engine's own: what it answers, what it can, how it fails."""

    def __init__(self, engine: Engine, gate: Gate) -> None:
        super().__init__(engine)
        self.gate = gate

    async def infer(self, request: Request) -> Result:
        """See `Engine.infer`; it waits for its turn first."""
        async with self.gate:
            return await self.engine.infer(request)

    async def stream(self, request: Request) -> AsyncGenerator[StreamEvent, None]:
        """See `Engine.stream`; it waits for its turn before the first piece."""
        async with self.gate:
            pieces = self.engine.stream(request)
            try:
                async for piece in pieces:
                    yield piece
            finally:
                await close_stream(pieces)


def limited(
    model: str | Engine,
    *,
    requests_per_minute: int | None = None,
    max_concurrent: int | None = None,
    clock: Clock | None = None,
    registry: Registry = DEFAULT,
) -> LimitedEngine:
    """A model that is asked no more than it may be: for as many agents as use it, together.

    Args:
        model: a model string, or an engine.
        requests_per_minute: how many calls may begin in any 60 seconds.
        max_concurrent: how many may be under way at once.
        clock: tells the time, for tests.
        registry: where a model string is looked up.

    Raises:
        UserError: a limit is no whole number from 1.
        ConfigurationFailure: there is no such model (see `Registry.resolve`).
    """
    gate = Gate(Limit(requests_per_minute, max_concurrent), clock)
    return behind(gate, resolve_engine(model, registry))


def behind(gate: Gate, engine: Engine) -> LimitedEngine:
    """An engine behind a gate that others may stand behind too."""
    return LimitedEngine(engine, gate)
