"""Flows as users write them: what they come to, how they fail, and how they are gone on with."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from copy import copy
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

import pytest
from pydantic import BaseModel

from flyball import (
    Agent,
    AgentStep,
    ConditionalStep,
    CostTracker,
    DeferredToolResult,
    Handoff,
    Limits,
    LocalRuntime,
    MemoryJournal,
    ModelPricing,
    Outcome,
    ParallelSteps,
    Pipeline,
    RedundantSteps,
    RunContext,
    StepContext,
    TextOutput,
    TransformStep,
    Usage,
    assistant,
    chain,
    send_results,
    send_signal,
    tool,
)
from flyball.core.correlation import Correlation
from flyball.core.errors import (
    CancelledSignal,
    CancelledTimeout,
    Deferred,
    EngineError,
    JournalConflict,
    JournalFailure,
    LoopMismatch,
    LoopTakenOver,
    SchemaMalformed,
    SignalRefused,
    StepFailed,
    StepMismatch,
    UserError,
)
from flyball.core.events import ChildStarted, FlowStarted, Stage, Started, StepEnded
from flyball.core.signals import Signal, SignalType
from flyball.inference.answers import tool_call as call
from flyball.inference.retry_policy import RetryPolicy
from flyball.inference.scripted import FunctionEngine, ScriptedEngine
from flyball.orchestrate.flow.functions import function_of
from flyball.orchestrate.flow.parts import StepOutcome
from flyball.orchestrate.flow.steps import Step
from flyball.orchestrate.journal import Journal
from flyball.orchestrate.machines import AnyState, fold, stage
from flyball.orchestrate.projections import normal_form
from flyball.orchestrate.recorded import load, load_any
from flyball.testing import FakeClock
from flyball.tool.errors import CallDeferred
from tests.orchestrate.dying import Dying
from tests.orchestrate.models import Hanging, NeverAsked, Place, Script
from tests.orchestrate.where import Where
from tests.patience import PATIENCE


@dataclass
class Point:
    x: int
    y: int


class City(BaseModel):
    name: str


def point(text: str) -> Point:
    return Point(len(text), 1)


def moved(at: Point) -> Point:
    return Point(at.x + 1, at.y)


async def swapped(at: Point) -> Point:
    await asyncio.sleep(0)
    return Point(at.y, at.x)


def told(both: list[Point]) -> str:
    return " ".join([f"{one.x},{one.y}" for one in both])


def long(text: str) -> bool:
    return len(text) > 3


def whole() -> Step[str, str]:
    """A flow with steps of all kinds."""
    writer, editor = Agent(Script("a draft"), name="writer"), Agent(Script("it"), name="editor")
    return (
        AgentStep(writer)
        .then(point)
        .then(ParallelSteps(TransformStep(moved), TransformStep(swapped)))
        .then(told)
        .then(ConditionalStep(long, AgentStep(editor, lambda text: f"Shorten {text}."), TransformStep(str)))
    )


async def test_a_flow_comes_to_its_output_wherever_its_agents_are_run(where: Where) -> None:
    result = await whole().run("go", **where.options({"loop_id": f"whole-{where.kind}"}))
    assert result.output == "it"
    assert {step.path: step.output for step in result.steps} == {
        "0": "a draft",
        "1": Point(7, 1),
        "2.0": Point(8, 1),
        "2.1": Point(1, 7),
        "3": "8,1 1,7",
        "4.0": True,
        "4.1": "it",
    }
    assert result.usage.requests == 2
    assert result.outcome is Outcome.SUCCESS
    events = await result.events()
    assert fold(events) == result.state
    assert isinstance(events[0], FlowStarted)
    plain = await whole().run("go")
    assert normal_form(events) == normal_form(await plain.events())


async def test_a_flow_that_is_over_gives_its_result_again(journal: Journal) -> None:
    first = await whole().run("go", journal=journal, loop_id="flow-again")
    second = await whole().run("go", journal=journal, loop_id="flow-again")
    assert second.output == first.output
    assert second.steps[0].output == first.steps[0].output
    assert await second.events() == await first.events()


async def test_a_flow_that_breaks_off_anywhere_goes_on_where_it_stood() -> None:
    called: list[str] = []

    def noting(name: str) -> TransformStep[Any, Any]:
        def note(value: Any) -> Any:
            called.append(name)
            return value

        return TransformStep(note, name=name)

    def flow() -> Step[Any, Any]:
        first, second = Agent(Script("one"), name="first"), Agent(Script("two"), name="second")
        return Pipeline(
            noting("a"),
            first,
            ParallelSteps(noting("b"), second),
            noting("c"),
            ConditionalStep(bool, noting("d")),
        )

    expected = normal_form(await (await flow().run("go")).events())
    for left in range(40):
        called.clear()
        journal = Dying(left)
        try:
            await flow().run("go", journal=journal, loop_id="f")
        except JournalFailure:
            recorded = [event.path for event in await journal.read("f") if isinstance(event, StepEnded)]
            before = len(called)
            journal.left = -1
            result = await flow().run("go", journal=journal, loop_id="f")
            assert result.output == ["one", "two"]
            assert normal_form(await result.events()) == expected
            names = {step.name for step in result.steps if step.path in recorded}
            assert not names & set(called[before:]), "what is recorded is not called again"
        else:
            assert left > 10
            return
    raise AssertionError("it never came to its end")


# Failures


def failing(value: Any) -> Any:
    raise ValueError(f"not {value}")


async def test_a_failure_names_its_step_and_has_what_was_reached(where: Where) -> None:
    flow = Pipeline(AgentStep(Agent(Script("a"), name="writer")), TransformStep(failing, name="send"))
    with pytest.raises(StepFailed, match=r"step 'send' \(1\): ValueError: not a") as caught:
        await flow.run("go", **where.options({"loop_id": f"fails-{where.kind}"}))
    error = caught.value
    assert error.details == {"step": "send", "path": "1"}
    assert isinstance(error.__cause__, ValueError)
    assert error.partial.output is None
    assert [step.output for step in error.partial.steps] == ["a", None]
    assert isinstance(error.partial.steps[1].error, StepFailed)
    assert error.partial.usage.requests == 1


async def test_an_agents_failure_is_the_flows_with_its_type() -> None:
    async def broken(request: Any) -> Any:
        raise EngineError("no power")

    from flyball.inference.scripted import FunctionEngine

    flow = Pipeline(AgentStep(Agent(FunctionEngine(broken), name="writer")), TransformStep(str))
    with pytest.raises(EngineError, match=r"step 'writer' \(0\): no power") as caught:
        await flow.run("go", loop_id="f")
    assert caught.value.details["loop_id"] == "f-s0"
    run = caught.value.partial.steps[0].run
    assert run.outcome is Outcome.FAILED


async def test_retries_are_loops_of_their_own_and_a_retry_of_the_flow_runs_what_had_not_ended() -> None:
    journal, seen = MemoryJournal(), list[str]()

    def sometimes(value: str) -> str:
        seen.append(value)
        if len(seen) < 4:
            raise ValueError("not yet")
        return value

    writer = Agent(Script("a"), name="writer")
    flow = Pipeline(AgentStep(writer), TransformStep(sometimes, retries=1))
    with pytest.raises(StepFailed):
        await flow.run("go", journal=journal, loop_id="f")
    assert len(seen) == 2
    with pytest.raises(StepFailed):
        await flow.run("go", journal=journal, loop_id="f")
    assert len(seen) == 2, "a flow that has failed is not tried again by itself"
    assert await send_signal(journal, "f", "retry") is Stage.EXECUTING
    result = await flow.run("go", journal=journal, loop_id="f")
    assert result.output == "a"
    assert (len(seen), result.usage.requests) == (4, 1)
    with pytest.raises(SignalRefused, match="nothing fits any more"):
        await send_signal(journal, "f", "retry")


@pytest.mark.parametrize(
    ("policy", "tries"),
    [
        (RetryPolicy(2), 3),
        (RetryPolicy(2, retry_if=lambda error: isinstance(error, EngineError)), 3),
        (RetryPolicy(2, retry_if=lambda error: "power" not in str(error)), 1),
    ],
)
async def test_a_step_is_tried_again_by_a_policy(policy: RetryPolicy, tries: int) -> None:
    asked: list[str] = []

    async def fails(request: Any) -> Any:
        asked.append(request.run_id)
        raise EngineError("no power")

    def raises(value: str) -> str:
        asked.append(value)
        raise EngineError("no power")

    agent = Agent(FunctionEngine(fails))
    for step in (AgentStep(agent, retries=policy), TransformStep(raises, retries=policy)):
        asked.clear()
        with pytest.raises(EngineError):
            await step.run("go")
        assert len(asked) == tries


async def test_the_others_of_a_parallel_end_with_the_one_that_fails() -> None:
    place, journal = Place(), MemoryJournal()

    async def once_begun(_: Any) -> None:
        await place.entered.wait()
        raise ValueError("enough")

    flow = ParallelSteps(AgentStep(Agent(Hanging(place=place), name="slow")), TransformStep(once_begun))
    with pytest.raises(StepFailed):
        await flow.run("go", journal=journal, loop_id="f")
    assert place.cancelled == 1
    _, child = await load(journal, "f-s0_0")
    assert child.outcome is Outcome.CANCELLED


async def test_redundant_steps_go_on_without_those_that_fail_and_end_once_there_are_enough() -> None:
    place, journal = Place(), MemoryJournal()

    async def once_begun(_: Any) -> int:
        await place.entered.wait()
        return 7

    def enough(outcomes: list[StepOutcome[Any] | None]) -> bool:
        return any(one is not None and one.output == 7 for one in outcomes)

    slow = Agent(Hanging(place=place), name="slow")
    flow = RedundantSteps(TransformStep(failing), AgentStep(slow), TransformStep(once_begun), until=enough)
    result = await flow.run("go", journal=journal, loop_id="f")
    failed, open_one, good = result.output
    assert failed is not None
    assert isinstance(failed.error, StepFailed)
    assert open_one is None
    assert good == StepOutcome(7)
    _, child = await load(journal, "f-s0_1")
    assert child.outcome is Outcome.CANCELLED, "nobody waits for it any more"


# Signals and time


async def test_a_cancel_ends_a_flow_and_what_runs_under_it(journal: Journal) -> None:
    place = Place()
    flow = Pipeline(AgentStep(Agent(Hanging(place=place), name="slow")), TransformStep(str))
    running = asyncio.ensure_future(flow.run("go", journal=journal, loop_id="flow-cancelled"))
    await place.entered.wait()
    assert await send_signal(journal, "flow-cancelled", Signal(SignalType.CANCEL, "c", "ann", "enough"))
    with pytest.raises(CancelledSignal, match="cancelled by ann: enough"):
        await running
    for loop_id in ("flow-cancelled", "flow-cancelled-s0"):
        _, state = await load_any(journal, loop_id)
        assert (state.at, state.outcome) == ("done", Outcome.CANCELLED)
    with pytest.raises(SignalRefused, match="takes no pause"):
        await send_signal(journal, "flow-cancelled", "pause")


async def test_a_pause_reaches_what_runs_and_its_end_too(journal: Journal) -> None:
    place = Place()

    @tool
    async def look() -> str:
        """Look."""
        await place.hang()
        return "seen"

    agent = Agent(Script(call("look"), "done"), tools=[look], name="looker")
    flow = Pipeline(AgentStep(agent), TransformStep(str.upper))
    running = asyncio.ensure_future(flow.run("go", journal=journal, loop_id="flow-paused"))
    await place.entered.wait()
    assert await send_signal(journal, "flow-paused", "pause") is Stage.PAUSED
    await until(journal, "flow-paused-s0", signalled)
    place.let_go.set()
    await until(journal, "flow-paused-s0", stands_still)
    assert stage(fold(await journal.read("flow-paused-s0"))) is Stage.PAUSED
    assert await send_signal(journal, "flow-paused", "resume") is Stage.EXECUTING
    assert (await running).output == "DONE"


async def test_a_flow_that_was_paused_when_its_process_ended_waits_for_its_end() -> None:
    journal, place = MemoryJournal(), Place()
    flow = AgentStep(Agent(Hanging(place=place), name="slow"))
    running = asyncio.ensure_future(flow.run("go", journal=journal, loop_id="f"))
    await place.entered.wait()
    await send_signal(journal, "f", "pause")
    running.cancel()
    await asyncio.wait([running])
    place.let_go.set()
    again = asyncio.ensure_future(flow.run("go", journal=journal, loop_id="f"))
    await journal.wait("f", 3)
    assert not again.done()
    await send_signal(journal, "f", "resume")
    assert (await again).output == "done"


def signalled(state: AnyState) -> bool:
    return bool(state.signals)


def stands_still(state: AnyState) -> bool:
    return state.paused


async def until(journal: Journal, loop_id: str, reached: Callable[[AnyState], bool]) -> None:
    async with asyncio.timeout(PATIENCE):
        while True:
            events = await journal.read(loop_id)
            if reached(fold(events)):
                return
            await journal.wait(loop_id, len(events))


async def test_the_deadline_ends_a_flow_and_what_runs_under_it() -> None:
    clock, journal, place = FakeClock(100.0), MemoryJournal(), Place()
    flow = AgentStep(Agent(Hanging(place=place), name="slow"))
    running = asyncio.ensure_future(flow.run("go", journal=journal, loop_id="f", timeout=5, clock=clock))
    await place.entered.wait()
    await clock.advance(5)
    with pytest.raises(CancelledTimeout, match="the flow's time-out of 5 s passed"):
        await running
    _, child = await load(journal, "f-s0")
    assert child.outcome is Outcome.CANCELLED
    late = FakeClock(900.0)
    await journal.append("g", [FlowStarted(1.0, 1, "g", (await journal.read("f"))[0].flow, "go", 5)], 0)  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType, reportUnknownArgumentType]
    with pytest.raises(CancelledTimeout):
        await AgentStep(Agent(NeverAsked(), name="slow")).run(
            "go", journal=journal, loop_id="g", timeout=5, clock=late
        )


async def test_steps_have_time_outs_of_their_own() -> None:
    async def never(_: Any) -> None:
        await asyncio.Event().wait()

    with pytest.raises(CancelledTimeout, match=r"step 'never' \(0\): it took longer"):
        await TransformStep(never, timeout=0.001).run(1)

    async def its_own(_: Any) -> None:
        raise TimeoutError("of something else")

    with pytest.raises(StepFailed, match="of something else"):
        await TransformStep(its_own, timeout=10).run(1)
    with pytest.raises(CancelledTimeout, match=r"step 'slow' \(0\): the run's time-out"):
        await AgentStep(Agent(Hanging(), name="slow"), timeout=0.001).run("go")


async def test_a_step_that_took_too_long_is_tried_again() -> None:
    entered: list[int] = []

    async def slow_at_first(value: int) -> int:
        entered.append(value)
        if len(entered) == 1:
            await asyncio.Event().wait()
        return value + 1

    assert (await TransformStep(slow_at_first, timeout=0.001, retries=1).run(1)).output == 2
    slow = AgentStep(Agent(Hanging(), name="slow"), timeout=0.001, retries=1)
    journal = MemoryJournal()
    with pytest.raises(CancelledTimeout):
        await slow.run("go", journal=journal, loop_id="f")
    assert sorted(await journal.loops()) == ["f", "f-s0", "f-s0-t2"]


async def test_a_deadline_is_known_to_all_below_through_flows_and_agents() -> None:
    told: dict[str, float | None] = {}

    @tool
    async def look(ctx: RunContext[Any], where: str) -> str:
        """Look at the time."""
        told[where] = ctx.deadline
        return "seen"

    def note(ctx: RunContext[Any], value: str) -> str:
        told["step"] = ctx.deadline
        return value

    low = Agent(Script(call("look", {"where": "low"}), "low done"), tools=[look], name="low")

    @tool
    async def plan(ctx: RunContext[Any]) -> str:
        """Run a flow."""
        return (await AgentStep(low).then(TransformStep(note)).run("go", parent=ctx)).output

    clock, journal = FakeClock(100.0), MemoryJournal()
    middle = Agent(Script(call("plan"), "middle done"), tools=[plan], name="middle")
    await AgentStep(middle).run("go", journal=journal, loop_id="f", timeout=5, clock=clock)
    assert told == {"low": 105.0, "step": 105.0}
    await AgentStep(middle, timeout=3).run("go", journal=journal, loop_id="g", timeout=5, clock=clock)
    assert told == {"low": 103.0, "step": 103.0}


async def test_a_loop_under_a_flow_keeps_its_time_when_nobody_drives_the_flow() -> None:
    clock, journal, place = FakeClock(100.0), MemoryJournal(), Place()
    agent = Agent(Hanging(place=place), name="slow")
    running = asyncio.ensure_future(
        AgentStep(agent).run("go", journal=journal, loop_id="f", timeout=5, clock=clock)
    )
    await place.entered.wait()
    running.cancel()
    await asyncio.wait([running])
    with pytest.raises(CancelledTimeout, match="the time of the run that it was begun from passed"):
        async with asyncio.timeout(10):
            await agent.resume("f-s0", journal)  # by the real clock it is late


async def test_another_driver_takes_a_flow_over() -> None:
    journal, place = MemoryJournal(), Place()
    flow = AgentStep(Agent(Hanging(place=place), name="slow"))
    running = asyncio.ensure_future(flow.run("go", journal=journal, loop_id="f"))
    await place.entered.wait()
    again = asyncio.ensure_future(flow.run("go", journal=journal, loop_id="f"))
    with pytest.raises((LoopTakenOver, JournalConflict)):
        await running
    place.let_go.set()
    assert (await again).output == "done"


# What waits for somebody


async def test_a_flow_waits_for_results_from_outside_and_goes_on() -> None:
    @tool
    async def build() -> str:
        """Build."""
        raise CallDeferred("later")

    journal = MemoryJournal()
    builder = Agent(Script(call("build"), "green"), tools=[build], name="builder")
    done: list[str] = []
    flow = ParallelSteps(AgentStep(builder), TransformStep(done.append))
    with pytest.raises(Deferred) as caught:
        await flow.run("go", journal=journal, loop_id="f")
    assert len(done) == 1, "what does not wait is run"
    request = caught.value.requests[0]
    assert caught.value.loop_id == "f-s0_0"
    await send_results(journal, "f-s0_0", [DeferredToolResult("build", request.tool_call_id, "ok")])
    result = await flow.run("go", journal=journal, loop_id="f")
    assert result.output == ["green", None]
    assert len(done) == 1


async def test_approval_is_asked_of_who_can_be_reached() -> None:
    @tool(approval=True)
    async def burn() -> str:
        """Burn."""
        return "ash"

    def nero() -> Agent[None, str]:
        return Agent(Script(call("burn"), "done"), tools=[burn], name="nero")

    with pytest.raises(UserError, match="approval"):
        await AgentStep(nero()).run("go")
    journal = MemoryJournal()
    running = asyncio.ensure_future(AgentStep(nero()).run("go", journal=journal, loop_id="f"))
    await journal.wait("f-s0", 1)
    with pytest.raises(SignalRefused):
        await send_signal(journal, "f", Signal(SignalType.APPROVE, call_id="another"))
    await send_signal(journal, "f", "approve")
    assert (await running).output == "done"


# Under others


async def test_a_flow_under_a_run_is_its_child_and_agents_under_the_flow_its_grandchildren(
    where: Where,
) -> None:
    inner = AgentStep(Agent(Script("deep"), name="inner"))

    @tool
    async def work(ctx: RunContext[None]) -> str:
        """Have a flow do it."""
        return (await inner.run("go", parent=ctx)).output

    boss = Agent(Script(call("work"), "done"), tools=[work], name="boss")
    options: dict[str, Any] = {"loop_id": f"boss-{where.kind}", "correlation": Correlation(trace_id="t")}
    result = await boss.run("go", **where.options({**options, "metadata": {"team": "red"}}))
    journal = result.journal
    (child,) = [event for event in await result.events() if isinstance(event, ChildStarted)]
    first = (await journal.read(child.loop_id))[0]
    assert isinstance(first, FlowStarted)
    assert (first.parent_loop_id, first.depth) == (options["loop_id"], 1)
    assert (first.metadata, first.correlation.trace_id) == ({"team": "red"}, "t")
    last = (await journal.read(f"{child.loop_id}-s0"))[0]
    assert isinstance(last, Started)
    assert (last.parent_loop_id, last.depth) == (child.loop_id, 2)
    assert (last.metadata, last.correlation.trace_id) == ({"team": "red"}, "t")
    assert result.usage.requests == 3, "what the flow's agents used counts for who had it begun"


async def test_a_cancel_from_above_goes_through_a_flow() -> None:
    place, journal = Place(), MemoryJournal()
    inner = AgentStep(Agent(Hanging(place=place), name="inner"))

    @tool
    async def work(ctx: RunContext[None]) -> str:
        """Have a flow do it."""
        return (await inner.run("go", parent=ctx)).output

    boss = Agent(Script(call("work"), "done"), tools=[work], name="boss")
    running = asyncio.ensure_future(boss.run("go", journal=journal, loop_id="boss"))
    await place.entered.wait()
    await send_signal(journal, "boss", "cancel")
    with pytest.raises(CancelledSignal):
        await running
    loops = await journal.loops()
    assert len(loops) == 3
    for loop_id in loops:
        _, state = await load_any(journal, loop_id)
        assert (state.at, state.outcome) == ("done", Outcome.CANCELLED), loop_id


async def test_flows_count_as_depth() -> None:
    inner = AgentStep(Agent(NeverAsked(), name="inner"))

    @tool
    async def work(ctx: RunContext[None]) -> str:
        """Have a flow do it."""
        return (await inner.run("go", parent=ctx)).output

    def boss(depth: int) -> Agent[None, str]:
        return Agent(Script(call("work"), "done"), tools=[work], limits=Limits(max_depth=depth))

    for depth, code in ((0, "a loop at depth 1"), (1, "a loop at depth 2")):
        result = await boss(depth).run("go")
        assert code in result.messages[-2].tool_results[0].text


async def test_a_flow_in_a_step_is_under_the_flow() -> None:
    inner = AgentStep(Agent(Script("deep"), name="inner"))

    async def work(ctx: StepContext[Any], value: str) -> str:
        return (await inner.run(value, parent=ctx)).output

    result = await TransformStep(work).run("go", loop_id="f")
    assert result.output == "deep"
    assert result.usage.requests == 1
    loops = await result.journal.loops()
    assert len(loops) == 3
    depths = [(await load_any(result.journal, loop_id))[1].depth for loop_id in loops]
    assert sorted(depths) == [0, 1, 2]


async def test_a_local_runtime_carries_the_agents_on() -> None:
    place = Place()
    async with LocalRuntime() as runtime:
        result = await whole().run("go", runtime=runtime, loop_id="f")
        assert result.output == "it"
        slow = AgentStep(Agent(Hanging(place=place), name="slow"))
        running = asyncio.ensure_future(slow.run("go", runtime=runtime, loop_id="g"))
        await place.entered.wait()
        assert await runtime.signal("g", "cancel") is Stage.CANCELLED
        with pytest.raises(CancelledSignal):
            await running
        _, child = await load(runtime.journal, "g-s0")
        assert child.outcome is Outcome.CANCELLED


# What is passed on


async def test_what_a_step_is_given_is_of_its_type() -> None:
    def named(city: City) -> str:
        return city.name

    def cities(text: str) -> list[City]:
        return [City(name=one) for one in text.split()]

    def count(found: list[City]) -> int:
        return len([one.name for one in found])

    assert (await TransformStep(cities).then(count).run("a b")).output == 2
    plain: Any = TransformStep(lambda text: {"name": text})
    assert (await plain.then(named).run("Rome")).output == "Rome"
    assert (await TransformStep(named).run(City(name="Rome"))).output == "Rome"
    saying: Any = attrgetter("name")
    assert (await TransformStep(saying).run(City(name="Rome"))).output == "Rome"
    agent = Agent(Script(call("final_result", {"name": "Oslo"})), output=City, output_mode="tool")
    assert (await AgentStep(agent).then(named).run("go")).output == "Oslo"
    counting: Agent[None, int] = Agent(Script("abc"), output=TextOutput(len))
    assert (await AgentStep(counting).then(lambda n: n + 1).run("go")).output == 4
    schema = Agent(Script(call("final_result", {"n": 1})), output={"type": "object"}, output_mode="tool")
    assert (await AgentStep(schema).run("go")).output == {"n": 1}


async def test_a_value_of_the_wrong_type_is_a_mismatch() -> None:
    def named(city: City) -> str:
        return city.name

    def wrong(_: str) -> int:
        return "x"  # pyright: ignore[reportReturnType]

    with pytest.raises(StepMismatch, match="the flow's input is not of the type City"):
        await TransformStep(named).run(3)  # pyright: ignore[reportArgumentType]
    with pytest.raises(
        StepMismatch, match=r"step 'named' \(1\): what 'named' is given is not of the type City"
    ):
        await Pipeline(copy, named).run(3)
    with pytest.raises(
        StepMismatch, match=r"step 'wrong' \(0\): what 'wrong' has given is not of the type int"
    ):
        await TransformStep(wrong).run("a")
    with pytest.raises(StepMismatch, match="it cannot be recorded"):
        await TransformStep(lambda _: object()).run("a")


async def test_what_cannot_be_written_is_refused_before_the_start() -> None:
    class Odd:
        pass

    def odd(_: str) -> Odd:
        raise AssertionError("it was called")

    journal = MemoryJournal()
    with pytest.raises(SchemaMalformed, match="Odd, which has no JSON form"):
        await TransformStep(str.upper).then(odd).run("a", journal=journal)
    with pytest.raises(SchemaMalformed, match="Odd"):
        await TransformStep(str.upper).run(Odd(), journal=journal)  # pyright: ignore[reportArgumentType]
    assert await journal.loops() == []


async def test_deps_and_metadata_reach_functions_and_agents() -> None:
    @tool
    async def whose(ctx: RunContext[dict[str, str]]) -> str:
        """Whose."""
        return f"{ctx.deps['name']} {ctx.metadata['team']}"

    agent: Agent[dict[str, str], str] = Agent(Script(call("whose"), "done"), tools=[whose], name="a")

    async def told_by(ctx: StepContext[dict[str, str]], value: str) -> str:
        inner = await ctx.run(agent, value)
        said = inner.messages[-2].tool_results[0].text
        return f"{ctx.deps['name']} {ctx.run_id} {ctx.idempotency_key} {said}"

    result = await TransformStep(told_by).run(
        "go", deps={"name": "ann"}, metadata={"team": "red"}, loop_id="f"
    )
    assert result.output == "ann f f/1/0/step/1 ann red"
    assert (result.steps[0].usage.requests, result.usage.tool_calls) == (2, 1)


async def test_costs_are_summed_over_all_that_ran() -> None:
    def agent(name: str, *features: Any) -> Agent[None, str]:
        said = assistant("x")
        from msgspec.structs import replace

        engine = ScriptedEngine(replace(said, usage=Usage(1000, 1000)), name="m")
        return Agent(engine, name=name, features=features)

    tracker = CostTracker({"m": ModelPricing(1, 1)})
    flow = Pipeline(AgentStep(agent("a", tracker)), AgentStep(agent("b")))
    result = await flow.run("go")
    assert result.cost is not None
    one = result.steps[0].run
    assert one is not None
    assert one.cost is not None
    assert one.cost.total
    assert result.cost.total == 2 * one.cost.total
    assert (await TransformStep(str).run(1)).cost is None


# Chains


async def test_a_chain_asks_each_agent_with_what_the_one_before_gave() -> None:
    second = Script("two")
    flow = chain(Agent(Script("one")), Agent(second), transform=lambda text: f"After {text}?")
    result = await flow.run("go")
    assert result.output == "two"
    assert second.last.messages[-1].text == "After one?"
    assert [step.run.output for step in result.steps if step.run is not None] == ["one", "two"]
    third = Script("three")
    longer = chain(Agent(Script("one")), Agent(Script("two")), Agent(third), history=True)
    assert (await longer.run("go")).output == "three"
    assert [message.text for message in third.last.messages] == ["go", "one", "one", "two", "two"]
    with pytest.raises(UserError, match="transform= where there are two"):
        chain(Agent("test"), transform=str)  # pyright: ignore[reportCallIssue, reportArgumentType]


async def test_a_handoff_may_make_its_prompt_of_the_output() -> None:
    last = Script("done")
    talk = Handoff(Agent(Script("a")), name="talk").add_step(Agent(last), lambda text: f"{text}!")
    assert (await talk.run("go")).output == "done"
    assert [message.text for message in last.last.messages] == ["go", "a", "a!"]
    assert talk.name == "talk"
    assert isinstance(talk.then(str.upper), Pipeline)


# What cannot be meant

ODD: Any = 3
NOTHING: Any = lambda: 3  # noqa: E731


@pytest.mark.parametrize(
    ("make", "match"),
    [
        (lambda: AgentStep(ODD), "AgentStep takes an agent"),
        (lambda: AgentStep(Agent("test"), ODD), "the prompt of a step is a function"),
        (lambda: TransformStep(ODD), "TransformStep is a function, not 3"),
        (lambda: TransformStep(NOTHING), "it takes none"),
        (lambda: TransformStep(str, retries=-1), "retries= takes a number from 0"),
        (lambda: ParallelSteps(concurrency=0), "concurrency= takes a number from 1"),
        (lambda: Pipeline(3), "a flow is made of steps"),
    ],
    ids=["agent", "prompt", "function", "none", "retries", "concurrency", "step"],
)
def test_steps_that_cannot_be(make: Any, match: str) -> None:
    with pytest.raises(UserError, match=match):
        make()


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"jurnal": 1}, "a flow has no option 'jurnal'"),
        ({"timeout": 0}, "timeout= takes seconds"),
        ({"journal": "runs.db"}, "journal= takes a journal"),
        ({"runtime": 3}, "runtime= takes a runtime"),
        ({"loop_id": ""}, "loop_id must be a text"),
        ({"correlation": "x"}, "correlation= takes a Correlation"),
        ({"metadata": [1]}, "metadata= takes a dict"),
        ({"metadata": {"x": object()}}, "has no JSON form"),
        ({"parent": 3}, "parent= takes the RunContext"),
    ],
    ids=["unknown", "timeout", "journal", "runtime", "id", "correlation", "metadata", "odd", "parent"],
)
async def test_options_that_cannot_be(options: dict[str, Any], match: str) -> None:
    with pytest.raises(UserError, match=match):
        await TransformStep(str).run(1, **options)


async def test_a_runtime_keeps_its_own_journal() -> None:
    async with LocalRuntime() as runtime:
        with pytest.raises(UserError, match="in its own journal"):
            await TransformStep(str).run(1, runtime=runtime, journal=MemoryJournal())


async def test_an_id_that_belongs_to_something_else() -> None:
    journal = MemoryJournal()
    await TransformStep(str).run(1, journal=journal, loop_id="f")
    with pytest.raises(LoopMismatch, match="exists with another input"):
        await TransformStep(str).run(2, journal=journal, loop_id="f")
    with pytest.raises(LoopMismatch, match="exists with another flow"):
        await TransformStep(repr).run(1, journal=journal, loop_id="f")
    await Agent(Script("a")).run("go", journal=journal, loop_id="a")
    with pytest.raises(LoopMismatch, match="is an agent's, and no flow"):
        await TransformStep(str).run(1, journal=journal, loop_id="a")
    with pytest.raises(UserError, match="is a flow, and no agent's"):
        await load(journal, "f")


async def test_a_flow_is_not_gone_on_with_as_an_agents_loop(where: Where) -> None:
    await TransformStep(str).run(1, journal=where.journal, loop_id="f")
    agent = Agent(NeverAsked())
    with pytest.raises(LoopMismatch, match="is a flow, and no agent's: choose another loop_id"):
        await agent.run("go", **where.options({"loop_id": "f"}))
    with pytest.raises(UserError, match="is a flow, and no agent's"):
        await agent.resume("f", where.journal)


def test_a_flow_runs_without_an_event_loop_and_not_inside_one() -> None:
    assert TransformStep(str).run_sync(1).output == "1"

    async def inside() -> None:
        with pytest.raises(UserError, match=r"await flow\.run"):
            TransformStep(str).run_sync(1)

    asyncio.run(inside())


def test_functions_say_what_they_take_and_give() -> None:
    class Adding:
        def __call__(self, value: int) -> list[int]:
            return [value]

    from functools import partial

    def two(ctx: Any, value: str) -> bool:
        return bool(ctx or value)

    assert function_of(Adding(), "it").gives == list[int]
    assert function_of(partial(two, None), "it").takes_context is False
    assert function_of(two, "it").takes_context is True
    assert function_of(two, "it").takes is str
    assert function_of(str, "it").gives is str
    assert function_of(swapped, "it").gives is Point
    assert function_of(print, "it").takes is Any

    def later(value: str) -> asyncio.Future[int]:
        raise NotImplementedError(value)

    assert function_of(later, "it").gives is int

    def unknown(value: Nowhere) -> None:  # noqa: F821 # pyright: ignore[reportUndefinedVariable, reportUnknownParameterType]
        """It cannot be resolved."""

    with pytest.raises(SchemaMalformed, match="annotation that cannot be resolved"):
        function_of(unknown, "it")  # pyright: ignore[reportUnknownArgumentType]


async def test_a_step_that_looks_at_something_cancelled_fails_and_does_not_hang() -> None:
    gone = asyncio.ensure_future(asyncio.sleep(0))
    gone.cancel()
    await asyncio.wait([gone])

    def look(_: str) -> Any:
        return gone.result()

    with pytest.raises(StepFailed, match="something that it waited for was cancelled"):
        await asyncio.wait_for(TransformStep(look).run("go"), PATIENCE)
