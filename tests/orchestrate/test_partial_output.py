"""The output as it grows: always valid, never the same twice in a row, last the run's own; and cheap."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from itertools import pairwise
from time import process_time
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET
from pydantic import BaseModel, Field, TypeAdapter
from typing_extensions import TypedDict

from flyball import Agent, LocalRuntime, ModelRepair, ModelRetry, RunContext, TextOutput, tool
from flyball.core.encodable import as_text
from flyball.core.errors import FlyballError, UnexpectedModelBehavior, UserError
from flyball.core.messages import Message, Text, Thinking, ToolCall
from flyball.inference.answers import Answer
from flyball.inference.answers import tool_call as call
from flyball.inference.cut import events_of
from flyball.inference.request import Request
from flyball.inference.stream import (
    Finish,
    PartEnd,
    PartStart,
    Restart,
    StreamEvent,
    TextDelta,
    ToolCallDelta,
)
from flyball.orchestrate.partial_output import PartialOutput, same
from flyball.orchestrate.runs import StreamedRun
from tests.orchestrate.conftest import kinds_of
from tests.orchestrate.models import Script
from tests.orchestrate.output_scenarios import River
from tests.orchestrate.scenarios import City, add, final, grown, said
from tests.orchestrate.where import Where


class Trip(TypedDict, total=False):
    start: str
    stops: list[str]
    days: int


class Paint(BaseModel):
    colour: Literal["red", "dark_blue"]
    coats: int = Field(default=1, ge=1)


TRIP = {"start": "Rome", "stops": ["Pisa", "Genoa"], "days": 120}


async def outputs(where: Where, agent: Agent[Any, Any], **options: Any) -> list[Any]:
    """What a stream gives, and that it ends with the output."""
    async with where.stream(agent, **options) as stream:
        seen = [output async for output in stream.stream_output(debounce_by=None)]
        assert same(seen[-1], stream.result.output)
    assert not any(same(one, other) for one, other in pairwise(seen))
    return seen


# What is given


@pytest.mark.parametrize("mode", ["tool", "native", "prompted", "grammar"])
async def test_an_object_grows_in_every_mode(where: Where, mode: str) -> None:
    answer: Answer = final(**TRIP) if mode == "tool" else as_text(TRIP)
    seen = await outputs(where, Agent(Script(answer, chunk=6), output=Trip, output_mode=mode))
    assert seen[-1] == TRIP
    if where.calm:
        assert {"start": "R"} in seen or {"start": "Ro"} in seen or {"start": "Rom"} in seen
        assert len(seen) > 4


@pytest.mark.parametrize("mode", ["native", "prompted"])
async def test_what_stands_around_the_json_is_passed_over(where: Where, mode: str) -> None:
    text = f"<think>Perhaps {{}}?</think>Here it is:\n```json\n{as_text(TRIP)}\n```\nIs that {{all}}?"
    seen = await outputs(where, Agent(Script(text, chunk=3), output=Trip, output_mode=mode))
    assert seen[-1] == TRIP
    if where.calm:
        assert len(seen) > 5


async def test_text_grows(where: Where) -> None:
    seen = await outputs(where, Agent(Script("hello world", chunk=4)))
    assert seen == ["hell", "hello wo", "hello world"] if where.calm else seen[-1] == "hello world"


async def test_a_value_that_is_wrapped_grows(where: Where) -> None:
    cities = [{"name": "Rome", "people": 2800000}, {"name": "Oslo"}]
    seen = await outputs(where, Agent(Script(final(result=cities), chunk=2), output=list[City]))
    assert seen[-1] == [City(name="Rome", people=2800000), City(name="Oslo")]
    if where.calm:
        assert [City(name="Rome", people=0)] in seen


async def test_a_number_is_not_shown_before_its_end(where: Where) -> None:
    seen = await outputs(where, Agent(Script(final(name="Rome", people=2800000), chunk=1), output=City))
    assert {city.people for city in seen} <= {0, 2800000}


async def test_members_of_enumerations_are_not_shown_before_their_end(where: Where) -> None:
    seen = await outputs(where, Agent(Script(final(colour="dark_blue", coats=12), chunk=1), output=Paint))
    assert {paint.colour for paint in seen} == {"dark_blue"}


async def test_the_member_whose_tool_is_called_grows(where: Where) -> None:
    script = Script(call("final_result_City", {"name": "Rome"}), chunk=3)
    seen = await outputs(where, Agent(script, output=[City, River, str], output_mode="tool"))
    assert all(isinstance(one, City) for one in seen)
    script = Script("Nowhere at all.", chunk=3)
    seen = await outputs(where, Agent(script, output=[City, River, str], output_mode="tool"))
    assert all(isinstance(one, str) for one in seen)


async def test_one_schema_for_several_grows(where: Where) -> None:
    script = Script(as_text({"result": {"km": 1.5}}), chunk=3)
    seen = await outputs(where, Agent(script, output=[City, River], output_mode="native"))
    assert seen == [River(km=1.5)]


async def test_a_value_that_follows_a_schema_grows(where: Where) -> None:
    schema = {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "integer"}}}
    script = Script(final(a="long text", b=12), chunk=3)
    seen = await outputs(where, Agent(script, output=schema, output_mode="tool"))
    assert seen[-1] == {"a": "long text", "b": 12}
    listed = {"type": "array", "items": {"type": "integer"}}
    seen = await outputs(
        where, Agent(Script(final(result=[1, 2]), chunk=3), output=listed, output_mode="tool")
    )
    assert seen[-1] == [1, 2]
    assert all(isinstance(one, list) for one in seen)


async def test_validators_look_at_the_last_one_only(where: Where) -> None:
    seen: list[City] = []

    def look(ctx: RunContext[Any], city: City) -> City:
        seen.append(city.model_copy())
        return grown(ctx, city)

    agent = Agent(Script(final(name="Rome"), chunk=2), output=City, output_mode="tool", validators=[look])
    given_out = await outputs(where, agent)
    assert given_out[-1] == City(name="Rome", people=1)
    assert {city.name for city in seen} == {"Rome"}


async def test_what_a_function_makes_of_text_comes_at_the_end(where: Where) -> None:
    def length(text: str) -> int:
        return len(text)

    assert await outputs(where, Agent(Script("hello", chunk=1), output=TextOutput(length))) == [5]


async def test_what_a_model_put_right_comes_at_the_end(where: Where) -> None:
    repair = ModelRepair(Script('{"name": "Rome"}', name="mender"))
    agent = Agent(Script("Rome!", chunk=1), output=City, output_mode="native", features=[repair])
    assert await outputs(where, agent) == [City(name="Rome")]


async def test_other_calls_and_thoughts_are_no_output(where: Where) -> None:
    first = said(Thinking("hm"), Text("Let me see. "), call("add", {"x": 1, "y": 1}))
    second = said(Text("So: "), final(name="Rome"), final(name="Oslo"))
    agent = Agent(Script(first, second, chunk=2), output=City, output_mode="tool", tools=[add])
    seen = await outputs(where, agent)
    assert seen[-1] == City(name="Rome")
    assert all("Rome".startswith(city.name) for city in seen), "the first output call is followed"


async def test_an_answer_that_is_refused_is_followed_by_the_next(where: Where) -> None:
    def long(ctx: RunContext[Any], city: City) -> City:
        if len(city.name) < 6:
            raise ModelRetry("longer")
        return city

    script = Script(final(name="Rome"), final(name="Florence"), chunk=30)
    seen = await outputs(where, Agent(script, output=City, output_mode="tool", validators=[long]))
    assert seen[-1] == City(name="Florence")


async def test_a_run_that_fails_raises_at_its_end(where: Where) -> None:
    agent = Agent(Script(final(name="Rome", people="many"), chunk=3), output=City, retries=0)

    async def read(stream: StreamedRun[Any]) -> None:
        async for city in stream.stream_output(debounce_by=None):
            assert "Rome".startswith(city.name)
            assert not city.people

    async with where.stream(agent) as stream:
        with pytest.raises(UnexpectedModelBehavior):
            await read(stream)
        assert stream.done


async def test_reading_the_output_leaves_the_same_journal(where: Where) -> None:
    agent = Agent(Script(final(name="Rome"), chunk=2), output=City, output_mode="tool")
    async with where.stream(agent, loop_id="a") as stream:
        async for _ in stream.stream_output():
            pass
    assert kinds_of(await where.journal.read("a")) == ["Started", "ModelAnswered", "TurnSettled", "Ended"]


async def test_it_is_read_by_one_at_a_time(where: Where) -> None:
    agent = Agent(Script(final(name="Rome"), chunk=2), output=City, output_mode="tool")
    async with where.stream(agent) as stream:
        reading = stream.stream_output(debounce_by=None)
        assert isinstance(await anext(reading), City)
        again = [output async for output in stream.stream_output(debounce_by=None)]
        assert again[-1] == City(name="Rome")
        assert [output async for output in reading] == []


async def test_a_slow_pace_gives_the_first_and_the_last(where: Where) -> None:
    agent = Agent(Script(final(name="Rome" * 50), chunk=2), output=City, output_mode="tool")
    async with where.stream(agent) as stream:
        seen = [output async for output in stream.stream_output(debounce_by=1000.0)]
    assert len(seen) <= 2
    assert seen[-1] == City(name="Rome" * 50)


async def test_it_grows_also_where_a_runtime_carries_it_on() -> None:
    repair = ModelRepair(Script('{"name": "Oslo"}', name="mender", first=1))
    agent = Agent(Script("Oslo", chunk=1), output=City, output_mode="native", features=[repair])
    plain = Agent(Script(final(name="Rome"), chunk=2), output=City, output_mode="tool")
    async with LocalRuntime() as runtime:
        async with plain.run_stream("go", runtime=runtime) as stream:
            seen = [city async for city in stream.stream_output(debounce_by=None)]
        assert seen[-1] == City(name="Rome")
        assert all("Rome".startswith(city.name) for city in seen)
        async with agent.run_stream("go", runtime=runtime) as stream:
            assert [piece async for piece in stream.text()] == ["O", "s", "l", "o"]
        assert stream.result.output == City(name="Oslo")


# Pieces as engines may cut them


def following(output: Any = City, mode: str = "tool") -> PartialOutput:
    bindings = Agent(Script(), output=output, output_mode=mode).bindings()
    return PartialOutput(bindings.output, bindings.spec.output)


def fed(partial: PartialOutput, *events: StreamEvent) -> Any:
    for event in events:
        partial.feed(event)
    return partial.read()


def test_a_restart_and_a_finish_begin_anew() -> None:
    begin = PartStart(0, ToolCall("a", "final_result"))
    partial = following()
    assert fed(partial, begin, ToolCallDelta(0, '{"name": "Ro')) == City(name="Ro")
    assert fed(partial, Restart()) is UNSET
    assert fed(partial, begin, ToolCallDelta(0, '{"name": "Os')) == City(name="Os")
    assert fed(partial, Finish()) is UNSET


def test_parts_that_come_whole() -> None:
    whole = ToolCall("a", "final_result", '{"name": "Rome"}')
    assert fed(following(), PartEnd(0, whole)) == City(name="Rome")
    assert fed(following(), PartStart(0, whole)) == City(name="Rome")
    assert fed(following(), PartStart(0, whole), PartEnd(0, whole)) == City(name="Rome")
    text = Text('{"name": "Rome"}')
    for events in (
        [PartStart(0, text), PartEnd(0)],
        [PartEnd(0, text)],
        [PartStart(0, text), PartEnd(0, text)],
    ):
        assert fed(following(mode="native"), *events) == City(name="Rome")


def test_what_is_no_json_is_nothing() -> None:
    schema = {"type": "array"}
    for output in (schema, City, [City, River]):
        assert fed(following(output, "native"), TextDelta(0, "{]")) is UNSET
        assert fed(following(output, "native"), TextDelta(0, "{")) is UNSET
    assert fed(following([City, River]), PartStart(0, ToolCall("a", "other", "{}"))) is UNSET


def test_text_is_nothing_where_only_a_tool_counts() -> None:
    assert fed(following(), TextDelta(0, '{"name": "Rome"}')) is UNSET


@given(
    st.sampled_from([City, Trip, Paint, list[City], int | None, list[list[str]]]),
    st.data(),
    st.integers(1, 7),
)
def test_every_beginning_of_an_answer_is_valid_or_nothing(kind: Any, data: st.DataObject, size: int) -> None:
    texts = st.text(st.sampled_from('ab"\\{}[]:,0\u00e9\U0001f600'), max_size=5)
    values: dict[Any, Any] = {
        City: st.fixed_dictionaries({"name": texts, "people": st.integers(-99999, 99999)}),
        Trip: st.fixed_dictionaries(
            {}, optional={"start": texts, "stops": st.lists(texts, max_size=3), "days": st.integers()}
        ),
        Paint: st.fixed_dictionaries(
            {"colour": st.sampled_from(["red", "dark_blue"]), "coats": st.integers(1)}
        ),
    }
    listed: dict[str, Any] = {
        str(list[City]): st.lists(values[City], max_size=3),
        str(int | None): st.none() | st.integers(),
        str(list[list[str]]): st.lists(st.lists(texts, max_size=2), max_size=3),
    }
    value = data.draw(values[kind] if kind in values else listed[str(kind)])
    arguments = value if kind in values else {"result": value}
    answer = Message(said().role, (ToolCall("a", "final_result", as_text(arguments)),))
    partial, adapter = following(kind), TypeAdapter[Any](kind)
    last: Any = UNSET
    for event in events_of(answer, size):
        if isinstance(event, Finish):
            break
        partial.feed(event)
        seen = partial.read()
        if seen is not UNSET:
            last = seen
            assert same(adapter.validate_python(adapter.dump_python(seen)), seen)
    assert same(last, adapter.validate_python(value)) or kind == int | None


async def test_an_engine_that_begins_again_is_followed() -> None:
    class Engine(Script):
        async def stream(self, request: Request) -> AsyncIterator[StreamEvent]:
            for text in ('{"name": "Rom', '{"name": "Oslo"}'):
                yield Restart()
                yield PartStart(0, ToolCall("a", "final_result"))
                yield ToolCallDelta(0, text)
            yield Finish()

    agent = Agent(Engine(), output=City, output_mode="tool")
    async with agent.run_stream("go") as stream:
        seen = [output async for output in stream.stream_output(debounce_by=None)]
    assert seen == [City(name="Rom"), City(name="Oslo")]


# What it costs


def cost(deltas: int) -> float:
    """The processor's time for reading an answer of so many deltas, in the best of some tries."""
    events = list(events_of(Message(said().role, (final(name="x" * (deltas * 5)),)), 5))

    def once() -> float:
        partial, began = following(), process_time()
        for event in events:
            partial.feed(event)
            if partial.is_due:
                partial.read()
        return process_time() - began

    return min(once() for _ in range(3))


