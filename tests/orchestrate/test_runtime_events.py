"""Runtime events and traces, as projections of journals: of any journal that the machine can reach."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given

from flyball import (
    Agent,
    ContentFilter,
    MaxPromptLength,
    MaxTurns,
    ModelRepair,
    Reflection,
    RunTrace,
    TextContains,
    tool,
)
from flyball.core.around import Around
from flyball.core.compaction import ContextCompaction
from flyball.core.errors import JournalCorrupt
from flyball.core.events import ModelAnswered, Started, TurnPrepared
from flyball.core.messages import assistant, user
from flyball.core.spec import LoopSpec
from flyball.inference.answers import tool_call as call
from flyball.observe.events import (
    ContextCompactedEvent,
    GuardrailEvaluatedEvent,
    ModelRequestedEvent,
    ModelRespondedEvent,
    OutputRepairedEvent,
    OutputValidatedEvent,
    RunCompletedEvent,
    RunConditionCheckedEvent,
    RunStartedEvent,
    RuntimeEvent,
    ToolCalledEvent,
    ToolEndedEvent,
    TurnEndedEvent,
    TurnStartedEvent,
)
from flyball.observe.trace import TraceStepKind
from flyball.observe.tracing import to_trajectory
from flyball.orchestrate.machine import fold
from flyball.orchestrate.projections import tool_calls_made, trajectory
from flyball.orchestrate.projections.runtime_events import Narrator, run_trace, runtime_events
from flyball.orchestrate.projections.trajectory import Trajectory
from tests.orchestrate.journals import Played, played
from tests.orchestrate.models import Script
from tests.orchestrate.scenario import Scenario
from tests.orchestrate.scenarios import SCENARIOS, City
from tests.orchestrate.test_recorded import ending


@given(played())
def test_all_that_begins_ends_in_its_order(world: Played) -> None:
    """A turn is within a run, one at a time; a call is told to end only if it was told to begin."""
    turn: int | None = None
    running = False
    called: set[tuple[int, str]] = set()
    requested: set[str] = set()
    for event in runtime_events(world.events):
        if isinstance(event, RunStartedEvent):
            running, turn = True, None
        elif isinstance(event, RunCompletedEvent):
            assert running
            assert turn is None
            running = False
        elif isinstance(event, TurnStartedEvent):
            assert turn is None
            turn = event.turn
        elif isinstance(event, TurnEndedEvent):
            assert turn == event.turn
            turn = None
        elif isinstance(event, ModelRequestedEvent):
            assert event.turn == turn
            requested.add(event.request_id)
        elif isinstance(event, ModelRespondedEvent):
            assert event.request_id in requested
        elif isinstance(event, ToolCalledEvent):
            assert event.turn == turn
            called.add((event.turn, event.tool_call_id))
        elif isinstance(event, ToolEndedEvent):
            assert (event.turn, event.tool_call_id) in called


@given(played())
def test_from_anywhere_on_the_same_is_told(world: Played) -> None:
    """Who takes a loop over tells what one who was there all the time would have told."""
    events = world.events
    whole, told = list[list[RuntimeEvent]](), Narrator()
    for event in events:
        whole.append(told.told(event))
    for length in range(1, len(events)):
        later = Narrator.after(events[:length])
        assert later.told(events[length]) == whole[length], type(events[length]).__name__


@given(played())
def test_a_trace_can_be_written_and_read_and_seen_as_a_trajectory(world: Played) -> None:
    trace, gone = run_trace(world.events), trajectory(world.events)
    again = RunTrace.from_json(trace.to_json())
    assert again.to_json() == trace.to_json()
    assert [step.kind for step in again.steps] == [step.kind for step in trace.steps]
    assert steps_of(to_trajectory(trace)) == steps_of(gone)
    assert trace.usage == fold(world.events).usage
    kinds = Counter(step.kind for step in trace.steps)
    assert kinds[TraceStepKind.MODEL_RESPONSE] + kinds[TraceStepKind.TOOL_RESULT] == len(gone.steps)


def steps_of(trajectory: Trajectory) -> tuple[Any, ...]:
    return trajectory.steps, trajectory.total_tokens_in, trajectory.total_tokens_out, trajectory.step_ms


@pytest.mark.parametrize("scenario", SCENARIOS, ids=repr)
async def test_of_any_run(scenario: Scenario) -> None:
    result, _ = await ending(scenario.make().run(scenario.prompt, **scenario.options))
    events = await result.events()
    trace, told = run_trace(events), list(runtime_events(events))
    assert trace.run_id == result.run_id
    assert steps_of(to_trajectory(trace)) == steps_of(trajectory(events))
    assert trace.success is not bool(scenario.code)
    assert bool(trace.error) is bool(scenario.code)
    ran = [event for event in told if isinstance(event, ToolEndedEvent)]
    made = [record for record in tool_calls_made(events) if record.status != "interrupted"]
    assert sorted(event.tool_call_id for event in ran) == sorted(record.call_id for record in made)
    answers = [event for event in told if isinstance(event, ModelRespondedEvent) and event.response]
    assert len(answers) == len([event for event in events if isinstance(event, ModelAnswered)])


def test_of_what_is_no_journal() -> None:
    answer = ModelAnswered(2.0, 1, assistant("hi"))
    started = Started(1.0, 1, "one", LoopSpec(), user("go"))
    with pytest.raises(JournalCorrupt, match="no events"):
        run_trace([])
    with pytest.raises(JournalCorrupt, match="begins with ModelAnswered"):
        list(runtime_events([answer]))
    with pytest.raises(JournalCorrupt, match="ModelAnswered does not fit"):
        list(runtime_events([started, answer, answer]))


# What is told of which event


async def told_of(agent: Agent[Any, Any], kind: type[RuntimeEvent], prompt: str = "go") -> list[Any]:
    result, _ = await ending(agent.run(prompt))
    return [event for event in runtime_events(await result.events()) if isinstance(event, kind)]


async def test_guardrails_up_to_the_one_that_refuses() -> None:
    agent = Agent(Script("never"), features=[MaxPromptLength(9), ContentFilter("bomb"), MaxTurns(1)])
    refused = await told_of(agent, GuardrailEvaluatedEvent, "a bomb")
    assert [(event.name, event.passed, event.turn) for event in refused] == [
        ("max_prompt_length", True, 0),
        ("content_filter", False, 0),
    ]
    assert "bomb" in refused[1].error


@tool
async def look() -> str:
    return "seen"


async def test_turn_guardrails_in_each_turn() -> None:
    agent = Agent(Script(call("look"), "never"), tools=[look], features=[MaxTurns(1)])
    turns = await told_of(agent, GuardrailEvaluatedEvent)
    assert [(event.turn, event.passed) for event in turns] == [(1, True), (2, False)]


async def test_conditions_that_end_the_run() -> None:
    (stopped,) = await told_of(
        Agent(Script("enough"), features=[TextContains("enough")]), RunConditionCheckedEvent
    )
    assert (stopped.stopped, stopped.turn) == (True, 1)
    assert "enough" in stopped.reason


async def test_validation_and_what_was_put_right() -> None:
    agent = Agent(Script('{"name": 1}', '{"name": "Paris",}'), output=City, output_mode="prompted")
    first, second = await told_of(agent, OutputValidatedEvent)
    assert (first.passed, second.passed, second.error) == (False, True, "")
    assert "name" in first.error
    (repaired,) = await told_of(agent, OutputRepairedEvent)
    assert (repaired.succeeded, repaired.repairs, repaired.turn) == (True, ("json",), 2)


@pytest.mark.parametrize(
    ("mended", "succeeded", "why"),
    [
        ('{"name": "Rome"}', True, ""),
        ("still nothing", False, "still nothing"),
        ("", False, "the model gave nothing that could be read"),
        (RuntimeError("down"), False, "down"),
    ],
    ids=["mended", "unreadable", "empty", "failed"],
)
async def test_a_model_that_puts_answers_right(mended: Any, succeeded: bool, why: str) -> None:
    mender = Script(mended, name="mender")
    agent = Agent(
        Script("Rome", '{"name": "Rome"}'),
        output=City,
        output_mode="prompted",
        features=[ModelRepair(mender)],
    )
    repaired = (await told_of(agent, OutputRepairedEvent))[0]
    assert repaired.succeeded is succeeded
    assert why in repaired.error or "JSON" in repaired.error
    requests = await told_of(agent, ModelRequestedEvent)
    assert [event.purpose for event in requests][:2] == ["turn", "repair"]


async def test_an_output_that_is_reflected_on_was_valid() -> None:
    def longer(_: Any, output: str) -> str | None:
        return "Longer!" if len(output) < 5 else None

    agent = Agent(Script("no", "a longer one"), features=[Reflection(longer)])
    assert [event.passed for event in await told_of(agent, OutputValidatedEvent)] == [True, True]


def test_compactions_of_a_turn_and_of_middleware() -> None:
    stats = ContextCompaction("window", 9, 3, 900, 300)
    other = ContextCompaction("emergency", 3, 1, 300, 100)
    events = [
        Started(1.0, 1, "one", LoopSpec(prepares=True), user("go")),
        TurnPrepared(2.0, 1, compactions=(stats,), passed=("max_turns",)),
        ModelAnswered(3.0, 1, assistant("hi"), around=Around(compactions=(other,))),
    ]
    told = list(runtime_events(events))
    assert [event.type for event in told] == [
        "run_started",
        "phase_changed",
        "turn_started",
        "context_compacted",
        "guardrail_evaluated",
        "phase_changed",
        "model_requested",
        "context_compacted",
        "model_responded",
        "phase_changed",
        "turn_ended",
    ]
    assert [event.stats for event in told if isinstance(event, ContextCompactedEvent)] == [stats, other]
