"""The timeline of a request: pagantic's observability events, each with the ids that tie it to its request.

They are views of runtime events (`timeline_event`), and so of a journal. An event log holds all that they say
(`event_log`), so that `timeline` gives them back from it alone. They stand in the order in which they were
told: a cause always before what it caused.
"""

from __future__ import annotations

from hashlib import sha256
from typing import TypeAlias

from msgspec import Struct, json

from flyball.core.correlation import Correlation
from flyball.core.messages import FinishReason, ResultKind, ToolCall
from flyball.core.phases import Phase
from flyball.core.usage import Usage
from flyball.inference.request import Result
from flyball.observe.events import (
    ModelRequestedEvent,
    ModelRespondedEvent,
    PhaseChangedEvent,
    RuntimeEvent,
    ToolCalledEvent,
    ToolEndedEvent,
)
from flyball.observe.tool_outcome import arguments_of, code_of


class _TimelineEvent(Struct, frozen=True, kw_only=True, tag_field="event"):
    at: float
    correlation: Correlation


class InferenceStartEvent(_TimelineEvent, frozen=True, kw_only=True, tag="inference_start"):
    """A model call began: what the loop asks for, before middleware makes something else of it."""

    message_count: int
    tool_defs_count: int
    schema_present: bool
    grammar_present: bool
    temperature: float | None


class InferenceEndEvent(_TimelineEvent, frozen=True, kw_only=True, tag="inference_end"):
    """A model call ended; the finish reason is `stop`, `tool` or `error`."""

    duration_ms: int
    tokens_in: int
    tokens_out: int
    finish_reason: str
    tool_call_count: int


class ToolStartEvent(_TimelineEvent, frozen=True, kw_only=True, tag="tool_start"):
    """A tool call began. Calls with the same arguments have the same hash, however they were written."""

    tool_name: str
    tool_call_id: str
    args_hash: str


class ToolEndEvent(_TimelineEvent, frozen=True, kw_only=True, tag="tool_end"):
    """A tool call ended, a deferred one when its result came; a failed one has a code of the taxonomy."""

    tool_name: str
    tool_call_id: str
    duration_ms: int
    success: bool
    error_code: str = ""


class LifecycleTransitionEvent(_TimelineEvent, frozen=True, kw_only=True, tag="lifecycle_transition"):
    """The loop went from one phase to another."""

    from_state: Phase
    to_state: Phase
    attempt: int
    reason: str


TimelineEvent: TypeAlias = (
    InferenceStartEvent | InferenceEndEvent | ToolStartEvent | ToolEndEvent | LifecycleTransitionEvent
)


def timeline_event(event: RuntimeEvent) -> TimelineEvent | None:
    """A runtime event as the timeline has it; None of one that it has not."""
    kind = type(event)
    if kind is ModelRequestedEvent:
        return _inference_start(event)  # pyright: ignore[reportArgumentType] - it is one
    if kind is ModelRespondedEvent:
        return _inference_end(event)  # pyright: ignore[reportArgumentType]
    if kind is ToolCalledEvent:
        return _tool_start(event)  # pyright: ignore[reportArgumentType]
    if kind is ToolEndedEvent:
        return _tool_end(event)  # pyright: ignore[reportArgumentType]
    return _transition(event) if isinstance(event, PhaseChangedEvent) else None


def args_hash(args_json: str) -> str:
    """The hash of a call's arguments: of what they say, and not of how they are written."""
    arguments = json.encode(arguments_of(ToolCall("", "", args_json)), order="sorted")
    return sha256(arguments).hexdigest()[:16]


def finish_reason(event: ModelRespondedEvent) -> FinishReason:
    """Why a model stopped: told from the answer where its engine did not say."""
    if event.error or event.failure is not None or event.response is None:
        return FinishReason.ERROR
    return Result(event.response).finish_reason


def succeeded(event: ToolEndedEvent) -> bool:
    """Whether a tool call came to what it was made for."""
    return event.result.status is ResultKind.RETURN and not event.result.is_error


def _inference_start(event: ModelRequestedEvent) -> InferenceStartEvent:
    return InferenceStartEvent(
        at=event.at,
        correlation=event.correlation,
        message_count=len(event.messages),
        tool_defs_count=event.tool_defs_count,
        schema_present=event.schema_present,
        grammar_present=event.grammar_present,
        temperature=event.settings.effective_temperature,
    )


def _inference_end(event: ModelRespondedEvent) -> InferenceEndEvent:
    message = event.response
    usage = (message.usage if message is not None else None) or Usage()
    return InferenceEndEvent(
        at=event.at,
        correlation=event.correlation,
        duration_ms=round(event.duration * 1000),
        tokens_in=usage.input_tokens,
        tokens_out=usage.output_tokens,
        finish_reason=finish_reason(event).event_value,
        tool_call_count=len(message.tool_calls) if message is not None else 0,
    )


def _tool_start(event: ToolCalledEvent) -> ToolStartEvent:
    return ToolStartEvent(
        at=event.called_at,
        correlation=event.correlation,
        tool_name=event.tool_name,
        tool_call_id=event.tool_call_id,
        args_hash=args_hash(event.args_json),
    )


def _tool_end(event: ToolEndedEvent) -> ToolEndEvent:
    success = succeeded(event)
    return ToolEndEvent(
        at=event.at,
        correlation=event.correlation,
        tool_name=event.tool_name,
        tool_call_id=event.tool_call_id,
        duration_ms=round(event.duration * 1000),
        success=success,
        error_code="" if success else code_of(event.result) or "",
    )


def _transition(event: PhaseChangedEvent) -> LifecycleTransitionEvent:
    return LifecycleTransitionEvent(
        at=event.at,
        correlation=event.correlation,
        from_state=event.from_state,
        to_state=event.to_state,
        attempt=event.attempt,
        reason=event.reason,
    )
