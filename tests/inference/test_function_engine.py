from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import Any, cast

import pytest

from flyball.core.errors import EngineError, ModelUnavailable, UnexpectedModelBehavior, UserError
from flyball.core.messages import FinishReason, Message, Text, assistant, user
from flyball.inference.request import ModelInfo, Request, Result
from flyball.inference.scripted import FunctionEngine
from flyball.inference.stream import Finish, StreamEvent, TextDelta, collect

REQUEST = Request((user("hello"),))


async def echo(request: Request) -> str:
    return request.messages[-1].text


async def test_a_result_is_passed_on_untouched() -> None:
    result = Result(assistant("hi"), "r")

    async def answer(_: Request) -> Result:
        return result

    assert await FunctionEngine(answer).infer(REQUEST) is result


async def test_text_and_messages_become_results_of_the_model() -> None:
    async def answer(_: Request) -> Message:
        return assistant("hi")

    engine = FunctionEngine(answer, info="mine")
    assert (await engine.infer(REQUEST)).message.model == "mine"
    assert (await FunctionEngine(echo).infer(REQUEST)).content == "hello"
    assert await collect(engine.stream(REQUEST)) == await engine.infer(REQUEST)


async def test_it_says_which_model_it_is() -> None:
    assert FunctionEngine(echo).model_info() == ModelInfo("function", provider="function")
    info = ModelInfo("mine", 8_000, "me")
    assert FunctionEngine(echo, info=info).model_info() is info


@pytest.mark.parametrize(
    ("error", "retryable"),
    [(ValueError("bad"), False), (ConnectionError("bad"), True), (TimeoutError("bad"), True)],
)
async def test_what_the_function_raises_becomes_an_engine_error(error: Exception, retryable: bool) -> None:
    async def answer(_: Request) -> str:
        raise error

    async def pieces(_: Request) -> AsyncGenerator[str, None]:
        yield "a"
        raise error

    engine = FunctionEngine(answer, pieces, info="mine")
    for call in (engine.infer(REQUEST), collect(engine.stream(REQUEST))):
        with pytest.raises(EngineError, match=f"'mine' raised {type(error).__name__}: bad") as caught:
            await call
        assert caught.value.retryable is retryable
        assert caught.value.__cause__ is error


async def test_errors_of_the_taxonomy_pass() -> None:
    async def answer(_: Request) -> str:
        raise ModelUnavailable("gone")

    async def pieces(_: Request) -> AsyncGenerator[str, None]:
        raise ModelUnavailable("gone")
        yield ""

    engine = FunctionEngine(answer, pieces)
    for call in (engine.infer(REQUEST), collect(engine.stream(REQUEST))):
        with pytest.raises(ModelUnavailable):
            await call


async def test_what_is_no_answer_is_refused() -> None:
    async def answer(_: Request) -> str:
        return cast("Any", None)

    with pytest.raises(UserError, match="None cannot stand for an answer"):
        await FunctionEngine(answer).infer(REQUEST)


async def test_text_alone_makes_a_whole_stream() -> None:
    async def pieces(request: Request) -> AsyncGenerator[str, None]:
        for letter in request.messages[-1].text:
            yield letter

    engine = FunctionEngine(echo, pieces)
    events = [event async for event in engine.stream(REQUEST)]
    assert events == [
        *[TextDelta(0, letter) for letter in "hello"],
        Finish(model="function", finish_reason=FinishReason.STOP),
    ]
    assert await collect(engine.stream(REQUEST)) == await engine.infer(REQUEST)


async def test_who_gives_events_must_finish_them() -> None:
    async def pieces(_: Request) -> AsyncGenerator[StreamEvent | str, None]:
        yield "a"
        yield TextDelta(0, "b")

    with pytest.raises(UnexpectedModelBehavior, match="without a Finish"):
        await collect(FunctionEngine(echo, pieces).stream(REQUEST))

    async def finished(_: Request) -> AsyncGenerator[StreamEvent | str, None]:
        yield "a"
        yield TextDelta(0, "b")
        yield Finish(model="mine")

    result = await collect(FunctionEngine(echo, finished).stream(REQUEST))
    assert (result.message.parts, result.message.model) == ((Text("ab"),), "mine")


async def test_closing_the_stream_closes_the_function() -> None:
    closed = False

    async def pieces(_: Request) -> AsyncGenerator[str, None]:
        nonlocal closed
        try:
            yield "a"
            await asyncio.Event().wait()
        finally:
            closed = True

    stream = FunctionEngine(echo, pieces).stream(REQUEST)
    assert await anext(stream) == TextDelta(0, "a")
    await stream.aclose()
    assert closed
