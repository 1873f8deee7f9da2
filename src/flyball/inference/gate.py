"""Gate: lets calls begin as a limit allows, in the order in which they came."""

from __future__ import annotations

import asyncio
from collections import deque
from types import TracebackType

from flyball.core.clock import Clock, Timer
from flyball.core.usage import Usage
from flyball.inference.monotonic import MONOTONIC
from flyball.inference.window import Beginning, Limit, Window


class Gate:
    """Lets calls begin as a limit allows: `async with gate.call():` around each.

    Cancelling somebody who waits takes them out of the line. Whoever shares a gate shares its limit.
    """

    __slots__ = ("_clock", "_inside", "_line", "_timer", "_window", "limit")

    def __init__(self, limit: Limit, clock: Clock | None = None) -> None:
        """`clock` tells the time, for tests; else it is the machine's, which is never put back."""
        self.limit = limit
        self._clock = clock or MONOTONIC
        self._inside = 0
        self._window = Window(limit)
        self._line: deque[_Place] = deque()
        self._timer: Timer | None = None

    @property
    def inside(self) -> int:
        """How many calls are under way."""
        return self._inside

    @property
    def waiting(self) -> int:
        """How many wait for their turn."""
        return sum(not place.turn.done() for place in self._line)

    def call(self, tokens: int = 0) -> GatedCall:
        """A call that will have so many tokens, about: `async with` it."""
        return GatedCall(self, tokens)

    async def enter(self, tokens: int) -> Beginning:
        """Wait for one's turn; `leave` when it is over."""
        if not self._line and self._is_open(tokens):
            return self._let_in(tokens)
        turn: asyncio.Future[Beginning] = asyncio.get_running_loop().create_future()
        place = _Place(turn, tokens)
        self._line.append(place)
        self._go_on()
        try:
            beginning = await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                # Let in and called away at the same moment: it did not begin.
                self._inside -= 1
                self._window.forget(turn.result())
            elif place in self._line:
                self._line.remove(place)
            self._go_on()
            raise
        # It begins now, and not when it was let in: the loop may have been busy in between.
        beginning.at = self._clock.now()
        return beginning

    def leave(self) -> None:
        """A call is over."""
        self._inside -= 1
        self._go_on()

    def used(self, beginning: Beginning, tokens: int) -> None:
        """It is known how many tokens a call has used."""
        self._window.correct(beginning, tokens)
        self._go_on()

    def _is_open(self, tokens: int) -> bool:
        limit = self.limit
        if limit.max_concurrent is not None and self._inside >= limit.max_concurrent:
            return False
        return not limit.in_time or self._window.due(self._clock.now(), tokens) is None

    def _let_in(self, tokens: int) -> Beginning:
        self._inside += 1
        return self._window.begin(self._clock.now(), tokens)

    def _go_on(self) -> None:
        """Let in whoever may come now, in order."""
        while self._line and self._is_open(self._line[0].tokens):
            place = self._line.popleft()
            if not place.turn.done():
                place.turn.set_result(self._let_in(place.tokens))
        self._set_timer()

    def _set_timer(self) -> None:
        """Be called when the minute allows the next one; who leaves calls for the others."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        due = self._window.due(self._clock.now(), self._line[0].tokens) if self._line else None
        if due is not None:
            self._timer = self._clock.call_at(due, self._go_on)


class _Place:
    """A place in the line."""

    __slots__ = ("tokens", "turn")

    def __init__(self, turn: asyncio.Future[Beginning], tokens: int) -> None:
        self.turn = turn
        self.tokens = tokens


class GatedCall:
    """A call through a gate, which may say how many tokens it has used."""

    __slots__ = ("_beginning", "_gate", "_tokens")

    def __init__(self, gate: Gate, tokens: int) -> None:
        self._gate = gate
        self._tokens = max(0, tokens)
        self._beginning: Beginning | None = None

    async def __aenter__(self) -> GatedCall:
        self._beginning = await self._gate.enter(self._tokens)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._gate.leave()

    def used(self, usage: Usage | None) -> None:
        """What it used; where that is not known, what was expected stands."""
        if usage is not None and self._beginning is not None:
            self._gate.used(self._beginning, usage.total_tokens)
