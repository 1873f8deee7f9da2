"""Loops, trajectories, signals, tasks and filters in SemStreams' words: what they refuse and give."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from flyball.core.errors import IllegalTransition, InvalidMessage, InvalidRequest, IterationLimit
from flyball.core.events import Outcome, Stage, Verdict
from flyball.core.forms import semstreams
from flyball.core.forms.semstreams import (
    SEVEN,
    Attachment,
    ConstructedContext,
    ContextEvent,
    ContextSource,
    GraphContextSpec,
    LoopCancelledEvent,
    LoopCompletedEvent,
    LoopCreatedEvent,
    LoopEntity,
    LoopFailedEvent,
    ResponseAction,
    ResponseBlock,
    SignalMessage,
    StepType,
    TaskMessage,
    ToolCallFilterResult,
    ToolCallRejection,
    Trajectory,
    TrajectoryStep,
    UserMessage,
    UserResponse,
    UserSignal,
)
from flyball.core.forms.semstreams.keyed import Keyed, Payload
from flyball.core.messages import ToolCall
from flyball.core.signals import Signal, SignalType
from flyball.core.tools import ToolChoice
from tests.core.forms.documents import filled_texts, texts
from tests.strategies import maybe

LOOP = LoopEntity.new("loop_123", "task_456", "general", "gpt-4")
TASK = TaskMessage(task_id="t", role="general", model="m", prompt="p")
STEP = TrajectoryStep(timestamp=1.0, step_type=StepType.MODEL_CALL)
WHO: dict[str, Any] = {"channel_type": "cli", "channel_id": "c", "user_id": "u"}


# The loop


def test_a_new_loop_explores_and_has_twenty_iterations_or_as_many_as_are_given() -> None:
    assert (LOOP.state, LOOP.iterations, LOOP.max_iterations) == (Stage.EXPLORING, 0, 20)
    assert [LoopEntity.new("l", "t", "r", "m", most).max_iterations for most in (50, 0, -1)] == [50, 20, 20]
    LOOP.validate()
    assert LOOP.write() == {
        "id": "loop_123",
        "task_id": "task_456",
        "state": "exploring",
        "role": "general",
        "model": "gpt-4",
        "iterations": 0,
        "max_iterations": 20,
    }


def test_iterations_are_counted_up_to_the_limit() -> None:
    last = LoopEntity.new("l", "t", "r", "m", 2).increment_iteration().increment_iteration()
    assert last.iterations == 2
    with pytest.raises(IterationLimit, match=r"max iterations \(2\) reached in loop 'l'"):
        last.increment_iteration()


@given(st.sampled_from(Stage), st.sampled_from(Stage))
def test_a_loop_goes_anywhere_but_out_of_an_end(before: Stage, after: Stage) -> None:
    loop = replace(LOOP, state=before)
    if before.is_terminal and after is not before:
        with pytest.raises(IllegalTransition, match=f"cannot transition from terminal state {before} to"):
            loop.transition_to(after)
    else:
        assert loop.transition_to(after) == replace(LOOP, state=after)
        assert loop.transition_to(after).is_over is after.is_terminal


def test_there_is_no_other_state() -> None:
    with pytest.raises(InvalidMessage, match=r"state in a loop_entity must be one of: exploring, .*'lost'"):
        LOOP.transition_to("lost")
    assert not replace(LOOP, state="lost").is_over


# The trajectory


def test_steps_add_up_and_completion_takes_the_clock() -> None:
    begun = Trajectory.new("loop_123", 100.0)
    steps = [
        replace(STEP, tokens_in=150, tokens_out=200, duration=1250),
        TrajectoryStep(timestamp=102.0, step_type=StepType.TOOL_CALL, tool_name="read_file", duration=50),
    ]
    gone = begun.add_steps(*steps)
    assert gone == begun.add_steps(steps[0]).add_steps(steps[1])
    assert (gone.total_tokens_in, gone.total_tokens_out, gone.duration) == (150, 200, 1300)
    assert gone.ended is None
    over = gone.complete("complete", 103.5)
    assert (over.outcome, over.ended, over.end_time) == ("complete", Outcome.SUCCESS, 103.5)
    assert (over.duration, over.step_ms) == (3500, 1300)
    over.validate()
    assert begun.steps == (), "a value is not changed"
    assert begun.complete(Outcome.FAILED, 99.0).duration == 0, "a clock that went back"


def test_a_summary_leaves_out_messages_and_calls() -> None:
    full = Trajectory.new("l", 1.0).add_steps(replace(STEP, tool_calls=(ToolCall("a", "f"),), response="r"))
    assert full.summary() == Trajectory.new("l", 1.0).add_steps(replace(STEP, response="r"))


# What is required

VALID: list[Keyed] = [
    TASK,
    UserSignal(signal_id="s", type="pause", loop_id="l", user_id="u"),
    SignalMessage(loop_id="l", type="cancel"),
    UserMessage(message_id="m", content="hi", **WHO),
    UserMessage(message_id="m", attachments=(Attachment(type="file", name="f"),), **WHO),
    UserResponse(response_id="r", channel_type="cli", channel_id="c", type="text"),
    LOOP,
    STEP,
    Trajectory.new("l", 1.0),
    LoopCreatedEvent(loop_id="l", task_id="t"),
    LoopCompletedEvent(loop_id="l", task_id="t"),
    LoopFailedEvent(loop_id="l", task_id="t"),
    LoopCancelledEvent(loop_id="l", task_id="t"),
    ContextEvent(type="gc_complete", loop_id="l"),
    Attachment(type="url", name="n"),
    ResponseBlock(type="diff"),
    ResponseAction(id="a", type="reaction", signal="retry"),
    ContextSource(type="document", id="d"),
    ConstructedContext(content="c"),
    GraphContextSpec(),
]
WRONG: list[tuple[Keyed, str]] = [
    (TASK, "task_id"),
    (TASK, "role"),
    (TASK, "model"),
    (TASK, "prompt"),
    (VALID[1], "signal_id"),
    (VALID[1], "type"),
    (VALID[1], "loop_id"),
    (VALID[1], "user_id"),
    (VALID[2], "type"),
    (VALID[2], "loop_id"),
    (VALID[3], "message_id"),
    (VALID[3], "channel_type"),
    (VALID[3], "channel_id"),
    (VALID[3], "user_id"),
    (VALID[3], "content"),
    (VALID[5], "response_id"),
    (VALID[5], "channel_type"),
    (VALID[5], "channel_id"),
    (VALID[5], "type"),
    (LOOP, "id"),
    (LOOP, "state"),
    (LOOP, "max_iterations"),
    (STEP, "step_type"),
    (STEP, "timestamp"),
    (VALID[8], "loop_id"),
    (VALID[8], "start_time"),
    (VALID[9], "loop_id"),
    (VALID[9], "task_id"),
    (VALID[10], "loop_id"),
    (VALID[10], "task_id"),
    (VALID[10], "outcome"),
    (VALID[11], "loop_id"),
    (VALID[11], "task_id"),
    (VALID[11], "outcome"),
    (VALID[12], "loop_id"),
    (VALID[12], "task_id"),
    (VALID[12], "outcome"),
    (VALID[13], "type"),
    (VALID[13], "loop_id"),
    (VALID[14], "type"),
    (VALID[15], "type"),
    (VALID[16], "id"),
    (VALID[16], "type"),
    (VALID[16], "signal"),
    (VALID[17], "type"),
    (VALID[17], "id"),
    (VALID[18], "content"),
]
EMPTY: dict[str, Any] = {"max_iterations": 0, "timestamp": None, "start_time": None}


@pytest.mark.parametrize("payload", VALID, ids=lambda payload: payload.NAME)
def test_what_is_complete_is_valid(payload: Keyed) -> None:
    payload.validate()
    assert type(payload).unmarshal_json(payload.marshal_json()) == payload


@pytest.mark.parametrize(
    ("payload", "field"), WRONG, ids=[f"{payload.NAME}.{field}" for payload, field in WRONG]
)
def test_a_field_that_is_missing_is_named(payload: Keyed, field: str) -> None:
    with pytest.raises(InvalidMessage, match=rf"{field}.* in an? {payload.NAME}") as caught:
        replace(payload, **{field: EMPTY.get(field, "")}).validate()
    assert caught.value.details["field"] == field


def test_a_value_that_is_wrong_is_named() -> None:
    with pytest.raises(InvalidMessage, match=r"type in a signal must be one of: cancel, .*; it is 'stop'"):
        replace(VALID[1], type="stop").validate()
    with pytest.raises(InvalidMessage, match="step_type in a trajectory_step must be one of"):
        Trajectory.new("l", 1.0).add_steps(replace(STEP, step_type="nap")).validate()
    with pytest.raises(InvalidRequest, match="function_name required"):
        replace(TASK, tool_choice=_nameless()).validate()


def _nameless() -> ToolChoice:
    """What a reader of ours refuses, and somebody may still build."""
    from msgspec.structs import force_setattr

    choice = ToolChoice("function", "f")
    force_setattr(choice, "tool_name", None)
    return choice


def test_payloads_know_their_types() -> None:
    for payload in VALID:
        if isinstance(payload, Payload):
            made = semstreams.payload_type(payload)
            assert (made.domain, made.category, made.version) == ("agentic", payload.NAME, "v1")


# Tasks and contexts


def test_what_a_task_says_of_itself_goes_into_the_loops_metadata() -> None:
    assert TASK.loop_metadata() == {"role": "general"}
    task = replace(
        TASK, metadata={"tenant": "blue", "role": "x"}, workflow_slug="w", max_depth=2, user_id="u"
    )
    assert task.loop_metadata() == {
        "tenant": "blue",
        "role": "general",
        "workflow_slug": "w",
        "max_depth": 2,
        "user_id": "u",
    }
    assert TaskMessage().loop_metadata() is None


def test_a_graph_is_gone_into_one_step_deep_where_nobody_says() -> None:
    assert [GraphContextSpec(depth=depth).effective_depth for depth in (0, 3)] == [1, 3]


# Signals


@given(
    st.builds(Signal, st.sampled_from(SEVEN), texts, texts, texts, maybe(filled_texts)),
    filled_texts,
)
def test_our_signals_come_back(signal: Signal, loop_id: str) -> None:
    sent = UserSignal.of(signal, loop_id, at=5.0, channel_type="cli", channel_id="tty")
    back = UserSignal.unmarshal_json(sent.marshal_json())
    assert back == sent
    assert (back.signal, back.loop_id, back.timestamp) == (signal, loop_id, 5.0)


@pytest.mark.parametrize(
    ("payload", "text", "call_id"),
    [
        (None, "", None),
        ("no", "no", None),
        ({"reason": "no"}, "no", None),
        ({"feedback": "more", "call_id": "c1"}, "more", "c1"),
        ({"other": 1}, "", None),
        ([1], "", None),
    ],
    ids=repr,
)
def test_what_a_signal_carries(payload: Any, text: str, call_id: str | None) -> None:
    signal = replace(VALID[1], payload=payload)
    assert isinstance(signal, UserSignal)
    assert (signal.signal.text, signal.signal.call_id) == (text, call_id)


def test_signals_that_are_none() -> None:
    with pytest.raises(InvalidMessage, match="payload in a signal should say its text"):
        _ = UserSignal(type="reject", payload={"reason": 3}).signal
    with pytest.raises(InvalidMessage, match="type in a signal must be one of"):
        _ = UserSignal(type="stop").signal
    with pytest.raises(InvalidMessage, match="type in a signal_message must be one of"):
        _ = SignalMessage(type="stop").signal
    assert SignalMessage(loop_id="l", type="cancel", reason="r").signal == Signal(SignalType.CANCEL, text="r")


# Filters

CALLS = [ToolCall("a", "look"), ToolCall("b", "send", '{"x": 1}'), ToolCall("c", "look")]


def test_a_filter_approves_rejects_and_changes() -> None:
    result = ToolCallFilterResult(
        (CALLS[0], ToolCall("b", "send", '{"x": 2}')), (ToolCallRejection(CALLS[2], "too often"),)
    )
    assert result.verdicts(CALLS) == (
        Verdict(0, allowed=True),
        Verdict(1, allowed=True, args_json='{"x": 2}'),
        Verdict(2, allowed=False, reason="too often"),
    )


def test_what_a_filter_says_nothing_about_does_not_run() -> None:
    silent = Verdict(2, allowed=False, reason="the filter said nothing about it")
    assert ToolCallFilterResult((CALLS[0],)).verdicts(CALLS, (0, 2)) == (Verdict(0, allowed=True), silent)


@pytest.mark.parametrize(
    ("result", "said"),
    [
        (ToolCallFilterResult((ToolCall("z", "look"),)), "'z', but it is none of the calls"),
        (
            ToolCallFilterResult((CALLS[0],), (ToolCallRejection(CALLS[0], ""),)),
            "it was decided about before",
        ),
        (ToolCallFilterResult((ToolCall("a", "send"),)), "may change arguments, not tools"),
    ],
)
def test_what_a_filter_may_not_decide(result: ToolCallFilterResult, said: str) -> None:
    with pytest.raises(InvalidMessage, match=said):
        result.verdicts(CALLS)
