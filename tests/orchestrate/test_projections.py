"""Views of a journal: the same for everybody who holds it, and nothing in them that is not there."""

from __future__ import annotations

import asyncio
import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from flyball import (
    Agent,
    InterceptResult,
    ModelRetry,
    ModelSettings,
    ResponseInterceptor,
    RunContext,
    Safety,
    tool,
)
from flyball.core.correlation import Correlation
from flyball.core.errors import EngineError, FlyballError
from flyball.core.events import (
    CallsJudged,
    Event,
    ModelAnswered,
    Resumed,
    Started,
    ToolReturned,
    ToolStarted,
    Verdict,
)
from flyball.core.messages import Message, ResultKind, Role, Text, ToolCall, ToolResult, assistant, user
from flyball.core.usage import Usage
from flyball.inference.answers import multi_tool_call_answer, tool_call, tool_call_answer
from flyball.inference.scripted import FunctionEngine, ScriptedEngine
from flyball.orchestrate.correlation import span_id_of
from flyball.orchestrate.journal import MemoryJournal
from flyball.orchestrate.lifecycle import transitions
from flyball.orchestrate.projections import (
    InferenceEndEvent,
    InferenceStartEvent,
    LifecycleTransitionEvent,
    TimelineEvent,
    ToolEndEvent,
    ToolStartEvent,
    correlate,
    normal_form,
    timeline,
    tool_calls_made,
    trajectory,
)
from flyball.testing.clock import FakeClock
from flyball.testing.split import ROUGH, SplitDriver
from tests.orchestrate.journals import Played, journals, played


@tool
async def add(a: int, b: int) -> int:
    """Add."""
    return a + b


@tool
async def broken() -> str:
    """Break."""
    raise RuntimeError("out of order")


@tool(safety=Safety.AT_MOST_ONCE)
async def send(text: str) -> str:
    """Send."""
    return f"sent {text}"


def agent(*answers: Any, **options: Any) -> Agent[Any, Any]:
    return Agent(ScriptedEngine(*answers), tools=[add, broken, send], **options)


ADD_AND_BREAK = multi_tool_call_answer(
    tool_call("add", {"a": 1, "b": 2}, "one"),
    tool_call("broken", None, "two"),
    tool_call("nothing", None, "three"),
)


async def run(made: Agent[Any, Any], **options: Any) -> list[Event]:
    journal = MemoryJournal()
    options |= {"journal": journal, "loop_id": "loop"}
    try:
        await made.run("hi", **options)
    except FlyballError:
        pass
    return await journal.read("loop")


# Tool calls


async def test_the_tools_that_were_run() -> None:
    events = await run(agent(ADD_AND_BREAK, tool_call_answer("send", {"text": "x"}, "four"), "done"))
    one, two, four = tool_calls_made(events)
    assert (one.name, one.arguments, one.result, one.error) == ("add", {"a": 1, "b": 2}, 3, None)
    assert (one.call_id, one.turn, one.status) == ("one", 1, ResultKind.RETURN)
    assert one.duration is not None
    assert one.duration >= 0
    assert (two.name, two.result, two.code) == ("broken", None, "TOOL_EXECUTION_FAILED")
    assert two.error is not None
    assert "out of order" in two.error
    assert (four.call_id, four.turn, four.result) == ("four", 2, "sent x"), "an unknown tool was never run"


async def test_a_call_that_never_returned_was_interrupted() -> None:
    events = await run(agent(tool_call_answer("send", {"text": "x"}), "done"))
    begun = events[: [isinstance(event, ToolStarted) for event in events].index(True) + 1]
    (call,) = tool_calls_made(begun)
    assert (call.name, call.status, call.duration) == ("send", ResultKind.INTERRUPTED, None)
    assert tool_calls_made(events)[0].status is ResultKind.RETURN


def test_arguments_are_those_that_the_tool_was_run_with() -> None:
    asked = multi_tool_call_answer(tool_call("add", '{"a": 1', "one"), tool_call("add", {"a": 1}, "two"))
    judged = CallsJudged(1.0, 1, (Verdict(1, allowed=True, args_json='{"a": 9}'),))
    results = [
        ToolReturned(2.0, 1, index, ToolResult(call.id, call.name, "ok"))
        for index, call in enumerate(asked.tool_calls)
    ]
    one, two = tool_calls_made([ModelAnswered(0.0, 1, asked), judged, *results])
    assert one.arguments == '{"a": 1', "what is no JSON is kept as it was written"
    assert two.arguments == {"a": 9}


