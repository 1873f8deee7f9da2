from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flyball.core.errors import EngineError, ModelHTTPError, UserError
from flyball.core.messages import Message, ToolCall, user
from flyball.inference.answers import text_answer, tool_call_answer
from flyball.inference.engine import Engine
from flyball.inference.request import ModelInfo, Request, Result
from flyball.inference.scripted import ScriptedEngine
from flyball.inference.stream import StreamEvent, TextDelta, ToolCallDelta, collect
from tests.inference.strategies import messages

REQUEST = Request((user("hello"),))


async def deltas(engine: Engine) -> list[str]:
    return [event.text async for event in engine.stream(REQUEST) if isinstance(event, TextDelta)]


async def test_it_answers_in_order_and_remembers_what_it_was_asked() -> None:
    engine = ScriptedEngine("one", ToolCall("x", "add"), text_answer("three"))
    first = await engine.infer(REQUEST)
    second = await engine.infer(Request((user("again"),)))
    third = await collect(engine.stream(REQUEST))
    assert (first.content, second.tool_calls, third.content) == ("one", (ToolCall("x", "add"),), "three")
    assert [request.messages[0].text for request in engine.calls] == ["hello", "again", "hello"]


@pytest.mark.parametrize("answers", [0, 1, 2])
async def test_running_out_says_how_many_calls_were_made(answers: int) -> None:
    engine = ScriptedEngine(*["a"] * answers, name="clerk")
    for _ in range(answers):
        await engine.infer(REQUEST)
    expected = f"'clerk' has {answers} answers and was called {answers + 1} times"
    with pytest.raises(UserError, match=expected) as caught:
        await engine.infer(REQUEST)
    assert caught.value.details == {"answers": answers, "calls": answers + 1}
    with pytest.raises(UserError, match=f"called {answers + 2} times"):
        await collect(engine.stream(REQUEST))


async def test_reset_starts_again() -> None:
    engine = ScriptedEngine("one", "two")
    await engine.infer(REQUEST)
    engine.reset()
    assert engine.calls == []
    assert (await engine.infer(REQUEST)).content == "one"


async def test_forgetting_the_calls_does_not_turn_the_script_back() -> None:
    engine = ScriptedEngine("one", "two")
    await engine.infer(REQUEST)
    engine.calls.clear()
    assert (await engine.infer(REQUEST)).content == "two"


async def test_the_name_may_be_set() -> None:
    engine = ScriptedEngine("one", context_window=8)
    assert engine.model_info() == ModelInfo("test", 8, "test")
    engine.name = "other"
    assert engine.model_info().name == "other"
    assert (await engine.infer(REQUEST)).message.model == "other"


@given(messages, st.none() | st.integers(1, 7))
async def test_stream_and_infer_give_equal_results(message: Message, chunk: int | None) -> None:
    engine = ScriptedEngine(Result(message, "r"), Result(message, "r"), chunk=chunk)
    assert await collect(engine.stream(REQUEST)) == await engine.infer(REQUEST)


async def test_texts_are_cut_as_asked() -> None:
    assert await deltas(ScriptedEngine("hello")) == ["hello"]
    assert await deltas(ScriptedEngine("hello", chunk=2)) == ["he", "ll", "o"]
    engine = ScriptedEngine(tool_call_answer("add", {"a": 1}), chunk=3)
    pieces = [event.args_json async for event in engine.stream(REQUEST) if isinstance(event, ToolCallDelta)]
    assert pieces == ['{"a', '":1', "}"]


async def test_exceptions_are_raised_as_they_are() -> None:
    failure = ModelHTTPError("busy", status_code=429)
    engine = ScriptedEngine(failure, failure, "then")
    with pytest.raises(ModelHTTPError) as caught:
        await engine.infer(REQUEST)
    assert caught.value is failure
    with pytest.raises(ModelHTTPError):
        await collect(engine.stream(REQUEST))
    assert (await engine.infer(REQUEST)).content == "then"


@pytest.mark.parametrize("after", [0, 1, 2])
async def test_it_breaks_off_after_so_many_deltas(after: int) -> None:
    engine = ScriptedEngine("hello", "hello", chunk=2, fail_after=after)
    seen: list[StreamEvent] = []
    stream = engine.stream(REQUEST)
    for _ in range(after):
        seen.append(await anext(stream))
    with pytest.raises(EngineError, match=f"after {after} deltas") as caught:
        await anext(stream)
    assert caught.value.retryable
    assert seen == [TextDelta(0, "he"), TextDelta(0, "ll")][:after]
    with pytest.raises(EngineError):
        await engine.infer(REQUEST)


async def test_an_answer_that_is_short_enough_does_not_break_off() -> None:
    engine = ScriptedEngine("hello", "hello", chunk=2, fail_after=3, failure=ZeroDivisionError())
    assert (await collect(engine.stream(REQUEST))).content == (await engine.infer(REQUEST)).content == "hello"
    engine = ScriptedEngine("hello", fail_after=0, failure=ZeroDivisionError())
    with pytest.raises(ZeroDivisionError):
        await engine.infer(REQUEST)


async def test_it_waits_only_for_what_it_is_given() -> None:
    gate = asyncio.Event()
    engine = ScriptedEngine("one", "two", pause=gate.wait)
    first = asyncio.ensure_future(engine.infer(REQUEST))
    second = asyncio.ensure_future(collect(engine.stream(REQUEST)))
    await asyncio.sleep(0)
    assert not first.done()
    assert not second.done()
    gate.set()
    # The order of starting decides who gets what.
    assert [(await first).content, (await second).content] == ["one", "two"]


async def test_a_stream_waits_before_each_event() -> None:
    waits = 0

    async def pause() -> None:
        nonlocal waits
        waits += 1

    events = [event async for event in ScriptedEngine("hello", chunk=2, pause=pause).stream(REQUEST)]
    assert waits == len(events) + 1