def test_reading_it_all_costs_as_much_as_its_length() -> None:
    small, large = cost(1_000), cost(10_000)
    assert large < small * 40, f"{small:.4f} s for 1,000 deltas, {large:.4f} s for 10,000"


def test_it_is_read_so_often_that_each_time_a_part_of_it_is_new() -> None:
    partial, reads = following(str, "text"), 0
    for _ in range(10_000):
        partial.feed(TextDelta(0, "hello"))
        if partial.is_due:
            reads += 1
            partial.read()
    assert reads < 400


async def test_another_task_that_reads_is_told_so() -> None:
    gate = asyncio.Event()

    class Waiting(Script):
        async def stream(self, request: Request) -> AsyncIterator[StreamEvent]:
            await gate.wait()
            async for event in super().stream(request):
                yield event

    @tool
    async def unused() -> None:
        pass

    agent = Agent(Waiting(final(name="Rome")), output=City, output_mode="tool", tools=[unused])
    async with agent.run_stream("go") as stream:
        first = stream.stream_output()
        reading = asyncio.ensure_future(anext(first))  # pyright: ignore[reportArgumentType]
        await asyncio.sleep(0)
        with pytest.raises((UserError, FlyballError)):
            await anext(stream.stream_output())
        gate.set()
        assert isinstance(await reading, City)
