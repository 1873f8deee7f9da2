"""ContextOverflow: what is done when a model says that it was sent more than it can take.

Counting beforehand (`AutoContext`, `TokenBudget`) is an estimate. This is for when it was wrong: it costs a
refused call, and what it leaves out is lost to the model.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from itertools import pairwise

from msgspec.structs import replace

from flyball.core.compaction import CompactionStrategy, ContextCompaction
from flyball.core.cutting import GO_ON, can_be_summed_up, head_of, summed_up
from flyball.core.edits import edited
from flyball.core.errors import ContextExceeded
from flyball.core.messages import Message, Part, Role, Text, ToolResult
from flyball.core.pin import instruction_pin
from flyball.core.tokens import TokenEstimator, by_bytes, estimate_tokens
from flyball.core.truncation import truncate_text
from flyball.inference.middleware.kinds import CallNext, Middleware, StreamNext
from flyball.inference.request import Request, Result
from flyball.inference.stream import StreamEvent, close_stream
from flyball.memory.windows import positive

LEFT_OUT = "[Earlier messages are left out: they were more than fits.]"
"""What stands in the place of messages that are left out."""
_ROOM = 80
"""How much of a model's window what is sent may take, in percent: the answer has to fit in, too."""
_SHARE = 4
"""A result of a tool is long if it takes more than one part in so many of what may be sent."""


class ContextOverflow(Middleware):
    """Sends less, and tries again, when a model cannot take what it was sent: so many times at the most.

    First the longest results of tools are cut. Where that is not enough, the oldest messages are left out:
    the system message, the user's first (cut, if need be) and the last ones stay, with a note between in
    which the instructions stand once more (`core.pin`). Each time it is halved, unless the engine said how
    much is too much. What is sent is valid for every provider. Where nothing more can be left out, or it was
    tried often enough, the engine's ContextExceeded is passed on.

    Register it last, so that the middleware before it is asked once.
    """

    name = "context_overflow"

    def __init__(self, attempts: int = 3, *, estimator: TokenEstimator = by_bytes) -> None:
        """Make one.

        Args:
            attempts: how often it is tried again.
            estimator: how tokens are counted.

        Raises:
            UserError: no number of attempts, at least 1.
        """
        self.attempts = positive(attempts, "ContextOverflow", "attempts")
        self.estimator = estimator

    async def request(self, request: Request, call_next: CallNext) -> Result:
        """See `Middleware.request`."""
        asked = request
        for _ in range(self.attempts):
            try:
                return await call_next(asked)
            except ContextExceeded as error:
                shorter = self._shorter(request, asked, error)
                if shorter is None:
                    raise
                asked = shorter
        return await call_next(asked)

    async def stream(self, request: Request, call_next: StreamNext) -> AsyncGenerator[StreamEvent]:
        """See `Middleware.stream`. What has begun to come is not asked for again."""
        asked, begun = request, False
        for attempt in range(self.attempts + 1):
            pieces = call_next(asked)
            try:
                async for piece in pieces:
                    begun = True
                    yield piece
                return
            except ContextExceeded as error:
                last = begun or attempt == self.attempts
                shorter = None if last else self._shorter(request, asked, error)
                if shorter is None:
                    raise
                asked = shorter
            finally:
                await close_stream(pieces)

    def compaction(self, given: Request, passed: Request) -> ContextCompaction:
        """See `Middleware.compaction`."""
        before, after = given.messages, passed.messages
        return ContextCompaction(
            CompactionStrategy.EMERGENCY_TRUNCATION,
            len(before),
            len(after),
            estimate_tokens(before, self.estimator),
            estimate_tokens(after, self.estimator),
            self.name,
        )

    def _shorter(self, request: Request, asked: Request, error: ContextExceeded) -> Request | None:
        """The request with less in it than what was asked last; None where no less can be sent."""
        tried = estimate_tokens(asked.messages, self.estimator)
        messages = self._within(list(request.messages), _allowed(tried, error))
        if estimate_tokens(messages, self.estimator) >= tried:
            return None
        return replace(request, messages=tuple(messages))

    def _within(self, messages: list[Message], allowed: int) -> list[Message]:
        """The messages made no longer than this, or as short as they can be made."""
        most = max(allowed // _SHARE, 1)
        cut = [
            _with_short_parts(message, most, self.estimator) if message.role is Role.TOOL else message
            for message in messages
        ]
        counted = [estimate_tokens((message,), self.estimator) for message in cut]
        if sum(counted) <= allowed:
            return cut
        pin, head = instruction_pin(messages), head_of(cut)
        note = f"{LEFT_OUT}\n\n{pin}" if pin else LEFT_OUT
        room = allowed - sum(counted[:head]) - self.estimator(note) - self.estimator(GO_ON)
        stops = [stop for stop in range(len(cut)) if can_be_summed_up(cut, stop)]
        left = sum(counted[head:])
        for start, stop in pairwise([head, *stops]):
            left -= sum(counted[start:stop])
            if left <= room or stop == stops[-1]:
                made = edited(cut, (summed_up(cut, stop, note),))
                if left > room:  # then the user's first message, which is kept, may be what is too long
                    made[head - 1] = _with_short_parts(made[head - 1], most, self.estimator)
                return made
        return cut


def _allowed(tried: int, error: ContextExceeded) -> int:
    """How many tokens may be sent, as we count them: by what the engine said, or half of what was tried."""
    needed, window = error.details.get("prompt_tokens"), error.details.get("context_window")
    if isinstance(needed, int) and isinstance(window, int) and needed > 0 and window > 0:
        # The engine counts otherwise than we do: what it allows is put in our terms.
        return min(tried * window * _ROOM // (needed * 100), tried - 1)
    return tried // 2


def _with_short_parts(message: Message, most: int, estimator: TokenEstimator) -> Message:
    """A message with its texts, or what tools gave, cut to so many tokens each; errors are left whole."""
    parts = tuple([_short(part, most, estimator) for part in message.parts])
    return message if parts == message.parts else replace(message, parts=parts)


def _short(part: Part, most: int, estimator: TokenEstimator) -> Part:
    if isinstance(part, ToolResult):
        long = not part.is_error and estimator(part.text) > most
        return replace(part, content=truncate_text(part.text, most)) if long else part
    if isinstance(part, Text) and estimator(part.text) > most:
        return replace(part, text=truncate_text(part.text, most))
    return part
