"""The course of an agent's loop, from what is told of it (`runtime_events`)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeAlias

from flyball.core.encodable import as_text
from flyball.core.events import ChildEnded, ChildStarted, Event, Forked, ToolReturned
from flyball.core.messages import ResultKind
from flyball.core.phases import Phase
from flyball.observe.events import (
    ModelRequestedEvent,
    ModelRespondedEvent,
    PhaseChangedEvent,
    RuntimeEvent,
    ToolCalledEvent,
    ToolEndedEvent,
)
from flyball.observe.timeline import finish_reason, succeeded
from flyball.orchestrate.projections.course.not_run import NotRun
from flyball.orchestrate.projections.course.step import (
    ENDS,
    SHOWN,
    CourseStep,
    StepKind,
    ordered,
    said_to_it,
)
from flyball.orchestrate.projections.runtime_events import Narrator
from flyball.orchestrate.projections.shortened import one_line, several
from flyball.orchestrate.projections.tool_calls import tool_calls_made
from flyball.orchestrate.tool_record import ToolCallRecord

_Begun: TypeAlias = ModelRequestedEvent | ToolCalledEvent
_OVER = frozenset(ENDS.values())


def loop_course(events: Sequence[Event]) -> tuple[CourseStep, ...]:
    """The steps of an agent's loop; see `course`."""
    gathered, narrator = _Gathered(events), Narrator()
    beside: list[CourseStep] = []
    for before, event in zip((None, *events), events, strict=False):
        for told in narrator.told(event):
            gathered.steps += gathered.step_of(told)
        assert narrator.state is not None, "an event was folded"
        if (step := _moment(event, before)) is not None:
            beside.append(step)
        beside += gathered.not_run.steps(event, narrator.state)  # who refuses a call is told before it
        if isinstance(event, Forked):
            gathered.begun.clear()  # what was under way there is none of its own
    gathered.steps += [gathered.open(one, None) for one in gathered.begun.values()]
    return ordered([*gathered.steps, *beside])


def _moment(event: Event, before: Event | None) -> CourseStep | None:
    if isinstance(event, ChildStarted):
        about = f"{event.agent} as {event.loop_id}"
        return CourseStep(event.at, StepKind.CHILD, "child", about, loop_id=event.loop_id)
    if isinstance(event, ChildEnded):
        about = f"{event.loop_id}: {several(event.requests, 'model call')}"
        return CourseStep(
            event.at,
            StepKind.CHILD_ENDED,
            "child over",
            about,
            call_id=event.call_id,
            loop_id=event.loop_id,
        )
    return said_to_it(event, before)


