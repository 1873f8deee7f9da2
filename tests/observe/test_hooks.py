"""Hooks: which function is called with what."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import msgspec
import pytest

from flyball import Hook, RunContext
from flyball.core.compaction import ContextCompaction
from flyball.core.context import RunFacts
from flyball.core.errors import EngineError, UserError
from flyball.core.messages import ToolResult, assistant, user
from flyball.observe import events
from flyball.observe.events import RuntimeEvent
from flyball.observe.hooks import Hook as Defined

OF: dict[str, Any] = {"run_id": "one", "parent_run_id": "above"}
MESSAGE, ASKED = assistant("hi"), user("go")
FAILURE = EngineError("down").record()
STATS = ContextCompaction("window", 9, 3, 900, 300)
RESULT, WRONG = ToolResult("c1", "look", {"seen": 1}), ToolResult("c1", "look", error="dark")

CALLS: list[tuple[str, RuntimeEvent, tuple[Any, ...]]] = [
    ("on_run_start", events.RunStartedEvent(**OF, prompt="go", started_at=1.0), ("go",)),
    (
        "on_run_end",
        events.RunCompletedEvent(**OF, success=True, started_at=1.0, completed_at=2.0),
        ((ASKED,), None),
    ),
    ("on_turn_start", events.TurnStartedEvent(**OF, at=1.0, turn=3), (3,)),
    ("on_turn_end", events.TurnEndedEvent(**OF, at=1.0, turn=3, response=MESSAGE), (3, MESSAGE)),
    ("on_turn_end", events.TurnEndedEvent(**OF, at=1.0, turn=3), (3, None)),
    (
        "on_model_request",
        events.ModelRequestedEvent(**OF, at=1.0, turn=3, request_id="r", messages=(ASKED,)),
        ((ASKED,),),
    ),
    (
        "on_model_response",
        events.ModelRespondedEvent(**OF, at=1.0, turn=3, request_id="r", response=MESSAGE),
        (MESSAGE,),
    ),
    (
        "on_tool_start",
        events.ToolCalledEvent(**OF, tool_call_id="c1", tool_name="look", args_json="{}", called_at=1.0),
        ("c1", "look", "{}"),
    ),
    (
        "on_tool_end",
        events.ToolEndedEvent(**OF, at=1.0, turn=3, tool_call_id="c1", tool_name="look", result=RESULT),
        ("c1", "look", '{"seen":1}', None),
    ),
    (
        "on_tool_end",
        events.ToolEndedEvent(**OF, at=1.0, turn=3, tool_call_id="c1", tool_name="look", result=WRONG),
        ("c1", "look", "dark", "dark"),
    ),
    (
        "on_guardrail_evaluated",
        events.GuardrailEvaluatedEvent(**OF, at=1.0, turn=0, name="g", passed=True),
        ("g", True, None),
    ),
    (
        "on_output_validation",
        events.OutputValidatedEvent(**OF, at=1.0, turn=3, passed=False, error="no"),
        (False, "no"),
    ),
    ("on_output_repair", events.OutputRepairedEvent(**OF, at=1.0, turn=3, succeeded=True), (True, None)),
    (
        "on_run_condition_checked",
        events.RunConditionCheckedEvent(**OF, at=1.0, turn=3, stopped=True, reason="enough"),
        (True, "enough"),
    ),
    ("on_context_compaction", events.ContextCompactedEvent(**OF, at=1.0, turn=3, stats=STATS), (STATS,)),
]
NAMES = [field.name for field in fields(Defined) if field.name != "name"]


def context() -> RunContext[Any]:
    return RunContext(None, RunFacts("one", history=(ASKED,)))


@pytest.mark.parametrize(("name", "event", "told"), CALLS, ids=[f"{n}-{c[0]}" for n, c in enumerate(CALLS)])
def test_each_is_called_with_its_own(name: str, event: RuntimeEvent, told: tuple[Any, ...]) -> None:
    called: list[tuple[str, Any]] = []

    def noting(which: str) -> Any:
        def note(*given: Any) -> None:
            called.append((which, given))

        return note

    ctx = context()
    Hook(**{one: noting(one) for one in NAMES}).tell(event, lambda: ctx)
    assert called == [(name, (ctx, *told))]


@pytest.mark.parametrize("event", [call[1] for call in CALLS], ids=[str(n) for n in range(len(CALLS))])
def test_what_is_not_set_is_not_called_and_no_context_is_made(event: RuntimeEvent) -> None:
    def never() -> RunContext[Any]:
        raise AssertionError("nobody asked for it")

    assert Hook().tell(event, never) is None


def test_the_runs_failure_is_the_exception_that_it_raises() -> None:
    ended: list[Any] = []
    event = events.RunCompletedEvent(
        **OF, success=False, error="down", started_at=1.0, completed_at=2.0, failure=FAILURE
    )
    Hook(on_run_end=lambda _, messages, error: ended.append(error)).tell(event, context)
    assert isinstance(ended[0], EngineError)
    assert ended[0].message == "down"


def test_a_model_call_that_failed_has_no_response_to_tell() -> None:
    event = events.ModelRespondedEvent(**OF, at=1.0, turn=1, request_id="r", response=None, error="down")
    assert Hook(on_model_response=lambda *_: 1 / 0).tell(event, context) is None  # pyright: ignore[reportUnknownLambdaType, reportArgumentType]


def test_all_thirteen_are_there_and_each_hears_of_something() -> None:
    assert len(NAMES) == 13
    assert {call[0] for call in CALLS} == set(NAMES)
    kinds = {type(call[1]) for call in CALLS}
    unheard = {
        events.PhaseChangedEvent,
        events.ContextPreparedEvent,
        events.StepStartedEvent,
        events.StepEndedEvent,
    }
    assert kinds == set(RuntimeEvent.__subclasses__()) - unheard


def test_what_cannot_be_called_is_refused() -> None:
    with pytest.raises(UserError, match=r"Hook\(on_run_end=…\) takes a function, not 'print'"):
        Hook(on_run_end="print")  # pyright: ignore[reportArgumentType]
    assert repr(Hook(on_run_end=print, name="mine")) == "<Hook mine: on_run_end>"


@pytest.mark.parametrize("event", [call[1] for call in CALLS], ids=[str(n) for n in range(len(CALLS))])
def test_events_are_data(event: RuntimeEvent) -> None:
    """They can be written as JSON and read again, and say what they are, of which run, and when."""
    written = msgspec.json.decode(data := msgspec.json.encode(event))
    assert written["type"] == event.type
    assert (written["run_id"], written["parent_run_id"]) == ("one", "above")
    assert written[event.MOMENT] == event.occurred_at
    assert msgspec.json.decode(data, type=type(event)) == event
    assert msgspec.json.encode(msgspec.json.decode(data, type=type(event))) == data


def test_gollems_three_have_gollems_fields() -> None:
    started, completed, called = events.RunStartedEvent, events.RunCompletedEvent, events.ToolCalledEvent
    assert {"run_id", "parent_run_id", "prompt", "started_at"} < set(started.__struct_fields__)
    assert {"success", "error", "started_at", "completed_at"} < set(completed.__struct_fields__)
    assert {"tool_call_id", "tool_name", "args_json", "called_at"} < set(called.__struct_fields__)
    tags = [kind.__struct_config__.tag for kind in (started, completed, called)]
    assert tags == ["run_started", "run_completed", "tool_called"]
