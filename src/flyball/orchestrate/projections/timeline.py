"""The timeline of a loop: pagantic's observability events, each with the ids that tie it to its request.

They stand in the order of their times, a cause always before what it caused. When something began is told
from when it ended and how long it took. A call that was deferred ends when its result comes. A model call or
a tool call that was still running when the loop ended is not here: nothing of it was recorded.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from hashlib import sha256
from typing import TypeAlias

from msgspec import Struct, json

from flyball.core.correlation import Correlation
from flyball.core.events import AnswerReviewed, CallsJudged, Event, ModelAnswered, ModelFailed, ToolReturned
from flyball.core.messages import FinishReason, ResultKind, ToolCall
from flyball.core.spec import LoopSpec
from flyball.core.usage import Usage
from flyball.inference.request import Request, Result
from flyball.orchestrate.correlation import event_correlation, loop_correlation
from flyball.orchestrate.lifecycle import Phase
from flyball.orchestrate.lifecycle.execution import course
from flyball.orchestrate.machine import inference_owed
from flyball.orchestrate.projections.tool_calls import arguments_of, calls_to_run, code_of
from flyball.orchestrate.requests import request_parts
from flyball.orchestrate.sent import Asking


class _TimelineEvent(Struct, frozen=True, kw_only=True, tag_field="event"):
    at: float
    correlation: Correlation


class InferenceStartEvent(_TimelineEvent, frozen=True, kw_only=True, tag="inference_start"):
    """A model call began."""

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
    """A tool call ended; a failed one has a code of the taxonomy."""

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


def timeline(events: Iterable[Event]) -> list[TimelineEvent]:
    """The timeline of a journal.

    Raises:
        JournalCorrupt: the events are no journal.
    """
    return sorted(_told(events), key=_time)


def _time(event: TimelineEvent) -> float:
    return event.at


def _told(events: Iterable[Event]) -> Iterator[TimelineEvent]:
    """What each event tells, the cause before the effect. Times never go back, though a clock may have."""
    now = 0.0
    calls: tuple[ToolCall, ...] = ()
    spec = LoopSpec()
    parts = request_parts(spec)
    asking: Asking | None = None
    owed_since = called_at = 0.0
    since: dict[int, float] = {}
    for moves, event, state in course(events):
        now = max(now, event.at)
        if isinstance(event, ModelAnswered | AnswerReviewed | CallsJudged):
            calls = calls_to_run(event, calls)
            called_at, since = now, {}
        ids = event_correlation(event, state, tuple([call.id for call in calls]))
        if isinstance(event, ModelAnswered | ModelFailed) and asking is not None:
            *_, request = asking.sent(event.around) or (asking.request,)
            yield _inference_start(request, ids, max(owed_since, now - event.duration))
            yield _inference_end(event, ids, now)
        elif isinstance(event, ToolReturned):
            began = since.pop(event.index, None)
            took = event.duration if began is None else now - began
            if began is None:
                began = max(called_at, now - took)
                yield _tool_start(calls[event.index], ids, began)
            if event.result.status is ResultKind.DEFERRED:
                since[event.index] = began
            else:
                yield _tool_end(event, ids, now, took)
        for move in moves:
            yield LifecycleTransitionEvent(
                at=now,
                correlation=loop_correlation(state),
                from_state=move.from_,
                to_state=move.to,
                attempt=move.attempt,
                reason=move.reason,
            )
        called = inference_owed(state)
        if called is not None:
            if state.spec is not spec:
                spec = state.spec
                parts = request_parts(spec)
            asking, owed_since = Asking.of(state, called, parts), now


def _inference_start(request: Request, ids: Correlation, at: float) -> InferenceStartEvent:
    return InferenceStartEvent(
        at=at,
        correlation=ids,
        message_count=len(request.messages),
        tool_defs_count=len(request.tools),
        schema_present=request.output is not None or not request.allows_text,
        grammar_present=request.grammar is not None,
        temperature=request.settings.effective_temperature,
    )


def _inference_end(event: ModelAnswered | ModelFailed, ids: Correlation, at: float) -> InferenceEndEvent:
    message = event.message if isinstance(event, ModelAnswered) else event.partial
    finish = FinishReason.ERROR
    if isinstance(event, ModelAnswered):
        finish = Result(event.message).finish_reason
    usage = (message.usage if message is not None else None) or Usage()
    return InferenceEndEvent(
        at=at,
        correlation=ids,
        duration_ms=round(event.duration * 1000),
        tokens_in=usage.input_tokens,
        tokens_out=usage.output_tokens,
        finish_reason=finish.event_value,
        tool_call_count=len(message.tool_calls) if message is not None else 0,
    )


def _tool_start(call: ToolCall, ids: Correlation, at: float) -> ToolStartEvent:
    arguments = json.encode(arguments_of(call), order="sorted")
    return ToolStartEvent(
        at=at,
        correlation=ids,
        tool_name=call.name,
        tool_call_id=call.id,
        args_hash=sha256(arguments).hexdigest()[:16],
    )


def _tool_end(event: ToolReturned, ids: Correlation, at: float, took: float) -> ToolEndEvent:
    result = event.result
    success = result.status is ResultKind.RETURN and not result.is_error
    return ToolEndEvent(
        at=at,
        correlation=ids,
        tool_name=result.name,
        tool_call_id=ids.tool_call_id,
        duration_ms=round(took * 1000),
        success=success,
        error_code="" if success else code_of(result) or "",
    )
