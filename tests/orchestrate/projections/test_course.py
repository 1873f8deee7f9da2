"""The course of a loop: every call once, in the order of beginning, whatever has come."""

from __future__ import annotations

import asyncio
from collections import Counter
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.strategies import DataObject
from pydantic import BaseModel

from flyball import Agent, AgentStep, MemoryJournal, Pipeline, ToolOutput, TransformStep, tool
from flyball.core.errors import EngineError, FlyballError, JournalCorrupt
from flyball.core.events import (
    VERSION,
    Event,
    ModelAnswered,
    ModelFailed,
    Resumed,
    SignalReceived,
    Started,
    ToolReturned,
)
from flyball.core.messages import ResultKind, user
from flyball.core.phases import Phase
from flyball.core.signals import Signal, SignalType
from flyball.core.spec import LoopSpec
from flyball.inference.answers import tool_call, tool_call_answer
from flyball.inference.scripted import ScriptedEngine
from flyball.orchestrate.machines import fold
from flyball.orchestrate.projections.course import CourseStep, StepKind, course
from flyball.orchestrate.recorded import send_signal
from flyball.orchestrate.state import State
from flyball.tool.errors import CallDeferred
from tests.orchestrate.journals import journals
from tests.orchestrate.scenario import Scenario
from tests.orchestrate.scenarios import SCENARIOS
from tests.orchestrate.test_flow_machine import World, trees
from tests.orchestrate.test_recorded import ending


def holds(events: list[Event]) -> tuple[CourseStep, ...]:
    """The course of a journal, which keeps what it promises."""
    steps = course(events)
    assert all(one.at <= other.at for one, other in pairwise(steps)), "in the order of beginning"
    for step in steps:
        assert step.took is None or step.took >= 0
        assert (step.took is None) <= (not step.ended), "what is under way has no end"
        assert (step.ok is None) is (step.took is None)
        assert step.kind.takes_time or (step.ended and step.took == 0)
        assert (step.phase is not None) is (step.kind is StepKind.END)
    if fold(events).at == "done":
        assert not [step for step in steps if step.took is None], "nothing is under way in what is over"
        assert [step for step in steps if step.kind is StepKind.END], "its end is there"
    return steps


@given(journals())
def test_any_journal_has_its_course(events: list[Event]) -> None:
    steps = holds(events)
    ended = Counter(step.kind for step in steps if step.ended)
    assert ended[StepKind.MODEL_CALL] == sum(isinstance(one, ModelAnswered | ModelFailed) for one in events)
    returned = [one for one in events if isinstance(one, ToolReturned)]
    came = [one for one in returned if one.result.status is not ResultKind.DEFERRED]
    assert ended[StepKind.TOOL_CALL] == len(came)
    open_calls = [step for step in steps if step.kind is StepKind.MODEL_CALL and step.took is None]
    assert len(open_calls) <= 1, "a loop makes one model call at a time"


@given(journals(), st.data())
def test_what_has_ended_stays_as_it_is(events: list[Event], data: DataObject) -> None:
    """As a journal grows, steps are added, and those that were under way end; no other changes."""
    length = data.draw(st.integers(1, len(events)))
    before = Counter([step for step in course(events[:length]) if step.ended])
    assert not before - Counter(course(events))


@given(trees, st.data())
def test_any_flow_has_its_course(flow: object, data: DataObject) -> None:
    world = World(flow)  # pyright: ignore[reportArgumentType]
    for _ in range(data.draw(st.integers(0, 12))):
        steps = world.steps()
        if not steps:
            break
        if data.draw(st.integers(0, 5)) == 0:
            world.crash()
        else:
            world.offer(world.answer(data.draw(st.sampled_from(steps))))
    if world.state.at == "end" and data.draw(st.booleans()):
        world.end()
    gone = holds(world.journal)
    open_paths = sorted(step.path for step in gone if step.took is None)
    assert open_paths == (sorted(world.state.ready) if world.state.at == "run" else [])