@given(journals())
def test_every_call_that_ran_is_there_once_and_in_order(events: list[Event]) -> None:
    ran = {(e.turn, e.index) for e in events if isinstance(e, ToolStarted | ToolReturned)}
    made = tool_calls_made(events)
    assert len(made) == len(ran)
    assert [call.turn for call in made] == sorted(turn for turn, _ in ran)
    returned = [e.result for e in events if isinstance(e, ToolReturned)]
    assert {call.call_id for call in made} >= {result.call_id for result in returned}


# Correlation


ASKED_BY_THE_MODEL = {"infer", "review", "repair", "compact", "judge", "execute", "settle"}


@given(played())
def test_every_event_has_its_span(game: Played) -> None:
    told = list(correlate(game.events))
    assert [event for _, event in told] == game.events
    assert told == list(correlate(game.events)), "the same each time"
    loop = told[0][0]
    for number, (ids, event) in enumerate(told):
        assert (ids.request_id, ids.trace_id, ids.loop_id) == (loop.request_id, loop.trace_id, "loop")
        effect = game.effects.get(number)
        if effect is None:
            continue
        kind = effect.split("/")[3]
        if kind == "end":
            assert ids == loop
            continue
        assert ids.span_id == span_id_of(effect)
        assert ids.parent_span_id == loop.span_id
        assert bool(ids.model_request_id) == (kind in ASKED_BY_THE_MODEL)
        assert bool(ids.tool_call_id) == (kind == "execute")
        if isinstance(event, ToolReturned):
            assert ids.tool_call_id == ids.caused_by == event.result.call_id
    assert len(loop.span_id) == 16
    assert len(loop.trace_id) == 32


async def test_ids_from_outside_go_on() -> None:
    given_ids = Correlation(
        request_id="r", session_id="s", trace_id="t", span_id="caller", task_id="task", step_name="first"
    )
    events = await run(agent(ADD_AND_BREAK, "done"), correlation=given_ids)
    told = {type(event).__name__: ids for ids, event in correlate(events)}
    for ids in told.values():
        assert (ids.request_id, ids.session_id, ids.trace_id) == ("r", "s", "t")
        assert (ids.task_id, ids.step_name, ids.run_id) == ("task", "first", "loop")
    assert told["Started"].parent_span_id == "caller"
    assert told["ToolReturned"].caused_by in {"one", "two"}
    assert told["ToolReturned"].model_request_id == "loop/1/1/infer/0"
    assert told["ModelAnswered"].model_request_id == "loop/1/2/infer/0", "the request of the later turn"


async def test_without_ids_from_outside_they_are_made_of_the_loops() -> None:
    one, again = await run(agent("hello")), await run(agent("hello"))
    assert [ids for ids, _ in correlate(one)] == [ids for ids, _ in correlate(again)]
    ids = next(correlate(one))[0]
    assert ids.request_id == "loop"
    assert int(ids.trace_id, 16)
    assert int(ids.span_id, 16)


# Timeline


def kinds(told: list[TimelineEvent]) -> list[str]:
    return [type(event).__name__.removesuffix("Event") for event in told]


async def test_the_timeline_of_a_run() -> None:
    asked = replace(ADD_AND_BREAK, usage=Usage(input_tokens=7, output_tokens=3))
    made = agent(asked, "done", instructions="Be brief.", settings=ModelSettings(temperature=0.5))
    events = await run(made, clock=FakeClock())
    told = timeline(events)
    assert kinds(told) == [
        "LifecycleTransition",
        "LifecycleTransition",
        "InferenceStart",
        "InferenceEnd",
        "ToolStart",
        "ToolStart",
        "ToolEnd",
        "ToolEnd",
        "InferenceStart",
        "InferenceEnd",
        "LifecycleTransition",
    ]
    start, end = told[2], told[3]
    assert isinstance(start, InferenceStartEvent)
    assert (start.message_count, start.tool_defs_count, start.temperature) == (2, 3, 0.5)
    assert (start.schema_present, start.grammar_present) == (False, False)
    assert isinstance(end, InferenceEndEvent)
    assert (end.tokens_in, end.tokens_out, end.finish_reason, end.tool_call_count) == (7, 3, "tool", 3)
    assert start.correlation == end.correlation
    tool_start, tool_end = told[4], told[6]
    assert isinstance(tool_start, ToolStartEvent)
    assert (tool_start.tool_name, tool_start.tool_call_id) == ("add", "one")
    assert tool_start.correlation.model_request_id == end.correlation.model_request_id
    assert isinstance(tool_end, ToolEndEvent)
    assert (tool_end.success, tool_end.error_code) == (True, "")
    failed = told[7]
    assert isinstance(failed, ToolEndEvent)
    assert (failed.success, failed.error_code) == (False, "TOOL_EXECUTION_FAILED")
    moves = [event for event in told if isinstance(event, LifecycleTransitionEvent)]
    assert [(m.from_state, m.to_state, m.attempt, m.reason) for m in moves] == [
        (m.from_, m.to, m.attempt, m.reason) for m in transitions(events)
    ]


