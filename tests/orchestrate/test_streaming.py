"""Streams: the pieces pass by, the run is the same as a plain one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flyball import Agent, tool
from flyball.core.errors import AgentRunClosed, EngineError, FlyballError, StreamRestarted, UserError
from flyball.core.events import ModelFailed
from flyball.core.ids import new_id
from flyball.core.messages import FinishReason, Message, Part, Role, Text, Thinking, ToolCall, assistant, user
from flyball.inference.answers import tool_call as call
from flyball.inference.request import Request
from flyball.inference.scripted import FunctionEngine, ScriptedEngine
from flyball.inference.stream import (
    Assembler,
    Finish,
    PartEnd,
    PartStart,
    Restart,
    StreamEvent,
    TextDelta,
    ToolCallDelta,
)
from flyball.orchestrate.journal import Journal
from flyball.orchestrate.projections import normal_form
from flyball.testing.split import ROUGH, SplitDriver
from tests.orchestrate.conftest import kinds_of
from tests.orchestrate.models import Hanging, Script
from tests.orchestrate.scenarios import SCENARIOS, City, Scenario, add, final, said
from tests.orchestrate.where import Where, read_into

# What is read


async def test_text_comes_in_pieces(where: Where) -> None:
    async with where.stream(Agent(Script("hello world", chunk=4))) as stream:
        pieces = [piece async for piece in stream.text()]
        assert pieces == ["hell", "o wo", "rld"] if where.calm else "".join(pieces) == "hello world"
        assert stream.done
        assert stream.result.output == "hello world"


async def test_text_comes_as_it_has_grown(where: Where) -> None:
    async with where.stream(Agent(Script("hello", chunk=2))) as stream:
        texts = [text async for text in stream.text(delta=False)]
    assert texts == ["he", "hell", "hello"] if where.calm else texts[-1] == "hello"


async def test_events_are_all_that_the_model_gave(where: Where) -> None:
    async with where.stream(Agent(Script("hi", chunk=1))) as stream:
        events = [event async for event in stream.events()]
    if where.calm:
        assert events[:3] == [TextDelta(0, "h"), TextDelta(0, "i"), PartEnd(0)]
    assert isinstance(events[-1], Finish)
    joined = Assembler()
    for event in events:
        joined.feed(event)
    assert joined.message() == stream.messages[-1]


async def test_the_output_of_a_stream(where: Where) -> None:
    agent = Agent(Script(final(name="Rome"), chunk=3), output=City, output_mode="tool")
    async with where.stream(agent) as stream:
        assert await stream.get_output() == City(name="Rome")


async def test_all_turns_are_streamed_with_the_tools_in_between(where: Where) -> None:
    ran: list[int] = []

    @tool
    async def work(n: int) -> int:
        ran.append(n)
        return n

    asked = said(Text("Let me see. "), call("work", {"n": 1}), call("work", {"n": 2}))
    async with where.stream(Agent(Script(asked, "Done.", chunk=6), tools=[work])) as stream:
        seen: list[Any] = []
        async for event in stream.events():
            seen.append((type(event).__name__, len(ran)))
        assert stream.result.output == "Done."
    assert [name for name, _ in seen].count("Finish") == 2
    first = [name for name, _ in seen].index("Finish")
    if not where.split:  # there the loop may be ahead of what is read
        assert {count for _, count in seen[: first + 1]} == {0}, "tools run when the answer is complete"
        assert {count for _, count in seen[first + 1 :]} == {2}
    assert set(ran) == {1, 2}


async def test_text_of_all_turns_comes_in_order(where: Where) -> None:
    asked = said(Text("Let me see. "), call("add", {"x": 1, "y": 1}))
    async with where.stream(Agent(Script(asked, "Two."), tools=[add])) as stream:
        assert [piece async for piece in stream.text()] == ["Let me see. ", "Two."]


async def test_thinking_and_arguments_are_no_text(where: Where) -> None:
    answer = said(Thinking("hm"), Text("yes"))
    async with where.stream(Agent(Script(answer))) as stream:
        assert [piece async for piece in stream.text()] == ["yes"]
        assert stream.messages[-1].thinking == "hm"


async def test_nothing_goes_on_while_nobody_reads(journal: Journal) -> None:
    """In process only. Elsewhere the loop goes on."""
    script = Script(call("add", {"x": 1, "y": 1}), "2", chunk=1)
    async with Agent(script, tools=[add]).run_stream("hi", journal=journal) as stream:
        assert kinds_of(await journal.read(stream.loop_id)) == ["Started"]
        assert script.calls == 0
        pieces = stream.events()
        assert isinstance(await anext(pieces), PartStart)
        assert isinstance(await anext(pieces), ToolCallDelta)
        assert kinds_of(await journal.read(stream.loop_id)) == ["Started"]
        with pytest.raises(AgentRunClosed):
            _ = stream.result


async def test_messages_and_usage_grow_with_the_turns(where: Where) -> None:
    script = Script(call("add", {"x": 1, "y": 1}), "2")
    async with where.stream(Agent(script, tools=[add])) as stream:
        grown: set[tuple[int, int]] = set()
        async for _ in stream.events():
            grown.add((len(stream.messages), stream.usage.requests))
        assert grown == {(1, 0), (3, 1)}
        assert (len(stream.messages), stream.usage.requests) == (4, 2)


async def test_a_finished_stream_gives_nothing_more(where: Where) -> None:
    async with where.stream(Agent(Script("hi"))) as stream:
        assert [piece async for piece in stream.text()] == ["hi"]
        assert [piece async for piece in stream.text()] == []
        assert await stream.get_output() == "hi"


# Streamed and plain are the same


async def never(_: Request) -> str:
    raise NotImplementedError


async def streamed(agent: Agent[Any, Any], prompt: Any, **options: Any) -> Any:
    async with agent.run_stream(prompt, **options) as stream:
        async for _ in stream.events():
            pass
        return stream.result


@pytest.mark.parametrize("scenario", SCENARIOS, ids=repr)
async def test_a_streamed_run_leaves_the_journal_of_a_plain_one(where: Where, scenario: Scenario) -> None:
    forms: list[Any] = []
    for way in ("plain", "streamed"):
        agent = scenario.make()
        try:
            if way == "plain":
                result = await agent.run(scenario.prompt, **scenario.options)
            else:
                result = await streamed(agent, scenario.prompt, **where.options(scenario.options))
        except FlyballError as error:
            result = error.partial
        assert result.output == scenario.output
        forms.append((normal_form(await result.events()), result.messages, result.usage))
    assert forms[0] == forms[1]


parts: st.SearchStrategy[Part] = st.one_of(
    st.builds(Text, st.text(max_size=9)),
    st.builds(Thinking, st.text(min_size=1, max_size=9), st.none() | st.just("signed")),
    st.builds(
        ToolCall,
        st.sampled_from(["", "a", "b", "a"]),
        st.sampled_from(["add", "nope"]),
        st.sampled_from(["{}", '{"x": 1, "y": 2}', '{"x": ', ""]),
    ),
)
answers = st.builds(Message, st.just(Role.ASSISTANT), st.lists(parts, max_size=4).map(tuple))


@given(st.lists(answers, max_size=4), st.none() | st.integers(1, 4), st.none() | st.integers(0, 99))
async def test_however_answers_are_cut_the_journal_is_that_of_a_plain_run(
    given_answers: list[Message], chunk: int | None, seed: int | None
) -> None:
    """Streamed in process, or, with a seed, in a split world."""
    options: dict[str, Any] = {} if seed is None else {"runtime": SplitDriver(seed, ROUGH)}
    forms: list[Any] = []
    for way in ("plain", "streamed"):
        agent = Agent(Script(*given_answers, "done", "done", chunk=chunk), tools=[add], retries=1)
        try:
            if way == "plain":
                result = await agent.run("go")
            else:
                result = await streamed(agent, "go", **options)
        except FlyballError as error:
            result = error.partial
        forms.append((normal_form(await result.events()), result.messages))
    assert forms[0] == forms[1]


# Failing and leaving


@pytest.mark.parametrize("after", [0, 1, 3])
async def test_a_stream_that_breaks_off_fails_the_run_with_what_had_come(where: Where, after: int) -> None:
    async def broken(_: Request) -> AsyncIterator[str]:
        for n in range(after):
            yield "hello world"[2 * n : 2 * n + 2]
        raise EngineError("gone")

    async with where.stream(Agent(FunctionEngine(never, broken))) as stream:
        seen: list[str] = []
        with pytest.raises(EngineError, match="gone") as caught:
            await read_into(seen, stream.text())
        assert "".join(seen) == "hello world"[: 2 * after]
        for again in (stream.events, stream.text, stream.stream_output, lambda: stream.text(delta=False)):
            with pytest.raises(EngineError, match="gone"):
                await anext(again())
        with pytest.raises(EngineError, match="gone"):
            _ = stream.result
    failed = [event for event in await where.journal.read(stream.loop_id) if isinstance(event, ModelFailed)]
    assert len(failed) == 1
    assert (failed[0].partial.text if failed[0].partial is not None else "") == "".join(seen)
    assert caught.value.partial.messages == (user("go"),)


@pytest.mark.parametrize("pieces", range(8))
async def test_a_stream_that_is_left_early_can_be_resumed(where: Where, pieces: int) -> None:
    agent = Agent(Script(call("add", {"x": 1, "y": 1}), "two", chunk=5), tools=[add])
    async with where.stream(agent) as stream:
        count = 0
        async for _ in stream.events():
            count += 1
            if count > pieces:
                break
    result = await where.resume(agent, stream.loop_id)
    assert result.output == "two"
    assert kinds_of(await result.events()).count("ToolReturned") == 1


async def test_leaving_the_block_ends_the_model_call(journal: Journal) -> None:
    """In process only. Elsewhere the call is not the reader's to end."""
    model = Hanging("one", "two")
    async with Agent(model).run_stream("hi", journal=journal) as stream:
        async for _ in stream.text():
            break
        assert model.closed == 0
    assert model.closed == 1
    assert kinds_of(await journal.read(stream.loop_id)) == ["Started"]


