"""Hook: functions that are called as a run goes on, one for each thing that can happen."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any, TypeAlias

from flyball.core.compaction import ContextCompaction
from flyball.core.context import RunContext
from flyball.core.errors import FlyballError, UserError
from flyball.core.messages import Message
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
from flyball.observe.watcher import Contexts, Watcher

Told: TypeAlias = Awaitable[None] | None
Ctx: TypeAlias = RunContext[Any]


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Hook(Watcher):
    """Functions to call as a run goes on: `Agent(features=[Hook(on_tool_start=...)])`. All are optional.

    Each may be async, and gets the RunContext first: the run as it stood when the thing happened, with its
    dependencies, messages and usage, and `snapshot()`. Hooks are called in line, in the order in which they
    were given. They watch: what one returns is not looked at, and what it raises is logged.

    `error` is what is wrong, in words, or None; at the run's end it is the exception that `run` raises.
    """

    on_run_start: Callable[[Ctx, str], Told] | None = None
    """(ctx, prompt)"""
    on_run_end: Callable[[Ctx, tuple[Message, ...], FlyballError | None], Told] | None = None
    """(ctx, messages, error), however it ended."""
    on_model_request: Callable[[Ctx, tuple[Message, ...]], Told] | None = None
    """(ctx, messages), before each model call: what is sent, but for what middleware does to it."""
    on_model_response: Callable[[Ctx, Message], Told] | None = None
    """(ctx, response), after each answer; a call that failed has none."""
    on_tool_start: Callable[[Ctx, str, str, str], Told] | None = None
    """(ctx, tool_call_id, tool_name, args_json), before a tool runs."""
    on_tool_end: Callable[[Ctx, str, str, str, str | None], Told] | None = None
    """(ctx, tool_call_id, tool_name, result, error), once there is a result: what the model reads."""
    on_turn_start: Callable[[Ctx, int], Told] | None = None
    """(ctx, turn)"""
    on_turn_end: Callable[[Ctx, int, Message | None], Told] | None = None
    """(ctx, turn, response); None where there was no answer."""
    on_guardrail_evaluated: Callable[[Ctx, str, bool, str | None], Told] | None = None
    """(ctx, name, passed, error), of input and turn guardrails."""
    on_output_validation: Callable[[Ctx, bool, str | None], Told] | None = None
    """(ctx, passed, error), of outputs that are read as a type or validated."""
    on_output_repair: Callable[[Ctx, bool, str | None], Told] | None = None
    """(ctx, succeeded, error), where an answer was put right, or a model was asked to."""
    on_run_condition_checked: Callable[[Ctx, bool, str], Told] | None = None
    """(ctx, stopped, reason), where a condition ends the run."""
    on_context_compaction: Callable[[Ctx, ContextCompaction], Told] | None = None
    """(ctx, stats), where what is sent was made shorter."""
    name: str = "hook"
    """What it is called in the log."""

    def __post_init__(self) -> None:
        """Check that what was given can be called."""
        for field in fields(self):
            given = getattr(self, field.name)
            if field.name != "name" and given is not None and not callable(given):
                raise UserError(f"Hook({field.name}=…) takes a function, not {given!r}")

    def __repr__(self) -> str:
        given = [field.name for field in fields(self) if getattr(self, field.name) is not None]
        return f"<Hook {self.name}: {', '.join([name for name in given if name != 'name'])}>"

    def tell(self, event: RuntimeEvent, context: Contexts) -> Told:
        """See `Watcher.tell`."""
        if (call := _CALLS.get(type(event))) is None:
            return None
        name, arguments = call
        function = getattr(self, name)
        if function is None or (type(event) is ModelRespondedEvent and event.response is None):
            return None

        ctx = context()
        return function(ctx, *arguments(ctx, event))


def _arguments(*names: str) -> Callable[[Ctx, Any], tuple[Any, ...]]:
    """What a function is told of an event: these fields of it; nothing for an error is None."""
    return lambda _, event: tuple(
        [getattr(event, name) or None if name == "error" else getattr(event, name) for name in names]
    )


def _run_end(ctx: Ctx, event: RunCompletedEvent) -> tuple[Any, ...]:
    return ctx.messages, None if event.failure is None else event.failure.exception()


def _tool_end(_: Ctx, event: ToolEndedEvent) -> tuple[Any, ...]:
    return event.tool_call_id, event.tool_name, event.result.text, event.result.error


_CALLS: Mapping[type[RuntimeEvent], tuple[str, Callable[[Ctx, Any], tuple[Any, ...]]]] = {
    RunStartedEvent: ("on_run_start", _arguments("prompt")),
    RunCompletedEvent: ("on_run_end", _run_end),
    TurnStartedEvent: ("on_turn_start", _arguments("turn")),
    TurnEndedEvent: ("on_turn_end", _arguments("turn", "response")),
    ModelRequestedEvent: ("on_model_request", _arguments("messages")),
    ModelRespondedEvent: ("on_model_response", _arguments("response")),
    ToolCalledEvent: ("on_tool_start", _arguments("tool_call_id", "tool_name", "args_json")),
    ToolEndedEvent: ("on_tool_end", _tool_end),
    GuardrailEvaluatedEvent: ("on_guardrail_evaluated", _arguments("name", "passed", "error")),
    OutputValidatedEvent: ("on_output_validation", _arguments("passed", "error")),
    OutputRepairedEvent: ("on_output_repair", _arguments("succeeded", "error")),
    RunConditionCheckedEvent: ("on_run_condition_checked", _arguments("stopped", "reason")),
    ContextCompactedEvent: ("on_context_compaction", _arguments("stats")),
}
"""Which function hears of which event, and what it is told."""
