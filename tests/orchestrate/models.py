"""Models for these tests: one that answers by the turn, one that hangs, one that is never asked.

Under drivers that crash and deliver twice, a model call may be made more than once. `Script` gives the same
answer each time, and sees to it that it was asked the very same thing.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import msgspec

from flyball.core.errors import UserError
from flyball.core.messages import FinishReason
from flyball.inference.answers import Answer, result_of
from flyball.inference.cut import events_of
from flyball.inference.request import ModelInfo, Request, Result
from flyball.inference.stream import Finish, StreamEvent, TextDelta


class Script:
    """Canned answers, one a turn. `requests` are the different requests it had, in order of coming."""

    def __init__(
        self, *answers: Answer, first: int = 1, name: str = "test", chunk: int | None = None
    ) -> None:
        self.answers = answers
        self.first = first
        self.name = name
        self.chunk = chunk
        self.calls = 0
        self._requests: dict[str, Request] = {}

    @property
    def requests(self) -> list[Request]:
        return list(self._requests.values())

    @property
    def last(self) -> Request:
        return self.requests[-1]

    async def infer(self, request: Request) -> Result:
        return self._result(request)

    async def stream(self, request: Request) -> AsyncIterator[StreamEvent]:
        result = self._result(request)
        for event in events_of(result.message, self.chunk, result.request_id):
            yield event

    def model_info(self) -> ModelInfo:
        return ModelInfo(self.name, provider="test")

    def _result(self, request: Request) -> Result:
        self.calls += 1
        known = self._requests.setdefault(request.id, request)
        assert msgspec.json.encode(known) == msgspec.json.encode(request), "one effect, two requests"
        turn = turn_of(request)
        if not self.first <= turn < self.first + len(self.answers):
            raise UserError(f"the script has no answer for turn {turn}")
        return self.result(request, self.answers[turn - self.first])

    def result(self, request: Request, answer: Answer) -> Result:
        """The result that an answer stands for."""
        return result_of(answer, request, self.name)


def turn_of(request: Request) -> int:
    """The turn of a request, from its id: loop/attempt/turn/kind/index."""
    return int(request.id.rsplit("/", 3)[1])


class Saying(Script):
    """A script whose answers pass as they are: nothing is put right in them, whatever they are."""

    def result(self, request: Request, answer: Any) -> Result:
        given: Any = answer(request) if callable(answer) else answer
        return super().result(request, given) if isinstance(given, str) else given


class Place:
    """A place in a run where code hangs until it is let go: entered, cancelled, and how often."""

    def __init__(self) -> None:
        self.entered = asyncio.Event()
        self.let_go = asyncio.Event()
        self.times = 0
        self.cancelled = 0

    async def hang(self) -> None:
        self.times += 1
        self.entered.set()
        try:
            await self.let_go.wait()
        except asyncio.CancelledError:
            self.cancelled += 1
            raise


class Hanging:
    """A model that says some words of a stream, then nothing: until it is cancelled, closed or let go."""

    def __init__(self, *words: str, answer: str = "done", place: Place | None = None) -> None:
        self.words = words
        self.answer = answer
        self.place = place or Place()
        self.closed = 0

    async def infer(self, request: Request) -> Result:
        await self.place.hang()
        return result_of("".join(self.words) + self.answer, request, "hanging")

    async def stream(self, request: Request) -> AsyncIterator[StreamEvent]:
        try:
            for word in self.words:
                yield TextDelta(0, word)
            await self.place.hang()
            yield TextDelta(0, self.answer)
            yield Finish(model="hanging", finish_reason=FinishReason.STOP)
        finally:
            self.closed += 1

    def model_info(self) -> ModelInfo:
        return ModelInfo("hanging", provider="test")


class NeverAsked:
    """A model that must not be called."""

    async def infer(self, request: Request) -> Result:
        raise AssertionError(f"the model was called: {request.id}")

    def stream(self, request: Request) -> AsyncIterator[StreamEvent]:
        raise AssertionError(f"the model was called: {request.id}")

    def model_info(self) -> ModelInfo:
        return ModelInfo("never", provider="test")
