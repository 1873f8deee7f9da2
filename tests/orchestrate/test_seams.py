"""What happens in the seams: when a stream is closed, when a task ends itself, when a run is left."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from flyball import Agent, MemoryJournal, ModelInfo, Request, Result, RunContext, assistant, tool
from flyball.core.errors import EngineError, RuleFailed
from flyball.core.events import Event, ToolReturned
from flyball.inference.stream import Finish, StreamEvent, TextDelta
from flyball.testing import ScriptedEngine, tool_call


class Pieces:
    """A stream whose end can go wrong."""

    def __init__(self, *pieces: StreamEvent) -> None:
        self._pieces = list(pieces)

    def __aiter__(self) -> Pieces:
        return self

    async def __anext__(self) -> StreamEvent:
        if not self._pieces:
            raise StopAsyncIteration
        return self._pieces.pop(0)

    async def aclose(self) -> None:
        raise OSError("connection reset")


class StreamingEngine:
    def __init__(self, *pieces: StreamEvent) -> None:
        self._pieces = pieces

    async def infer(self, request: Request) -> Result:
        return Result(assistant("hello"))

    def stream(self, request: Request) -> AsyncIterator[StreamEvent]:
        return Pieces(*self._pieces)

    def model_info(self) -> ModelInfo:
        return ModelInfo("pieces")


def kinds(events: list[Event]) -> list[str]:
    return [type(event).__name__ for event in events]


async def test_an_answer_that_is_there_stays_when_its_stream_cannot_be_closed() -> None:
    agent = Agent(StreamingEngine(TextDelta(0, "hel"), TextDelta(0, "lo"), Finish()))
    async with agent.run_stream("hi") as stream:
        assert [piece async for piece in stream.text()] == ["hel", "lo"]
    assert stream.result.output == "hello"
    assert kinds(await stream.result.events()) == ["Started", "ModelAnswered", "Ended"]


async def test_a_stream_that_cannot_be_closed_can_be_left() -> None:
    journal = MemoryJournal()
    agent = Agent(StreamingEngine(TextDelta(0, "hel"), TextDelta(0, "lo"), Finish()))
    async with agent.run_stream("hi", journal=journal, loop_id="l") as stream:
        async for _ in stream.text():
            break
    assert (await agent.resume("l", journal)).output == "hello"


async def test_pieces_that_are_no_text_are_the_engines_failure() -> None:
    agent = Agent(StreamingEngine(TextDelta(0, 3), Finish()))  # pyright: ignore[reportArgumentType]
    async with agent.run_stream("hi") as stream:
        pieces = stream.text()
        assert await anext(pieces) == 3
        with pytest.raises(EngineError):
            await anext(pieces)


@tool
async def harakiri() -> str:
    """Cancels the task that it runs in."""
    task = asyncio.current_task()
    assert task is not None
    task.cancel()
    await asyncio.sleep(0)
    return "never"


@tool
async def fine() -> str:
    """Returns."""
    return "fine"


async def test_a_tool_that_cancels_itself_beside_others_has_failed() -> None:
    model = ScriptedEngine([tool_call("harakiri", id="a"), tool_call("fine", id="b")], "done")
    result = await Agent(model, tools=[harakiri, fine]).run("go")
    assert result.output == "done"
    returned = {
        event.result.name: event.result for event in await result.events() if type(event) is ToolReturned
    }
    assert returned["harakiri"].error == "harakiri cancelled itself"
    assert returned["fine"].content == "fine"


@pytest.mark.parametrize("ticks", range(1, 8))
async def test_a_result_that_is_there_survives_a_cancelled_run(ticks: int) -> None:
    ran: list[str] = []

    @tool(safety="at_most_once")
    async def pay() -> str:
        ran.append("pay")
        return "paid"

    @tool
    async def nap() -> str:
        await asyncio.Event().wait()
        return "never"

    journal = MemoryJournal()
    model = ScriptedEngine([tool_call("pay", id="a"), tool_call("nap", id="b")], "done")
    agent = Agent(model, tools=[pay, nap])
    task = asyncio.create_task(agent.run("go", journal=journal, loop_id="l"))
    for _ in range(ticks):
        await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    returned = [event.result.content for event in await journal.read("l") if type(event) is ToolReturned]
    assert returned == (["paid"] if ran else [])


async def test_a_loop_that_was_refused_at_its_beginning_is_forked_with_the_new_prompt_alone() -> None:
    def refuse(ctx: RunContext[Any]) -> str:
        raise ValueError("no")

    journal = MemoryJournal()
    with pytest.raises(RuleFailed):
        await Agent(ScriptedEngine("x"), instructions=[refuse]).run("A", journal=journal, loop_id="l")
    model = ScriptedEngine("y")
    forked = await Agent(model).fork("l", journal, turn=0, prompt="B", new_loop_id="f")
    assert [message.text for message in forked.messages] == ["B", "y"]
    again = await Agent(model).run("B", journal=journal, loop_id="f")
    assert again.output == "y"
    assert len(model.calls) == 1