async def test_a_schema_and_a_failure_show_in_the_timeline() -> None:
    made = agent(EngineError("no power"), output=int)
    told = timeline(await run(made))
    start = next(event for event in told if isinstance(event, InferenceStartEvent))
    end = next(event for event in told if isinstance(event, InferenceEndEvent))
    assert start.schema_present
    assert (end.finish_reason, end.tokens_out, end.tool_call_count) == ("error", 0, 0)


@pytest.mark.parametrize(
    ("other", "same"), [('{"b":2, "a":1}', True), ('{"a":1,"b":3}', False), ("{", False)]
)
async def test_equal_arguments_have_equal_hashes(other: str, same: bool) -> None:
    asked = multi_tool_call_answer(tool_call("add", '{"a":1,"b":2}', "one"), tool_call("add", other, "two"))
    told = timeline(await run(agent(asked, "done")))
    one, two = [event.args_hash for event in told if isinstance(event, ToolStartEvent)]
    assert (one == two) is same


async def test_how_long_things_took() -> None:
    clock = FakeClock(100.0)

    async def think() -> None:
        await clock.advance(2.5)

    made = Agent(ScriptedEngine("hello", pause=think))
    start, end = [
        e for e in timeline(await run(made, clock=clock)) if not isinstance(e, LifecycleTransitionEvent)
    ]
    assert isinstance(end, InferenceEndEvent)
    assert (start.at, end.at, end.duration_ms) == (100.0, 102.5, 2500)


async def test_a_clock_that_goes_back_does_not_turn_the_timeline_round() -> None:
    events = await run(agent(ADD_AND_BREAK, "done"))
    back = [replace(event, at=100.0 - number) for number, event in enumerate(events)]
    assert kinds(timeline(back)) == kinds(timeline([replace(event, at=100.0) for event in events]))


@given(journals())
def test_a_timeline_goes_forward_and_what_ends_began(events: list[Event]) -> None:
    told = timeline(events)
    assert [event.at for event in told] == sorted(event.at for event in told)
    begun: set[str] = set()
    for event in told:
        if isinstance(event, InferenceStartEvent | ToolStartEvent):
            begun.add(event.correlation.span_id)
        elif isinstance(event, InferenceEndEvent | ToolEndEvent):
            assert event.correlation.span_id in begun
    ends = [event for event in told if isinstance(event, ToolEndEvent)]
    returned = [event.result for event in events if isinstance(event, ToolReturned)]
    assert len(ends) == len([result for result in returned if result.status is not ResultKind.DEFERRED])


# Normal form


@given(journals(), st.integers(0, 1000))
def test_a_normal_form_does_not_depend_on_times_ids_and_order(events: list[Event], seed: int) -> None:
    normal = normal_form(events)
    assert normal_form(normal) == normal
    assert not [event for event in normal if isinstance(event, ToolStarted | Resumed)]
    assert normal_form(disturbed(events, random.Random(seed))) == normal


def disturbed(events: list[Event], chance: random.Random) -> list[Event]:
    """The same run, at another time, under another id, its tools returning in another order."""
    others: list[Event] = []
    for event in events:
        moved = replace(event, at=event.at + chance.random())
        if isinstance(moved, Started):
            moved = replace(moved, loop_id="other", correlation=Correlation(trace_id="other"))
        elif isinstance(moved, ModelAnswered):
            message = replace(moved.message, timestamp=chance.random())
            moved = replace(moved, message=message, duration=chance.random(), request_id=str(chance.random()))
        elif isinstance(moved, ToolReturned):
            moved = replace(moved, duration=chance.random(), result=replace(moved.result, loop_id="other"))
        others.append(moved)
    for number in range(1, len(others)):
        one, two = others[number - 1], others[number]
        together = isinstance(one, ToolReturned) and isinstance(two, ToolReturned) and one.turn == two.turn
        if together and chance.random() < 0.5:
            others[number - 1], others[number] = two, one
    return others