async def test_an_error_of_the_readers_leaves_the_run_to_be_resumed(where: Where) -> None:
    agent = Agent(Script("hello", chunk=1))
    loop_id = new_id()

    async def read() -> None:
        async with where.stream(agent, loop_id=loop_id) as stream:
            async for _ in stream.text():
                raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await read()
    assert (await where.resume(agent, loop_id)).output == "hello"


async def test_who_begins_to_read_anew_ends_the_reading_before(where: Where) -> None:
    model = Hanging("one ", "two ")
    async with where.stream(Agent(model)) as stream:
        first = stream.text()
        assert "one two done".startswith(await anext(first))
        model.place.let_go.set()
        pieces = [piece async for piece in stream.text()]
        assert pieces == ["one ", "two ", "done"] if where.calm else "".join(pieces) == "one two done"
        assert model.closed == 2 - where.split or not where.calm, "elsewhere the call just goes on"
        assert [piece async for piece in first] == []
        assert stream.result.output == "one two done"


async def test_two_tasks_cannot_read_one_stream(where: Where) -> None:
    model = Hanging()
    async with where.stream(Agent(model)) as stream:
        reading = asyncio.create_task(anext(stream.text(), ""))  # pyright: ignore[reportArgumentType]
        await model.place.entered.wait()
        with pytest.raises(UserError, match="one reader"):
            await anext(stream.text())
        model.place.let_go.set()
        assert await reading == "done"


