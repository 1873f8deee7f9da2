"""Loops that are driven elsewhere and followed: what reaches the caller, whatever happens on the way."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from flyball import Agent
from flyball.core.errors import (
    DepsError,
    JournalCorrupt,
    LoopMismatch,
    OrchestrationFailure,
    StreamRestarted,
)
from flyball.core.events import Delivered, ModelAnswered
from flyball.core.messages import Message, Text, ToolCall
from flyball.inference.answers import Answer, result_of
from flyball.inference.answers import tool_call as call
from flyball.inference.cut import events_of
from flyball.inference.request import ModelInfo, Request, Result
from flyball.inference.stream import Assembler, Finish, Restart, StreamEvent
from flyball.orchestrate.projections import normal_form
from flyball.orchestrate.result import RunResult
from flyball.orchestrate.runs import StreamedRun
from flyball.orchestrate.soundness import sound
from flyball.testing import CALM, ROUGH, Chaos, SplitDriver
from tests.orchestrate.models import Hanging, Script
from tests.orchestrate.scenarios import add, said

chaos = st.builds(
    Chaos,
    double=st.floats(0, 0.5),
    reorder=st.floats(0, 1),
    crash=st.floats(0, 0.4),
    lose=st.floats(0, 1),
)


class Wandering:
    """A model that says something else each time it is asked."""

    def __init__(self, chunk: int = 3) -> None:
        self.chunk = chunk
        self.times = 0

    async def infer(self, request: Request) -> Result:
        self.times += 1
        return result_of(f"You ask, and I say {self.times} times {self.times}.", request, "wandering")

    async def stream(self, request: Request) -> AsyncIterator[StreamEvent]:
        result = await self.infer(request)
        for event in events_of(result.message, self.chunk, result.request_id):
            yield event

    def model_info(self) -> ModelInfo:
        return ModelInfo("wandering", provider="test")


async def answers_of(result: RunResult[Any]) -> list[Message]:
    return [event.message for event in await result.events() if isinstance(event, ModelAnswered)]


async def text_of(result: RunResult[Any]) -> str:
    return "".join([message.text for message in await answers_of(result)])


# What is read is what was recorded


@pytest.mark.parametrize("way", ["events", "text", "so far"])
@given(
    st.integers(0, 2**32), chaos, st.lists(st.text(max_size=30), max_size=4), st.none() | st.integers(1, 5)
)
async def test_in_any_weather_the_text_that_is_read_is_the_recorded_one(
    way: str, seed: int, weather: Chaos, texts: list[str], chunk: int | None
) -> None:
    *asides, last = texts or [""]
    answers: list[Answer] = [
        said(Text(aside), call("add", {"x": n, "y": 1})) for n, aside in enumerate(asides)
    ]

    def agent() -> Agent[Any, Any]:
        return Agent(Script(*answers, last or "done", chunk=chunk), tools=[add])

    plain = await agent().run("go")
    async with agent().run_stream("go", runtime=SplitDriver(seed, weather)) as stream:
        if way == "events":
            read = [content(sound(message)[0]) for message in await joined_answers(stream)]
            assert read == [content(message) for message in await answers_of(plain)]
        else:
            pieces = [piece async for piece in stream.text(delta=way == "text")]
            read = "".join(pieces) if way == "text" else (pieces or [""])[-1]
            assert read == await text_of(plain)
        assert stream.result.output == plain.output
        assert (stream.messages, stream.usage) == (plain.messages, plain.usage)
        assert normal_form(await stream.result.events()) == normal_form(await plain.events())


def content(message: Message) -> list[Any]:
    """What a message says, but for call ids, which are told apart as an answer is recorded."""
    return [replace(part, id="") if isinstance(part, ToolCall) else part for part in message.parts]


async def joined_answers(stream: StreamedRun[Any]) -> list[Message]:
    """The answers that a stream's events make."""
    messages: list[Message] = []
    joined = Assembler()
    async for event in stream.events():
        joined.feed(event)
        if isinstance(event, Finish):
            messages.append(joined.message())
            joined = Assembler()
    return messages


async def test_a_model_that_says_something_else_each_time_is_never_shown_wrong() -> None:
    restarts = 0
    for seed in range(60):
        async with Agent(Wandering()).run_stream("go", runtime=SplitDriver(seed, ROUGH)) as stream:
            joined = Assembler()
            async for event in stream.events():
                joined.feed(event)
                restarts += isinstance(event, Restart)
            assert joined.message() == (await answers_of(stream.result))[0]
    assert restarts, "nothing was begun again, so this shows nothing"


async def test_all_text_so_far_ends_with_the_recorded_text_also_where_it_was_begun_again() -> None:
    less = 0
    for seed in range(60):
        async with Agent(Wandering()).run_stream("go", runtime=SplitDriver(seed, ROUGH)) as stream:
            seen = [text async for text in stream.text(delta=False)]
            assert seen[-1] == await text_of(stream.result)
        less += any(not later.startswith(sooner) for sooner, later in pairwise(seen))
    assert less


