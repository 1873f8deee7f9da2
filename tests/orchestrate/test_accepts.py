"""What does not fit is dropped for what it says, too, and not only for where it comes."""

from __future__ import annotations

from typing import Any

import pytest

from flyball.core.events import (
    VERSION,
    CallsJudged,
    Event,
    ModelAnswered,
    Started,
    TimePassed,
    ToolReturned,
    TurnSettled,
    Verdict,
)
from flyball.core.limits import Limits
from flyball.core.messages import Message, Role, Text, ToolCall, ToolResult, user
from flyball.core.spec import LoopSpec, OutputMode, OutputSpec
from flyball.core.tools import ToolDefinition, ToolKind, ToolSpec
from flyball.orchestrate.call_ids import told_apart
from flyball.orchestrate.machine import accepts, apply, start
from flyball.orchestrate.state import State

SCHEMA: dict[str, Any] = {"type": "object", "properties": {}}
PAY = ToolSpec(ToolDefinition("pay", SCHEMA), approval=True)
LOOK = ToolSpec(ToolDefinition("look", SCHEMA))
FINAL = ToolDefinition("final_result", SCHEMA, kind=ToolKind.OUTPUT)


def begun(spec: LoopSpec, *then: Event) -> State:
    state = start(Started(1.0, VERSION, "loop", spec, user("hi")))
    for event in then:
        assert accepts(state, event), event
        apply(state, event)
    return state


def answered(*parts: Text | ToolCall) -> ModelAnswered:
    return ModelAnswered(2.0, 1, Message(Role.ASSISTANT, parts))


def two_payments() -> State:
    spec = LoopSpec(tools={"pay": PAY, "look": LOOK}, judges=True)
    return begun(spec, answered(ToolCall("a", "pay"), ToolCall("b", "pay"), ToolCall("c", "look")))


@pytest.mark.parametrize(
    "verdicts",
    [
        (),
        (Verdict(0, allowed=True),),
        (Verdict(0, allowed=False), Verdict(0, allowed=False)),
        (Verdict(0, allowed=True), Verdict(1, allowed=True), Verdict(2, allowed=True)),
        (Verdict(0, allowed=True), Verdict(7, allowed=True)),
        (Verdict(-1, allowed=False), Verdict(0, allowed=True)),
    ],
    ids=["none", "too few", "doubled", "too many", "elsewhere", "negative"],
)
def test_every_call_that_needs_it_is_judged_once(verdicts: tuple[Verdict, ...]) -> None:
    state = two_payments()
    assert state.at == "judge"
    assert not accepts(state, CallsJudged(3.0, 1, verdicts))
    assert accepts(state, CallsJudged(3.0, 1, (Verdict(1, allowed=True), Verdict(0, allowed=False))))


@pytest.mark.parametrize(
    "settled",
    [
        TurnSettled(3.0, 1, accepted=True),
        TurnSettled(3.0, 1, accepted=True, index=9),
        TurnSettled(3.0, 1, accepted=False),
    ],
    ids=["no index", "another index", "no feedback"],
)
def test_an_output_is_settled_by_the_call_that_carries_it(settled: TurnSettled) -> None:
    output = OutputSpec(mode=OutputMode.TOOL, tools=(FINAL,), allows_text=False, checked=True)
    state = begun(LoopSpec(output=output), answered(ToolCall("a", "final_result")))
    assert not accepts(state, settled)
    assert accepts(state, TurnSettled(3.0, 1, accepted=True, index=0))


def test_text_is_settled_without_an_index() -> None:
    state = begun(LoopSpec(output=OutputSpec(checked=True)), answered(Text("hello")))
    assert not accepts(state, TurnSettled(3.0, 1, accepted=True, index=0))
    assert accepts(state, TurnSettled(3.0, 1, accepted=True))


def test_a_result_answers_its_own_call() -> None:
    state = begun(LoopSpec(tools={"look": LOOK}), answered(ToolCall("a", "look")))
    assert not accepts(state, ToolReturned(3.0, 1, 0, ToolResult("b", "look", "ok")))
    assert accepts(state, ToolReturned(3.0, 1, 0, ToolResult("a", "look", "ok")))


def test_an_answer_is_the_assistants_and_its_calls_can_be_told_apart() -> None:
    state = begun(LoopSpec(tools={"look": LOOK}))
    assert not accepts(state, ModelAnswered(2.0, 1, Message(Role.USER, (Text("hello"),))))
    assert not accepts(state, answered(ToolCall("a", "look"), ToolCall("a", "look")))
    assert accepts(state, answered(ToolCall("a", "look"), ToolCall("b", "look")))


def test_call_ids_differ_over_the_whole_history() -> None:
    spec = LoopSpec(tools={"look": LOOK})
    returned = ToolReturned(3.0, 1, 0, ToolResult("a", "look", "ok"))
    state = begun(spec, answered(ToolCall("a", "look")), returned)
    again = ModelAnswered(
        4.0, 2, Message(Role.ASSISTANT, (Text("hm"), ToolCall("a", "look"), ToolCall("a~2", "look")))
    )
    assert not accepts(state, again)
    event = told_apart(again, state.ids)
    assert isinstance(event, ModelAnswered)
    assert [call.id for call in event.message.tool_calls] == ["a~3", "a~2"]
    assert event.notes == ("the call id 'a' was used before and is now 'a~3'",)
    assert accepts(state, event)
    assert told_apart(event, state.ids) is event


def test_time_passes_when_it_has() -> None:
    state = begun(LoopSpec(limits=Limits(timeout=100.0)))
    assert not accepts(state, TimePassed(2.0))
    assert accepts(state, TimePassed(101.0))