async def test_a_slow_reader_slows_the_model_down(journal: Journal) -> None:
    """In process only. Elsewhere nobody waits for the reader."""
    given_out: list[str] = []

    async def pieces(_: Request) -> AsyncIterator[str]:
        for word in ("a", "b", "c"):
            given_out.append(word)
            yield word

    async with Agent(FunctionEngine(never, pieces)).run_stream("hi", journal=journal) as stream:
        read: list[str] = []
        async for piece in stream.text():
            read.append(piece)
            assert given_out == read
        assert stream.result.output == "abc"


# Answers that begin again


def beginning_again(*words: str | StreamEvent) -> Agent[Any, Any]:
    async def pieces(_: Request) -> AsyncIterator[StreamEvent | str]:
        for word in words:
            yield word
        yield Finish(model="test")

    return Agent(FunctionEngine(never, pieces))


async def test_an_answer_that_begins_again_is_recorded_as_it_came_out(where: Where) -> None:
    agent = beginning_again(PartStart(0, Text("one ")), "two", Restart(), "four")
    async with where.stream(agent) as stream:
        events = [event async for event in stream.events()]
        assert stream.result.output == "four"
    if where.calm:
        assert events[:4] == [
            PartStart(0, Text("one ")),
            TextDelta(0, "two"),
            Restart(),
            TextDelta(0, "four"),
        ]
    async with where.stream(agent) as stream:
        assert [text async for text in stream.text(delta=False)][-1] == "four"


