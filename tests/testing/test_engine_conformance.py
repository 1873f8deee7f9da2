"""The suite holds over the engines that answer from code, and each of its tests catches one that lies."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from typing import Any, cast
from unittest import SkipTest

import pytest
from msgspec.structs import force_setattr

import flyball.testing.conformance
from flyball.core.errors import EngineError
from flyball.core.messages import Message, user
from flyball.inference.answers import text_answer, tool_call_answer
from flyball.inference.engine import Engine
from flyball.inference.registry import resolve_engine
from flyball.inference.request import ModelInfo, Request, Result
from flyball.inference.scripted import FunctionEngine, ScriptedEngine
from flyball.inference.stream import Finish, StreamEvent, TextDelta
from flyball.testing.conformance import EngineConformance
from flyball.testing.conformance.engine import PROMPTS


def prompt_of(request: Request) -> str:
    return request.messages[-1].text


def said(request: Request) -> str:
    return f"I say {prompt_of(request)}"


def called(request: Request) -> Message:
    return tool_call_answer("say", {"word": prompt_of(request)})


async def forever() -> None:
    await asyncio.Event().wait()


class TestScriptedEngine(EngineConformance):
    def make_engine(self) -> Engine:
        return ScriptedEngine(*[said] * 20, chunk=3)

    def make_stalled_engine(self) -> Engine:
        return ScriptedEngine("never", pause=forever)

    def make_failing_engine(self) -> Engine:
        return ScriptedEngine(EngineError("busy"), EngineError("busy"))


class TestScriptedToolCalls(EngineConformance):
    def make_engine(self) -> Engine:
        return ScriptedEngine(*[called] * 20, chunk=1)

    def make_stalled_engine(self) -> Engine:
        return ScriptedEngine(tool_call_answer("never"), pause=forever)

    def make_failing_engine(self) -> Engine:
        return ScriptedEngine("hello", "hello", chunk=1, fail_after=2)


async def echo(request: Request) -> str:
    return prompt_of(request)


async def stalled(_: Request) -> str:
    await forever()
    return ""


async def failing(_: Request) -> str:
    raise ConnectionError("refused")


class TestFunctionEngine(EngineConformance):
    def make_engine(self) -> Engine:
        return FunctionEngine(echo)

    def make_stalled_engine(self) -> Engine:
        return FunctionEngine(stalled)

    def make_failing_engine(self) -> Engine:
        return FunctionEngine(failing)


class Letters:
    """A stream function that knows how many of its calls are open."""

    def __init__(self, answers: bool = True) -> None:
        self.open = 0
        self._answers = answers

    async def __call__(self, request: Request) -> AsyncGenerator[str, None]:
        self.open += 1
        try:
            for letter in prompt_of(request):
                await asyncio.sleep(0)
                if not self._answers:
                    await forever()
                yield letter
        finally:
            self.open -= 1


class CountingEngine(FunctionEngine):
    def __init__(self, *, answers: bool = True) -> None:
        self.letters = Letters(answers)
        super().__init__(echo if answers else stalled, self.letters)


class TestFunctionEngineWithAStreamOfItsOwn(EngineConformance):
    def make_engine(self) -> Engine:
        return CountingEngine()

    def make_stalled_engine(self) -> Engine:
        return CountingEngine(answers=False)

    def make_failing_engine(self) -> Engine:
        return FunctionEngine(failing)

    def open_calls(self, engine: Engine) -> int:
        assert isinstance(engine, CountingEngine)
        return engine.letters.open


class TestTestEngine(EngineConformance):
    def make_engine(self) -> Engine:
        return resolve_engine("test")


# Engines that break one promise each, and the test that must notice.


class Honest:
    """An engine that keeps every promise; those below change one thing."""

    async def infer(self, request: Request) -> Result:
        return Result(text_answer(f"I say {prompt_of(request)}"))

    def stream(self, request: Request) -> AsyncIterator[StreamEvent]:
        return ScriptedEngine(Result(text_answer(f"I say {prompt_of(request)}"))).stream(request)

    def model_info(self) -> ModelInfo:
        return ModelInfo("honest")


class SaysNothing(Honest):
    async def infer(self, request: Request) -> Result:
        return Result(user("that was your part"))


class StreamsSomethingElse(Honest):
    async def stream(self, request: Request) -> AsyncGenerator[StreamEvent, None]:
        del request
        yield TextDelta(0, "something else")
        yield Finish()


class NeverFinishes(Honest):
    async def stream(self, request: Request) -> AsyncGenerator[StreamEvent, None]:
        del request
        yield TextDelta(0, "hello")


class Unclosable:
    def __init__(self) -> None:
        self._left = 3

    def __aiter__(self) -> AsyncIterator[StreamEvent]:
        return self

    async def __anext__(self) -> StreamEvent:
        self._left -= 1
        if self._left < 0:
            raise StopAsyncIteration
        return TextDelta(0, "a") if self._left else Finish()

    async def aclose(self) -> None:
        """Closes nothing."""


class GoesOnAfterClose(Honest):
    def stream(self, request: Request) -> AsyncIterator[StreamEvent]:
        return Unclosable()


class SwallowsCancellation(Honest):
    async def infer(self, request: Request) -> Result:
        try:
            await forever()
        except asyncio.CancelledError:
            return await super().infer(request)
        raise AssertionError


class ChangesTheRequest(Honest):
    async def infer(self, request: Request) -> Result:
        force_setattr(request, "id", "mine now")
        return await super().infer(request)


class Mixes(Honest):
    """Keeps the request where the next call finds it."""

    async def infer(self, request: Request) -> Result:
        self._request = request
        await asyncio.sleep(0)
        return await super().infer(self._request)


class RaisesItsOwn(Honest):
    async def infer(self, request: Request) -> Result:
        raise ZeroDivisionError

    def stream(self, request: Request) -> AsyncIterator[StreamEvent]:
        raise ZeroDivisionError


class AnswersAllTheSame(Honest):
    pass


class Nameless(Honest):
    def model_info(self) -> ModelInfo:
        return ModelInfo("")


class OneSuite(EngineConformance):
    def __init__(self, kind: type[Honest]) -> None:
        self._kind = kind

    def make_engine(self) -> Engine:
        return self._kind()

    make_stalled_engine = make_engine
    make_failing_engine = make_engine


LIES = [
    (SaysNothing, "test_infer_answers", "role"),
    (StreamsSomethingElse, "test_stream_joins_to_what_infer_gives", "streamed"),
    (NeverFinishes, "test_stream_joins_to_what_infer_gives", "not with a Finish"),
    (GoesOnAfterClose, "test_closing_a_stream_early_ends_it", "still gave"),
    (SwallowsCancellation, "test_cancelling_infer_ends_it", "ended as"),
    (Honest, "test_cancelling_a_stream_ends_it", "done before"),
    (ChangesTheRequest, "test_the_request_is_not_changed", "changed the request"),
    (Mixes, "test_overlapping_calls_do_not_mix", "mixed up"),
    (RaisesItsOwn, "test_failures_are_of_the_taxonomy", "outside the taxonomy"),
    (AnswersAllTheSame, "test_failures_are_of_the_taxonomy", "gave an answer"),
    (Nameless, "test_model_info_names_the_model", "no name"),
]


@pytest.mark.parametrize(("kind", "test", "complaint"), LIES)
async def test_the_suite_notices(kind: type[Honest], test: str, complaint: str) -> None:
    with pytest.raises(AssertionError, match=complaint):
        await getattr(OneSuite(kind), test)()


async def test_a_call_that_goes_on_is_noticed() -> None:
    class Suite(OneSuite):
        def open_calls(self, engine: Engine) -> int:
            return 1

    with pytest.raises(AssertionError, match="goes on"):
        await Suite(Honest).test_closing_a_stream_early_ends_it()


async def test_an_engine_that_never_says_the_same_twice_is_not_compared() -> None:
    class Suite(OneSuite):
        deterministic = False

    await Suite(StreamsSomethingElse).test_stream_joins_to_what_infer_gives()
    await Suite(Mixes).test_overlapping_calls_do_not_mix()


async def test_what_a_hook_leaves_open_is_skipped_with_the_reason() -> None:
    class Suite(EngineConformance):
        pass

    for test in ("test_cancelling_infer_ends_it", "test_cancelling_a_stream_ends_it"):
        with pytest.raises(SkipTest, match=r"make_stalled_engine\(\) gives none"):
            await getattr(Suite(), test)()
    with pytest.raises(SkipTest, match=r"make_failing_engine\(\) gives none"):
        await Suite().test_failures_are_of_the_taxonomy()
    with pytest.raises(NotImplementedError, match="make_engine"):
        await Suite().test_infer_answers()


def test_the_prompts_differ() -> None:
    assert len(set(PROMPTS)) == len(PROMPTS) > 1


def test_the_package_has_what_it_says_and_nothing_else() -> None:
    for name in flyball.testing.conformance.__all__:
        assert getattr(flyball.testing.conformance, name).__name__ == name
    with pytest.raises(AttributeError, match="nothing"):
        cast("Any", flyball.testing.conformance).nothing  # noqa: B018 - looking is the test