@pytest.mark.parametrize("scenario", SCENARIOS, ids=repr)
async def test_of_any_run(scenario: Scenario) -> None:
    result, _ = await ending(scenario.make().run(scenario.prompt, **scenario.options))
    events = await result.events()
    for length in range(1, len(events) + 1):
        holds(events[:length])


@tool
async def weather(city: str) -> str:
    return f"rain in {city}"


async def test_a_run_of_two_calls() -> None:
    engine = ScriptedEngine(tool_call("weather", {"city": "Rome"}, "c1"), "Take an umbrella.")
    events = await (await Agent(engine, tools=[weather]).run("Rome?")).events()
    first, called, second, end = course(events)
    assert (first.kind, first.what, first.turn) == (StepKind.MODEL_CALL, "model call 1", 1)
    assert first.about == "1 message, 1 tool → 1 tool call"
    assert (called.what, called.call_id, called.turn) == ("weather", "c1", 1)
    assert called.about == '{"city":"Rome"} → rain in Rome'
    assert (second.what, second.turn, second.ok) == ("model call 2", 2, True)
    assert (end.kind, end.phase, end.ok) == (StepKind.END, Phase.COMPLETE, True)


@given(journals())
def test_every_call_that_was_answered_is_there_and_one_that_never_ran_is_told_as_such(
    events: list[Event],
) -> None:
    steps, state = course(events), fold(events)
    asked = {call.id for one in events if isinstance(one, ModelAnswered) for call in one.message.tool_calls}
    assert isinstance(state, State)
    output = {definition.name for definition in state.spec.output.tools}
    results = [result for message in state.history for result in message.tool_results]
    answered = {one.call_id for one in results if one.call_id in asked and one.name not in output}
    told = Counter([step.call_id for step in steps if step.kind is not StepKind.SIGNAL and step.call_id])
    assert answered <= told.keys()
    never = [step.call_id for step in steps if step.kind is StepKind.NOT_RUN]
    ran = {one.result.call_id for one in events if isinstance(one, ToolReturned)}
    assert ran.isdisjoint(never)
    assert all(told[one] == 1 for one in never)


async def test_a_call_that_cannot_run_is_there_with_what_the_model_reads() -> None:
    engine = ScriptedEngine(
        [tool_call("weather", {"city": "Rome"}, "c1"), tool_call("umbrella", {"size": 2}, "c2")],
        "No umbrella.",
    )
    steps = course(await (await Agent(engine, tools=[weather]).run("Rome?")).events())
    assert [step.kind for step in steps].count(StepKind.TOOL_CALL) == 1
    (step,) = [step for step in steps if step.kind is StepKind.NOT_RUN]
    assert (step.what, step.call_id, step.turn, step.ok) == ("umbrella", "c2", 1, False)
    assert step.about == "{\"size\":2} → There is no tool 'umbrella'. The tools are: weather."


async def test_a_call_that_carries_the_output_is_none() -> None:
    class Verdict(BaseModel):
        good: bool

    agent = Agent(ScriptedEngine(tool_call("final_result", {"good": True}, "c1")), output=ToolOutput(Verdict))
    steps = course(await (await agent.run("Good?")).events())
    assert [step.kind for step in steps] == [StepKind.MODEL_CALL, StepKind.END]


async def test_who_tries_again_or_forks_goes_on_with_it_and_that_is_told_once() -> None:
    journal = MemoryJournal()
    agent = Agent(ScriptedEngine(EngineError("gone"), "Here.", "There."))
    with pytest.raises(FlyballError):
        await agent.run("go", journal=journal, loop_id="loop")
    await send_signal(journal, "loop", Signal(SignalType.RETRY))
    await agent.resume("loop", journal=journal)
    kinds = [step.kind for step in course(await journal.read("loop"))]
    assert kinds[-3:] == [StepKind.RETRIED, StepKind.MODEL_CALL, StepKind.END]
    await agent.fork("loop", journal, turn=0, new_loop_id="fork")
    kinds = [step.kind for step in course(await journal.read("fork"))]
    assert kinds == [StepKind.FORKED, StepKind.MODEL_CALL, StepKind.END]
    events = await journal.read("loop")
    taken = [*events[:1], Resumed(events[0].at, VERSION, 1)]
    assert [step.kind for step in course(taken)][-1:] == [StepKind.RESUMED]