async def test_what_an_answer_repeats_is_read_once(where: Where) -> None:
    agent = beginning_again(PartStart(0, Text("one ")), "two", Restart(), "one", " two", " three", PartEnd(0))
    async with where.stream(agent) as stream:
        pieces = [piece async for piece in stream.text()]
    assert pieces == ["one ", "two", " three"] if where.calm else "".join(pieces) == "one two three"


async def test_other_text_than_was_read_is_the_readers_to_know_and_no_failure_of_the_model() -> None:
    """In process: the model call is made again for who reads anew. What happens elsewhere: test_followed."""
    answers = [["one ", "two", Restart(), "four"], ["four"]]

    async def pieces(_: Request) -> AsyncIterator[StreamEvent | str]:
        for word in answers.pop(0):
            yield word
        yield Finish(model="test")

    async with Agent(FunctionEngine(never, pieces)).run_stream("go") as stream:
        with pytest.raises(StreamRestarted) as caught:
            async for _ in stream.text():
                pass
        assert caught.value.details == {"void": "one two"}
        assert not stream.done
        assert [piece async for piece in stream.text()] == ["four"]
        assert kinds_of(await stream.result.events()) == ["Started", "ModelAnswered", "Ended"]


async def test_the_answer_so_far(where: Where) -> None:
    agent = Agent(Script(call("add", {"x": 1, "y": 2}), "It is three.", chunk=4), tools=[add])
    async with where.stream(agent, "1 + 2?", messages=[user("hi"), assistant("hello")]) as stream:
        assert stream.response is None
        assert [message.text for message in stream.messages] == ["hi", "hello", "1 + 2?"]
        read = ""
        async for piece in stream.text():
            read += piece
            assert stream.response is not None
            assert stream.response.text.startswith(read)
            assert where.split or stream.response.text == read  # elsewhere nobody waits for the reader
        assert stream.response is not None
        assert stream.response.text == "It is three."
        assert stream.response.finish_reason is FinishReason.STOP
    assert (await stream.get_result()).output == "It is three."


async def test_reading_to_the_end_gives_the_result(where: Where) -> None:
    async with where.stream(Agent(Script("Rain, then sun.")), "Today?") as stream:
        result = await stream.get_result()
    assert (result.output, result.usage.requests) == ("Rain, then sun.", 1)


@pytest.mark.parametrize("delta", [True, False])
async def test_pieces_gathered_for_a_while(orderly: Where, delta: bool) -> None:
    model = Script("Rain, then sun.", chunk=3)
    async with orderly.stream(Agent(model), "Today?") as stream:
        assert [text async for text in stream.text(delta=delta, debounce_by=3600)] == ["Rain, then sun."]
    assert stream.result.output == "Rain, then sun."


async def test_a_debounced_reading_that_is_left_can_be_begun_anew(journal: Journal) -> None:
    agent = Agent(Script("Rain, then sun.", chunk=3))
    async with agent.run_stream("Today?", journal=journal) as stream:
        async for text in stream.text(debounce_by=0):
            assert text == "Rai"
            break
        assert "".join([text async for text in stream.text()]) == "Rain, then sun."
    assert stream.result.output == "Rain, then sun."


async def test_what_is_read_halfway_is_read_on_for_the_output() -> None:
    engine = ScriptedEngine("the first answer", "another answer", chunk=4)
    async with Agent(engine).run_stream("?") as stream:
        async for _ in stream.text():
            break
        assert await stream.get_output() == "the first answer"
    assert len(engine.calls) == 1


async def test_a_stream_whose_block_was_left_is_not_read_on() -> None:
    engine = ScriptedEngine("the first answer", chunk=4)
    async with Agent(engine).run_stream("?") as stream:
        async for _ in stream.text():
            break
    for read in (stream.text, stream.events, stream.stream_output):
        with pytest.raises(AgentRunClosed, match="resume"):
            read()
    with pytest.raises(AgentRunClosed, match="resume"):
        await stream.get_output()
    assert len(engine.calls) == 1