def test_a_normal_form_keeps_what_was_said() -> None:
    def events(text: str) -> list[Event]:
        return [ModelAnswered(1.0, 1, Message(Role.ASSISTANT, (Text(text),)))]

    assert normal_form(events("yes")) != normal_form(events("no"))


def scenario() -> Agent[Any, Any]:
    """Concurrent tools, one that may run only once, a failure, a retry."""
    made = Agent(
        ScriptedEngine(
            multi_tool_call_answer(*[tool_call("add", {"a": n, "b": n}, f"c{n}") for n in range(4)]),
            tool_call_answer("send", {"text": "x"}, "once"),
            tool_call_answer("broken", None, "broken"),
            "yes",
            "yes please",
        ),
        tools=[add, broken, send],
    )

    @made.output_validator
    def polite(_: RunContext, output: str) -> str:
        if "please" not in output:
            raise ModelRetry("Say please.")
        return output

    return made


async def test_a_run_is_the_same_streamed_or_not() -> None:
    plain = normal_form(await run(scenario()))
    journal = MemoryJournal()
    async with scenario().run_stream("hi", journal=journal, loop_id="loop") as stream:
        assert await stream.get_output() == "yes please"
    assert normal_form(await journal.read("loop")) == plain


async def test_a_run_is_the_same_in_a_calm_and_split_world() -> None:
    driver = SplitDriver()
    finished = await scenario().run("hi", runtime=driver)
    assert normal_form(await finished.events()) == normal_form(await run(scenario()))


@pytest.mark.parametrize("seed", range(5))
async def test_a_run_is_the_same_in_a_rough_world(seed: int) -> None:
    finished = await idempotent().run("hi", runtime=SplitDriver(seed, ROUGH))
    assert normal_form(await finished.events()) == normal_form(await run(idempotent()))


def idempotent() -> Agent[Any, Any]:
    """One whose answers depend on the request alone, so that a repeated model call says the same."""

    async def answer(request: Any) -> Any:
        turns = len([message for message in request.messages if message.role is Role.ASSISTANT])
        if turns == 0:
            return multi_tool_call_answer(*[tool_call("add", {"a": n, "b": n}, f"c{n}") for n in range(4)])
        return "done" if turns > 1 else tool_call_answer("broken", None, "broken")

    return Agent(FunctionEngine(answer), tools=[add, broken])


async def test_concurrent_tools_stand_in_the_order_of_their_calls() -> None:
    released = asyncio.Event()

    @tool
    async def slow() -> str:
        """Wait."""
        await released.wait()
        for _ in range(5):
            await asyncio.sleep(0)
        return "slow"

    @tool
    async def fast() -> str:
        """Do not wait."""
        released.set()
        return "fast"

    asked = multi_tool_call_answer(tool_call("slow", None, "one"), tool_call("fast", None, "two"))
    events = await run(Agent(ScriptedEngine(asked, "done"), tools=[slow, fast]))
    assert [e.result.name for e in events if isinstance(e, ToolReturned)] == ["fast", "slow"]
    assert [e.result.name for e in normal_form(events) if isinstance(e, ToolReturned)] == ["slow", "fast"]
    assert [call.name for call in tool_calls_made(events)] == ["slow", "fast"]


async def test_the_prompt_and_the_history_lose_their_times() -> None:
    said = replace(user("before"), timestamp=1.0)
    answer = Message(Role.ASSISTANT, (Text("yes"),), timestamp=2.0)
    events = await run(agent("hello"), messages=(said, answer))
    started = normal_form(events)[0]
    assert isinstance(started, Started)
    assert [message.timestamp for message in started.history] == [None, None]


async def test_calls_that_an_interceptor_gave_are_the_calls() -> None:
    @ResponseInterceptor
    def asks_instead(_: RunContext[Any], message: Message) -> InterceptResult | None:
        asked = assistant("", ToolCall("in-its-place", "add", '{"a":1,"b":2}'))
        return InterceptResult.modify([asked]) if message.text == "no" else None

    agent = Agent(ScriptedEngine("no", "three"), tools=[add], features=[asks_instead])
    events = await (await agent.run("1 + 2?")).events()
    assert [made.arguments for made in tool_calls_made(events)] == [{"a": 1, "b": 2}]
    called = [ids.tool_call_id for ids, event in correlate(events) if isinstance(event, ToolReturned)]
    assert called == ["in-its-place"]
    assert [one.tool_call_id for one in timeline(events) if isinstance(one, ToolEndEvent)] == called
    tools = [step.tool_name for step in trajectory(events).steps if step.step_type == "tool_call"]
    assert tools == ["add"]