async def test_what_is_under_way_and_what_is_cut_off() -> None:
    journal, begun = MemoryJournal(), asyncio.Event()

    @tool
    async def slow(city: str) -> str:
        begun.set()
        await asyncio.Event().wait()
        return city

    agent = Agent(ScriptedEngine(tool_call("slow", {"city": "Rome"}, "c1")), tools=[slow])
    running = asyncio.create_task(agent.run("Rome?", journal=journal, loop_id="loop"))
    await begun.wait()
    *_, step = course(await journal.read("loop"))
    assert (step.kind, step.took, step.ok, step.call_id) == (StepKind.TOOL_CALL, None, None, "c1")
    assert step.about == '{"city":"Rome"} → under way'
    await send_signal(journal, "loop", Signal(SignalType.CANCEL, by="eve", text="enough"))
    with pytest.raises(FlyballError):
        await running
    steps = course(await journal.read("loop"))
    (cut,) = [step for step in steps if step.kind is StepKind.TOOL_CALL]
    assert (cut.ended, cut.ok, cut.about.split()[-2:]) == (False, False, ["cut", "off"])
    assert cut.took is not None
    (said,) = [step for step in steps if step.kind is StepKind.SIGNAL]
    assert (said.what, said.about) == ("cancel", "by eve: enough")


async def test_a_result_that_is_to_come_is_waited_for() -> None:
    @tool
    async def ask() -> str:
        raise CallDeferred("later")

    journal = MemoryJournal()
    with pytest.raises(FlyballError):
        await Agent(ScriptedEngine(tool_call("ask", {}, "c1")), tools=[ask]).run(
            "go", journal=journal, loop_id="loop"
        )
    *_, step = course(await journal.read("loop"))
    assert (step.kind, step.took, step.call_id) == (StepKind.WAIT, None, "c1")


async def test_the_steps_of_a_flow_name_their_loops() -> None:
    flow = Pipeline(AgentStep(Agent(ScriptedEngine("yes"), name="one")), TransformStep(str.upper, name="up"))
    journal = MemoryJournal()
    await flow.run("go", journal=journal, loop_id="f")
    first, second, end = course(await journal.read("f"))
    assert (first.kind, first.what, first.path, first.loop_id) == (StepKind.FLOW_STEP, "0 one", "0", "f-s0")
    assert first.usage is not None
    assert (second.what, second.about, second.loop_id) == ("1 up", "YES", "")
    assert (end.what, end.ok) == ("complete", True)


def test_a_loop_that_has_just_begun_is_at_its_model_call() -> None:
    (step,) = course([Started(1.0, 1, "loop", LoopSpec(agent="agent", model="test"), user("hi"))])
    assert (step.kind, step.took, step.about) == (StepKind.MODEL_CALL, None, "1 message → under way")


def test_of_what_is_no_journal() -> None:
    with pytest.raises(JournalCorrupt):
        course([ModelAnswered(2.0, 1, user("hi"))])
    assert course([]) == ()


def test_a_call_that_was_rejected_comes_after_the_rejection() -> None:
    @tool(approval=True)
    async def burn(city: str) -> str:
        return city

    spec = Agent(ScriptedEngine("No fire."), tools=[burn]).spec
    asked = tool_call_answer("burn", {"city": "Rome"}, "c1")
    rejected = SignalReceived(3.0, Signal(SignalType.REJECT, text="too cruel"))
    events = [Started(1.0, VERSION, "loop", spec, user("Burn it")), ModelAnswered(2.0, 1, asked), rejected]
    said, refused = course(events)[-2:]
    assert (said.kind, said.what) == (StepKind.SIGNAL, "reject")
    assert (refused.kind, refused.call_id) == (StepKind.NOT_RUN, "c1")
    assert refused.about == '{"city":"Rome"} → The call was not allowed: too cruel'