async def test_text_that_cannot_be_taken_back_is_an_error_and_who_reads_anew_reads_it_right() -> None:
    restarted = 0
    for seed in range(60):
        async with Agent(Wandering()).run_stream("go", runtime=SplitDriver(seed, ROUGH)) as stream:
            read = ""
            while not stream.done:
                try:
                    async for piece in stream.text():
                        read += piece
                except StreamRestarted as error:
                    restarted += 1
                    void = error.details["void"]
                    assert read.endswith(void)
                    read = read.removesuffix(void)
            assert read == await text_of(stream.result)
    assert restarted


async def test_pieces_come_while_the_model_still_speaks() -> None:
    driver, model = SplitDriver(), Hanging("one ", "two ")
    async with Agent(model).run_stream("go", runtime=driver) as stream:
        pieces = stream.text()
        assert [await anext(pieces), await anext(pieces)] == ["one ", "two "]
        assert len(await driver.journal.read(stream.loop_id)) == 1, "nothing is recorded yet"
        model.place.let_go.set()
        assert [piece async for piece in pieces] == ["done"]


async def test_text_that_cannot_travel_comes_from_the_record() -> None:
    """Half a character cannot be written down; an answer is made whole before it is recorded."""
    agent = Agent(Script("half \ud800 a word", chunk=1))
    async with agent.run_stream("go", runtime=SplitDriver()) as stream:
        assert "".join([piece async for piece in stream.text()]) == "half � a word"


# Joining, leaving, and what goes wrong


@pytest.mark.parametrize("weather", [CALM, ROUGH], ids=["calm", "rough"])
async def test_two_may_follow_one_loop(weather: Chaos) -> None:
    driver = SplitDriver(5, weather)
    agent = Agent(Script(call("add", {"x": 1, "y": 1}), "It is two.", chunk=2), tools=[add])
    options: dict[str, Any] = {"runtime": driver, "loop_id": "one"}
    async with agent.run_stream("go", **options) as first, agent.run_stream("go", **options) as second:

        async def read(stream: StreamedRun[Any]) -> str:
            return "".join([piece async for piece in stream.text()])

        assert await asyncio.gather(read(first), read(second)) == ["It is two."] * 2
        assert first.messages == second.messages


async def test_a_loop_that_is_over_gives_its_result_and_nothing_more() -> None:
    driver = SplitDriver()
    agent = Agent(Script("hello"))
    await agent.run("go", runtime=driver, loop_id="one")
    async with agent.run_stream("go", runtime=driver, loop_id="one") as stream:
        assert stream.done
        assert [event async for event in stream.events()] == []
        assert stream.result.output == "hello"
    async with agent.iter("go", runtime=driver, loop_id="one") as run:
        assert await run.next() is None


async def test_who_joins_late_reads_on_from_there() -> None:
    driver, model = SplitDriver(), Hanging("one ")
    agent = Agent(model)
    async with agent.run_stream("go", runtime=driver, loop_id="one") as first:
        assert await anext(first.text()) == "one "
        async with agent.run_stream("go", runtime=driver, loop_id="one") as second:
            model.place.let_go.set()
            assert "".join([piece async for piece in second.text()]) == "one done"


async def test_a_driver_that_can_go_on_no_longer_says_so_to_who_follows() -> None:
    hopeless = Chaos(crash=1.0)
    async with Agent(Script("hi")).run_stream("go", runtime=SplitDriver(0, hopeless)) as stream:
        with pytest.raises(OrchestrationFailure, match="does not come to an end"):
            await stream.get_output()
    async with Agent(Script("hi")).iter("go", runtime=SplitDriver(0, hopeless)) as run:
        with pytest.raises(OrchestrationFailure, match="does not come to an end"):
            await run.next()


async def test_a_journal_that_does_not_fit_is_said_to_be_corrupt() -> None:
    driver, model = SplitDriver(), Hanging()
    async with Agent(model).iter("go", runtime=driver, loop_id="one") as run:
        await model.place.entered.wait()
        await driver.journal.append("one", (Delivered(0.0),), 1)
        with pytest.raises(JournalCorrupt, match="Delivered"):
            await run.next()


async def test_what_cannot_be_followed_is_refused_before_anything_runs() -> None:
    driver = SplitDriver()
    await Agent(Script("hi")).run("go", runtime=driver, loop_id="one")
    refused: list[tuple[type[Exception], dict[str, Any]]] = [
        (DepsError, {"deps": 5}),
        (LoopMismatch, {"loop_id": "one"}),
    ]
    for kind, options in refused:
        for begin in (Agent(Script()).run_stream, Agent(Script()).iter):
            with pytest.raises(kind):
                await begin("stop", runtime=driver, **options).__aenter__()
