"""The loop, its trajectory and its events as SemStreams has them: worked out from the journal alone."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given

from flyball import Agent, AutoContext, Limits, SlidingWindow, tool
from flyball.core.codec import decode_event, encode_event
from flyball.core.correlation import Correlation
from flyball.core.errors import EngineError, JournalCorrupt
from flyball.core.events import (
    VERSION,
    CallsJudged,
    Ended,
    Event,
    Forked,
    ModelAnswered,
    ModelFailed,
    Outcome,
    Reopened,
    SignalReceived,
    Stage,
    Started,
    TimePassed,
    ToolReturned,
    TurnSettled,
    Verdict,
)
from flyball.core.forms.semstreams import (
    LoopCancelledEvent,
    LoopCompletedEvent,
    LoopCreatedEvent,
    LoopEntity,
    LoopFailedEvent,
    StepType,
    TaskMessage,
    Trajectory,
    write_messages,
)
from flyball.core.forms.semstreams.keyed import Keyed
from flyball.core.messages import (
    Audio,
    Image,
    Message,
    ResultKind,
    Role,
    Text,
    ToolCall,
    ToolResult,
    assistant,
    user,
)
from flyball.core.signals import Signal, SignalType
from flyball.core.spec import LoopSpec, OutputMode, OutputSpec
from flyball.core.tools import ToolDefinition, ToolSpec
from flyball.core.usage import Usage
from flyball.inference.answers import tool_call_answer
from flyball.inference.scripted import ScriptedEngine
from flyball.orchestrate.course import OVER
from flyball.orchestrate.lifecycle import stage_of
from flyball.orchestrate.machine import fold
from flyball.orchestrate.projections import (
    context_events,
    entity_of,
    lifecycle_payloads,
    loop_created,
    loop_ended,
    loop_entity,
    trajectory,
)
from flyball.orchestrate.task_facts import UNLIMITED
from tests.orchestrate.journals import journals

LOOK = ToolSpec(ToolDefinition("look", {"type": "object"}))
SPEC = LoopSpec(model="m", tools={"look": LOOK})
TASK = TaskMessage(
    task_id="task_1",
    role="architect",
    model="m",
    prompt="hi",
    workflow_slug="add-user-auth",
    workflow_step="design",
    channel_type="slack",
    channel_id="C1",
    user_id="u1",
    max_depth=3,
    context_request_id="ctx_1",
    metadata={"tenant": "blue"},
)


def started(spec: LoopSpec = SPEC, **more: Any) -> Started:
    return Started(100.0, VERSION, "loop", spec, user("hi"), **more)


def of_a_task(spec: LoopSpec = SPEC) -> Started:
    return started(
        spec,
        metadata=TASK.loop_metadata(),
        correlation=Correlation(task_id=TASK.task_id),
        parent_loop_id="parent",
        depth=2,
    )


def asked(at: float, turn: int, *calls: ToolCall) -> ModelAnswered:
    message = Message(Role.ASSISTANT, calls, usage=Usage(10, 5), model="m-2026")
    return ModelAnswered(at, turn, message, duration=1.25)


def answered(at: float, turn: int, text: str = "done") -> ModelAnswered:
    return ModelAnswered(at, turn, Message(Role.ASSISTANT, (Text(text),), usage=Usage(20, 7)), duration=0.5)


def returned(at: float, turn: int, index: int, result: ToolResult) -> ToolReturned:
    return ToolReturned(at, turn, index, result, duration=0.05)


def signal(at: float, kind: SignalType, by: str = "u1") -> SignalReceived:
    return SignalReceived(at, Signal(kind, id=f"s{at}", by=by))


ONE, TWO = ToolCall("one", "look", '{"x": 1}'), ToolCall("two", "look")
RUN: list[Event] = [
    of_a_task(),
    asked(102.0, 1, ONE, TWO),
    returned(103.0, 1, 0, ToolResult("one", "look", {"seen": 1})),
    returned(104.0, 1, 1, ToolResult("two", "look", error="blind")),
    answered(105.0, 2),
    Ended(106.0, Outcome.SUCCESS),
]


def comes_back(payload: Keyed) -> None:
    payload.validate()
    assert type(payload).unmarshal_json(payload.marshal_json()) == payload


# For every journal


@given(journals())
def test_a_loop_is_what_its_journal_says(events: list[Event]) -> None:
    loop, state = loop_entity(events), fold(events)
    comes_back(loop)
    assert loop.state == stage_of(state)
    assert loop.is_over == bool(loop.outcome) == (loop.completed_at is not None)
    assert loop.outcome == (state.outcome or "")
    assert bool(loop.state_before_pause) == (loop.state == Stage.PAUSED)
    assert loop == entity_of(state, paused_by=loop.pause_requested_by, decided_at=loop.completed_at)


@given(journals())
def test_a_trajectory_adds_up_to_the_loops_usage(events: list[Event]) -> None:
    summary, full, usage = trajectory(events), trajectory(events, "full"), fold(events).usage
    for one in (summary, full):
        comes_back(one)
        assert (one.total_tokens_in, one.total_tokens_out) == (usage.input_tokens, usage.output_tokens)
        assert one.ended == fold(events).outcome
    assert full.summary() == summary
    models = [step for step in summary.steps if step.step_type == StepType.MODEL_CALL]
    assert len(models) == usage.requests
    results = [event.result for event in events if isinstance(event, ToolReturned)]
    came = [result for result in results if result.status is not ResultKind.DEFERRED]
    assert len(summary.steps) - len(models) == len(came)


@given(journals(12))
def test_steps_are_only_ever_added(events: list[Event]) -> None:
    whole = trajectory(events, "full").steps
    for number in range(1, len(events)):
        begun = trajectory(events[:number], "full").steps
        assert begun == whole[: len(begun)]


@given(journals())
def test_what_is_told_of_a_loop_is_valid(events: list[Event]) -> None:
    created, *ended = lifecycle_payloads(events)
    assert isinstance(created, LoopCreatedEvent)
    assert len(ended) == (fold(events).at in OVER)
    for payload in (created, *ended):
        comes_back(payload)


# The loop


def test_a_loop_that_a_task_began() -> None:
    assert loop_entity(RUN) == LoopEntity(
        id="loop",
        task_id="task_1",
        state="complete",
        role="architect",
        model="m",
        iterations=2,
        max_iterations=20,
        started_at=100.0,
        parent_loop_id="parent",
        depth=2,
        max_depth=3,
        user_id="u1",
        channel_type="slack",
        channel_id="C1",
        workflow_slug="add-user-auth",
        workflow_step="design",
        outcome="success",
        result="done",
        completed_at=105.0,
    )
    assert (loop_entity(RUN[:1]).state, loop_entity(RUN[:1]).completed_at) == ("architecting", None)


def test_a_loop_that_nobody_said_anything_about_is_its_own_task() -> None:
    limited = LoopSpec(agent="reviewer", limits=Limits(max_iterations=None, timeout=60.0))
    loop = loop_entity([started(limited, metadata={"user_id": 3, "max_depth": "deep", "role": ""})])
    assert (loop.task_id, loop.role, loop.max_iterations) == ("loop", "reviewer", UNLIMITED)
    assert (loop.user_id, loop.max_depth, loop.timeout_at) == ("", 0, 160.0)
    assert loop_entity([started()]).role == "general"


def test_results_are_pending_until_the_turn_has_all_of_them() -> None:
    images = (Image("https://example.org/x.png"),)
    first = returned(103.0, 1, 0, ToolResult("one", "look", {"seen": 1}, images=images))
    loop = loop_entity([*RUN[:2], first])
    assert loop.pending_tool_results == {"one": ToolResult("one", "look", '{"seen":1}')}
    comes_back(loop)
    assert loop_entity([*RUN[:2], first, RUN[3]]).pending_tool_results is None


def test_a_pause_is_asked_for_and_then_begins() -> None:
    asking = [*RUN[:2], signal(102.5, SignalType.PAUSE)]
    loop = loop_entity(asking)
    assert (loop.state, loop.pause_requested, loop.pause_requested_by) == ("architecting", True, "u1")
    assert loop.state_before_pause == ""
    paused = loop_entity([*asking, *RUN[2:4]])
    assert (paused.state, paused.pause_requested, paused.pause_requested_by) == ("paused", False, "u1")
    assert paused.state_before_pause == "architecting"
    gone_on = loop_entity([*asking, *RUN[2:4], signal(110.0, SignalType.RESUME)])
    assert (gone_on.state, gone_on.pause_requested_by) == ("architecting", "")


def test_who_cancelled_and_when() -> None:
    loop = loop_entity([*RUN[:2], signal(103.0, SignalType.CANCEL, "u2"), Ended(109.0, Outcome.CANCELLED)])
    assert (loop.state, loop.outcome, loop.result) == ("cancelled", "cancelled", "")
    assert (loop.cancelled_by, loop.cancelled_at, loop.completed_at) == ("u2", 103.0, 103.0)
    assert "cancelled by u2" in loop.error
    late = [started(LoopSpec(limits=Limits(timeout=1.0))), TimePassed(101.5)]
    loop = loop_entity(late)
    assert (loop.cancelled_by, loop.cancelled_at, loop.outcome) == ("timeout", 101.5, "cancelled")


def test_a_loop_that_failed_and_is_tried_again() -> None:
    failed: list[Event] = [
        started(),
        ModelFailed(103.0, 1, EngineError("it broke").record(), assistant("half"), duration=3.0),
        Ended(104.0, Outcome.FAILED),
    ]
    loop = loop_entity(failed)
    assert (loop.state, loop.outcome, loop.error, loop.completed_at) == (
        "failed",
        "failed",
        "it broke",
        103.0,
    )
    again = loop_entity([*failed, Reopened(110.0, "u1")])
    assert (again.state, again.outcome, again.error, again.completed_at) == ("executing", "", "", None)
    done = loop_entity([*failed, Reopened(110.0), answered(112.0, 2)])
    assert (done.outcome, done.completed_at) == ("success", 112.0)


@pytest.mark.parametrize(
    ("settled", "answer", "result"),
    [
        (TurnSettled(106.0, 1, accepted=True), '{"result": [1, 2]}', "[1,2]"),
        (TurnSettled(106.0, 1, accepted=True), '{"result": "text"}', "text"),
        (TurnSettled(106.0, 1, accepted=True, repairs=("quotes",)), "{'result': 1}", "{'result': 1}"),
        (TurnSettled(106.0, 1, accepted=True), '{"other": 1}', '{"other": 1}'),
        (TurnSettled(106.0, 1, accepted=True, output={"x": 1}), '{"result": 2}', '{"x":1}'),
    ],
)
def test_a_result_is_told_without_its_wrapper(settled: TurnSettled, answer: str, result: str) -> None:
    output = OutputSpec(mode=OutputMode.NATIVE, schema={}, checked=True, outer_key="result")
    events = [started(LoopSpec(output=output)), answered(105.0, 1, answer), settled]
    assert loop_entity(events).result == result


# The trajectory


def test_the_steps_of_a_run() -> None:
    gone = trajectory(RUN)
    assert (gone.loop_id, gone.start_time, gone.end_time, gone.outcome) == ("loop", 100.0, 105.0, "success")
    assert (gone.duration, gone.step_ms) == (5000, 1250 + 50 + 50 + 500)
    first, one, two, last = gone.steps
    assert (first.step_type, first.request_id, first.model) == ("model_call", "loop/1/1/infer/0", "m-2026")
    assert (first.prompt, first.response, first.tokens_in, first.tokens_out) == ("hi", "", 10, 5)
    assert (one.step_type, one.tool_name, one.tool_arguments) == ("tool_call", "look", {"x": 1})
    assert (one.tool_result, two.tool_result, two.tool_arguments) == ('{"seen":1}', "blind", None)
    assert (last.request_id, last.response, last.model) == ("loop/1/2/infer/0", "done", "m")
    assert not any(step.messages or step.tool_calls for step in gone.steps)


def test_in_full_the_messages_and_the_calls_are_there() -> None:
    first, _, _, last = trajectory(RUN, "full").steps
    assert write_messages(first.messages) == [{"role": "user", "content": "hi"}]
    assert [call.id for call in first.tool_calls] == ["one", "two"]
    assert [message["role"] for message in write_messages(last.messages)] == [
        "user",
        "assistant",
        "tool",
        "tool",
    ]


def test_a_loop_that_goes_on_has_no_end_and_the_time_of_its_steps() -> None:
    gone = trajectory(RUN[:4])
    assert (gone.end_time, gone.outcome, gone.duration) == (None, "", gone.step_ms)


def test_a_model_call_that_failed_is_a_step_with_what_came_of_it() -> None:
    half = Message(Role.ASSISTANT, (Text("half"),), usage=Usage(3, 1))
    error = EngineError("it broke").record()
    (one,) = trajectory([started(), ModelFailed(103.0, 1, error, half, duration=3.0)]).steps
    assert (one.response, one.tokens_in, one.duration) == ("half", 3, 3000)
    (none,) = trajectory([started(), ModelFailed(103.0, 1, error)]).steps
    assert (none.response, none.tokens_in, none.model) == ("", 0, "m")


def test_a_loop_that_nobody_said_anything_to_has_no_prompt() -> None:
    (step,) = trajectory([Started(100.0, VERSION, "loop", SPEC), answered(105.0, 1)], "full").steps
    assert (step.prompt, step.messages, step.response) == ("", (), "done")


def test_what_the_wire_cannot_hold_is_named_in_its_place() -> None:
    parts = (Text("see"), Image("https://example.org/x.png"), Audio("data:audio/wav;base64,AAAA"))
    first = Started(100.0, VERSION, "loop", SPEC, Message(Role.USER, parts))
    images = (Image("https://example.org/y.png"),)
    seen = returned(103.0, 1, 0, ToolResult("one", "look", "ok", images=images))
    gone = trajectory([first, asked(102.0, 1, ONE), seen, answered(104.0, 2)], "full")
    comes_back(gone)
    said, _, answer = write_messages(gone.steps[2].messages)
    assert said["content"] == "see\n\n[image: https://example.org/x.png]\n\n[audio]"
    assert answer["content"] == "ok"
    assert gone.steps[0].prompt == "see"


def test_arguments_are_those_that_the_tool_was_run_with() -> None:
    careful = ToolSpec(ToolDefinition("look", {"type": "object"}), approval=True)
    spec = LoopSpec(tools={"look": careful}, judges=True)
    broken = ToolCall("two", "look", '{"x": ')
    judged = CallsJudged(102.5, 1, (Verdict(0, allowed=True, args_json='{"x": 9}'), Verdict(1, allowed=True)))
    gone = trajectory([started(spec), asked(102.0, 1, ONE, broken), judged, *RUN[2:4]])
    assert [step.tool_arguments for step in gone.steps[1:]] == [{"x": 9}, {"args_json": '{"x": '}]


def test_a_fork_goes_on_with_the_steps_before_it() -> None:
    forked = Forked(200.0, VERSION, "other", "loop", 1, SPEC, user("and now?"))
    events = [*RUN, forked, answered(202.0, 3, "now")]
    gone = trajectory(events)
    assert (gone.loop_id, gone.start_time, len(gone.steps)) == ("other", 100.0, 5)
    assert (gone.steps[-1].request_id, gone.steps[-1].prompt) == ("other/1/3/infer/0", "and now?")
    assert gone.total_tokens_in == fold(events).usage.input_tokens == 50
    assert loop_entity(events).started_at == 200.0


def test_nothing_is_no_journal() -> None:
    for view in (loop_entity, trajectory, lifecycle_payloads):
        with pytest.raises(JournalCorrupt, match="no events"):
            view([])


# What is told


def test_what_is_told_of_a_loop_that_ended_well() -> None:
    created, ended = lifecycle_payloads(RUN)
    assert created == LoopCreatedEvent(
        loop_id="loop",
        task_id="task_1",
        role="architect",
        model="m",
        workflow_slug="add-user-auth",
        workflow_step="design",
        context_request_id="ctx_1",
        max_iterations=20,
        created_at=100.0,
    )
    assert created == loop_created(fold(RUN[:1]))
    assert ended == LoopCompletedEvent(
        loop_id="loop",
        task_id="task_1",
        role="architect",
        result="done",
        model="m",
        iterations=2,
        tokens_in=30,
        tokens_out=12,
        parent_loop="parent",
        workflow_slug="add-user-auth",
        workflow_step="design",
        completed_at=105.0,
        channel_type="slack",
        channel_id="C1",
        user_id="u1",
    )
    assert lifecycle_payloads(RUN[:4]) == (created,)
    assert loop_ended(fold(RUN[:4]), 1.0) is None


def test_what_is_told_of_a_loop_that_ended_badly() -> None:
    failed = ModelFailed(103.0, 1, EngineError("it broke").record())
    _, ended = lifecycle_payloads([of_a_task(), failed])
    assert isinstance(ended, LoopFailedEvent)
    assert (ended.reason, ended.error, ended.failed_at) == (EngineError.code, "it broke", 103.0)
    assert (ended.user_id, ended.workflow_step, ended.outcome) == ("u1", "design", "failed")
    _, ended = lifecycle_payloads([of_a_task(), signal(104.0, SignalType.CANCEL)])
    assert ended == LoopCancelledEvent(
        loop_id="loop",
        task_id="task_1",
        cancelled_by="u1",
        workflow_slug="add-user-auth",
        workflow_step="design",
        cancelled_at=104.0,
    )


def test_a_journal_that_was_written_and_read_tells_the_same() -> None:
    again = [decode_event(encode_event(event)) for event in RUN]
    assert (loop_entity(again), trajectory(again, "full")) == (loop_entity(RUN), trajectory(RUN, "full"))
    assert isinstance(trajectory(again), Trajectory)


# Contexts


async def test_a_summary_is_told_before_and_after_and_what_is_left_out_as_collected() -> None:
    more = " and so on" * 8
    talk = [
        said for n in range(6) for said in (user(f"Question {n}{more}?"), assistant(f"Answer {n}{more}."))
    ]
    small = Usage(input_tokens=10, context_window=100)
    agent = Agent(
        ScriptedEngine(tool_call_answer("note", usage=small), "Done."),
        tools=[tool(note)],
        features=[
            AutoContext(220, keep_last_n=5, summary_model=ScriptedEngine("They talked.")),
            SlidingWindow(1),
        ],
    )
    result = await agent.run("Go on.", messages=talk, loop_id="long")
    told = context_events(await result.events())
    assert [(event.type, event.iteration, event.summary) for event in told] == [
        ("compaction_starting", 1, ""),
        ("compaction_complete", 1, "They talked."),
        ("gc_complete", 1, ""),
        ("gc_complete", 2, ""),
    ]
    for event in told:
        event.validate()
    assert {event.loop_id for event in told} == {"long"}
    assert all(event.tokens_saved > 0 for event in told if event.type == "gc_complete")
    assert [event.utilization > 0 for event in told] == [False, False, False, True]
    other = agent.clone(model=ScriptedEngine("Otherwise."))
    forked = await other.fork("long", result.journal, turn=1)
    told = context_events(await forked.events())
    assert [(event.type, event.loop_id) for event in told] == [("gc_complete", forked.loop_id)]


async def test_a_summary_that_comes_to_nothing_is_told_once_and_no_compaction_not_at_all() -> None:
    talk = [message for n in range(6) for message in (user(f"Question {n}?"), assistant(f"Answer {n}."))]
    failing = AutoContext(5, keep_last_n=1, summary_model=ScriptedEngine(OSError("away")))
    result = await Agent(ScriptedEngine("Done."), features=[failing]).run("Go on.", messages=talk)
    assert [event.type for event in context_events(await result.events())] == ["compaction_starting"]
    result = await Agent(ScriptedEngine("Done.")).run("Go on.", messages=talk)
    assert context_events(await result.events()) == ()


async def note() -> str:
    """Note something."""
    return "noted"