class _Gathered:
    """The steps so far, and the calls that have begun and not ended, by their spans."""

    def __init__(self, events: Sequence[Event]) -> None:
        self.steps: list[CourseStep] = []
        self.begun: dict[str, _Begun] = {}
        self._calls = 0
        self.not_run = NotRun()
        self._records = {record.call_id: record for record in tool_calls_made(events)}
        self._outside = {
            event.result.call_id
            for event in events
            if isinstance(event, ToolReturned) and event.result.status is ResultKind.DEFERRED
        }

    def step_of(self, told: RuntimeEvent) -> Iterator[CourseStep]:
        """The steps that are complete with what is told."""
        if isinstance(told, ModelRequestedEvent | ToolCalledEvent):
            self.begun[told.correlation.span_id] = told
            if isinstance(told, ToolCalledEvent):
                self.not_run.begun.add(told.tool_call_id)
        elif isinstance(told, ModelRespondedEvent):
            start = self.begun.pop(told.correlation.span_id, None)
            self._calls += 1
            yield self._model_call(start if isinstance(start, ModelRequestedEvent) else None, told)
        elif isinstance(told, ToolEndedEvent):
            start = self.begun.pop(told.correlation.span_id, None)
            yield self._tool_call(start if isinstance(start, ToolCalledEvent) else None, told)
        elif isinstance(told, PhaseChangedEvent):
            if told.to_state in _OVER:
                yield from [self.open(one, told.at) for one in self.begun.values()]
                self.begun.clear()
                about = one_line(told.reason, 200)
                ok = told.to_state is Phase.COMPLETE
                yield CourseStep(told.at, StepKind.END, str(told.to_state), about, ok=ok, phase=told.to_state)
            elif told.reason.startswith("retry"):
                about = one_line(told.reason.removeprefix("retry: "), 200)
                yield CourseStep(told.at, StepKind.CHECK, "asked again", about, ok=False)

    def _model_call(self, start: ModelRequestedEvent | None, end: ModelRespondedEvent) -> CourseStep:
        reason, message = finish_reason(end).event_value, end.response
        count = 0 if message is None else len(message.tool_calls)
        came = {"stop": "answer", "tool": several(count, "tool call"), "error": "failed"}[reason]
        return CourseStep(
            _since(None if start is None else start.at, end.at, end.duration),
            StepKind.MODEL_CALL,
            f"model call {self._calls}",
            f"{_purpose(end)}{_sent(start)} → {came}",
            end.duration,
            reason != "error",
            usage=None if message is None else message.usage,
            turn=end.turn,
            model=end.model,
        )

    def _tool_call(self, start: ToolCalledEvent | None, end: ToolEndedEvent) -> CourseStep:
        took, about = end.duration, ""
        if start is not None and end.tool_call_id in self._outside:
            took = max(end.at - start.called_at, 0.0)
        if (record := self._records.get(end.tool_call_id)) is not None:
            came = record.error if record.error is not None else as_text(record.result)
            about = f"{_given(record)} → {one_line(came, SHOWN)}"
        return CourseStep(
            _since(None if start is None else start.called_at, end.at, took),
            StepKind.TOOL_CALL,
            end.tool_name,
            about,
            took,
            succeeded(end),
            turn=end.turn,
            call_id=end.tool_call_id,
        )

    def open(self, start: _Begun, over: float | None) -> CourseStep:
        """A call that has begun and has no end: it is under way, or the loop was over before it was."""
        ok = None if over is None else False
        if isinstance(start, ModelRequestedEvent):
            return CourseStep(
                start.at,
                StepKind.MODEL_CALL,
                f"model call {self._calls + 1}",
                f"{_purpose(start)}{_sent(start)} → {'under way' if over is None else 'cut off'}",
                _until(start.at, over),
                ok,
                ended=False,
                turn=start.turn,
                model=start.model,
            )
        record = self._records.get(start.tool_call_id)
        given = one_line(start.args_json, SHOWN) if record is None else _given(record)
        outside = start.tool_call_id in self._outside
        if outside:
            waits = f"waits for its result from outside: call {start.tool_call_id}"
            came = waits if over is None else "its result never came"
        else:
            came = "under way" if over is None else "cut off"
        return CourseStep(
            start.called_at,
            StepKind.WAIT if outside else StepKind.TOOL_CALL,
            start.tool_name,
            f"{given} → {came}",
            _until(start.called_at, over),
            ok,
            ended=False,
            turn=start.turn,
            call_id=start.tool_call_id,
        )


def _since(begun: float | None, ended: float, took: float) -> float:
    """When a call really began: it was owed from its start on, and may have waited to be made."""
    return ended - took if begun is None else max(begun, ended - took)


def _until(begun: float, over: float | None) -> float | None:
    return None if over is None else max(over - begun, 0.0)


def _given(record: ToolCallRecord) -> str:
    return one_line(as_text(record.arguments), SHOWN)


def _sent(start: ModelRequestedEvent | None) -> str:
    if start is None:
        return "sent"
    sent = several(len(start.messages), "message")
    sent += f", {several(start.tool_defs_count, 'tool')}" if start.tool_defs_count else ""
    sent += ", schema" if start.schema_present else ""
    return f"{sent}, grammar" if start.grammar_present else sent


def _purpose(told: ModelRequestedEvent | ModelRespondedEvent) -> str:
    """What a model call is made for, if not for a turn."""
    return "summary: " if told.purpose == "compact" else ""
