"""Engines that answer from code: from a script, from a function, or (`test`) from the request alone.

They make no model calls, so they are allowed wherever real ones are forbidden. They promise what every
engine promises: `stream` gives what `infer` gives, calls may overlap, requests are not changed.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator
from typing import TypeAlias

from flyball.core.errors import EngineError, FlyballError, UserError
from flyball.core.messages import FinishReason, Message
from flyball.inference.answers import Answer, result_of
from flyball.inference.cut import events_of
from flyball.inference.engine import Engine
from flyball.inference.model_string import ModelRef
from flyball.inference.request import ModelInfo, Request, Result
from flyball.inference.stream import (
    Finish,
    StreamEvent,
    TextDelta,
    ThinkingDelta,
    ToolCallDelta,
    close_stream,
)

AnswerFunction: TypeAlias = Callable[[Request], Awaitable[Message | str | Result]]
StreamFunction: TypeAlias = Callable[[Request], AsyncIterator[StreamEvent | str]]


class ScriptedEngine:
    """Gives canned answers in order and remembers what it was asked.

    An answer is text, a `Message`, a `Result`, a `ToolCall` or a list of them, an exception (raised as it
    is, also one that no real engine would raise), or a function from the request to one of these. Which
    answer a call gets is settled when it starts, so overlapping calls get theirs in the order of starting.
    `calls` are the requests so far; `name` may be set at any time.
    """

    def __init__(
        self,
        *answers: Answer,
        name: str = "test",
        chunk: int | None = None,
        fail_after: int | None = None,
        failure: Exception | None = None,
        pause: Callable[[], Awaitable[object]] | None = None,
        context_window: int = 0,
    ) -> None:
        """Make one from its answers.

        Args:
            answers: what it says, call by call.
            name: the model's name.
            chunk: streams cut texts after every so many characters; None gives them whole.
            fail_after: every answer breaks off after so many deltas with `failure`; shorter ones do not.
            failure: what breaks it off; an EngineError where not given.
            pause: awaited before each answer, and before each event of a stream. The only way it waits.
            context_window: the model's.
        """
        self.answers: list[Answer] = list(answers)
        self.name = name
        self.chunk = chunk
        self.fail_after = fail_after
        self.failure = failure
        self.pause = pause
        self.context_window = context_window
        self.calls: list[Request] = []
        self._position = 0

    async def infer(self, request: Request) -> Result:
        """The next answer.

        Raises:
            UserError: there is none left.
        """
        answer = self._next(request)
        if self.pause is not None:
            await self.pause()
        result = result_of(answer, request, self.name)
        if self.fail_after is not None:
            for _ in self._events(result):
                pass
        return result

    async def stream(self, request: Request) -> AsyncGenerator[StreamEvent, None]:
        """The next answer in pieces.

        Raises:
            UserError: there is none left.
        """
        answer = self._next(request)
        if self.pause is not None:
            await self.pause()
        for event in self._events(result_of(answer, request, self.name)):
            if self.pause is not None:
                await self.pause()
            yield event

    def model_info(self) -> ModelInfo:
        """The name it was given."""
        return ModelInfo(self.name, self.context_window, "test")

    def reset(self) -> None:
        """Start again from the first answer, with no calls remembered."""
        self.calls.clear()
        self._position = 0

    def _next(self, request: Request) -> Answer:
        self.calls.append(request)
        self._position += 1
        if self._position > len(self.answers):
            raise UserError(
                f"the scripted engine {self.name!r} has {len(self.answers)} answers and was called "
                f"{self._position} times: give it one more answer, or use FunctionEngine, which has no end",
                answers=len(self.answers),
                calls=self._position,
            )
        return self.answers[self._position - 1]

    def _events(self, result: Result) -> Iterator[StreamEvent]:
        deltas = 0
        for event in events_of(result.message, self.chunk, result.request_id):
            if isinstance(event, TextDelta | ThinkingDelta | ToolCallDelta):
                if deltas == self.fail_after:
                    raise self.failure or EngineError(f"scripted to fail after {deltas} deltas")
                deltas += 1
            yield event


class FunctionEngine:
    """A model of one's own, as one function.

    A `Result` that the function returns is passed on untouched. Whatever it raises outside the taxonomy
    becomes an EngineError, which may be retried where the cause was a connection or a time-out.
    Without `stream_fn` the answer is streamed as one piece a part; with it, pieces may be events or plain
    text (which make one text part, and are closed with a `Finish` where nothing but text came).
    """

    __slots__ = ("_fn", "_info", "_stream_fn")

    def __init__(
        self,
        fn: AnswerFunction,
        stream_fn: StreamFunction | None = None,
        info: ModelInfo | str = "function",
    ) -> None:
        self._fn = fn
        self._stream_fn = stream_fn
        self._info = ModelInfo(info, provider="function") if isinstance(info, str) else info

    async def infer(self, request: Request) -> Result:
        """What the function answers.

        Raises:
            EngineError: the function raised; the error is its cause.
        """
        try:
            answer = await self._fn(request)
        except FlyballError:
            raise
        except Exception as error:
            raise _engine_error(self._info.name, error) from error
        return answer if type(answer) is Result else result_of(answer, request, self._info.name)

    async def stream(self, request: Request) -> AsyncGenerator[StreamEvent, None]:
        """What the functions answer, in pieces.

        Raises:
            EngineError: a function raised; the error is its cause.
        """
        if self._stream_fn is None:
            result = await self.infer(request)
            for event in events_of(result.message, None, result.request_id):
                yield event
            return
        pieces = self._stream_fn(request)
        only_text = True
        try:
            async for piece in pieces:
                if isinstance(piece, str):
                    yield TextDelta(0, piece)
                else:
                    only_text = False
                    yield piece
        except FlyballError:
            raise
        except Exception as error:
            raise _engine_error(self._info.name, error) from error
        finally:
            await close_stream(pieces)
        if only_text:
            yield Finish(model=self._info.name, finish_reason=FinishReason.STOP)

    def model_info(self) -> ModelInfo:
        """What it was given."""
        return self._info


def _engine_error(name: str, error: Exception) -> EngineError:
    return EngineError(
        f"the engine {name!r} raised {type(error).__name__}: {error}",
        retryable=isinstance(error, OSError),
        model=name,
    )


def engine_for(ref: ModelRef) -> Engine:
    """The engine of `test` and `test:some text`: it answers any request, without a model."""
    from flyball.inference.stand_in import StandInEngine

    return StandInEngine(ref.name or None)
