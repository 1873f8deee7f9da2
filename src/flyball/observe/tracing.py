"""A run's trace, from what is told of the run; and SemStreams' view of it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, cast

from msgspec import to_builtins

from flyball.core.errors import IncompleteToolCall
from flyball.core.events import Outcome
from flyball.core.forms.flat import RAW_ARGUMENTS
from flyball.core.forms.semstreams import StepType, Trajectory, TrajectoryStep
from flyball.core.messages import Message, ToolCall
from flyball.core.usage import RunUsage
from flyball.observe.events import (
    GuardrailEvaluatedEvent,
    ModelRequestedEvent,
    ModelRespondedEvent,
    RunCompletedEvent,
    RunStartedEvent,
    RuntimeEvent,
    ToolCalledEvent,
    ToolEndedEvent,
)
from flyball.observe.trace import RunTrace, TraceStep, TraceStepKind


def trace_of(events: Iterable[RuntimeEvent], usage: RunUsage) -> RunTrace:
    """The trace of a run that these events are of, which used this."""
    steps: list[TraceStep] = []
    run_id = prompt = ""
    start: float | None = None
    end: float | None = None
    completed: RunCompletedEvent | None = None
    for event in events:
        run_id, end = event.run_id, event.occurred_at
        start = end if start is None else start
        if isinstance(event, RunStartedEvent):
            prompt, completed = event.prompt, None
        elif isinstance(event, RunCompletedEvent):
            completed = event
        else:
            steps += _steps(event)
    return RunTrace(
        run_id=run_id,
        prompt=prompt,
        start_time=start,
        end_time=end,
        duration=0.0 if start is None or end is None else max(0.0, end - start),
        steps=tuple(steps),
        usage=usage,
        success=completed is not None and completed.success,
        error="" if completed is None else completed.error,
    )


def _steps(event: RuntimeEvent) -> list[TraceStep]:
    """The step that an event is, if it is one."""
    at = event.occurred_at
    if isinstance(event, ModelRequestedEvent):
        data: dict[str, Any] = {
            "turn": event.turn,
            "request_id": event.request_id,
            "purpose": event.purpose,
            "prompt": event.prompt,
            "messages": len(event.messages),
        }
        return [TraceStep(TraceStepKind.MODEL_REQUEST, at, 0.0, data)]
    if isinstance(event, ModelRespondedEvent):
        data = {
            "turn": event.turn,
            "request_id": event.request_id,
            "purpose": event.purpose,
            "model": event.model,
            **_said(event.response),
            **_wrong(event.error),
        }
        return [TraceStep(TraceStepKind.MODEL_RESPONSE, at, event.duration, data)]
    if isinstance(event, ToolCalledEvent):
        call = {"turn": event.turn, "tool_call_id": event.tool_call_id, "tool_name": event.tool_name}
        return [TraceStep(TraceStepKind.TOOL_CALL, at, 0.0, {**call, "args_json": event.args_json})]
    if isinstance(event, ToolEndedEvent):
        result = event.result
        data = {
            "turn": event.turn,
            "tool_call_id": event.tool_call_id,
            "tool_name": event.tool_name,
            "result": result.text,
            **_wrong(result.error or ""),
        }
        return [TraceStep(TraceStepKind.TOOL_RESULT, at, event.duration, data)]
    if isinstance(event, GuardrailEvaluatedEvent):
        data = {"turn": event.turn, "name": event.name, "passed": event.passed, **_wrong(event.error)}
        return [TraceStep(TraceStepKind.GUARDRAIL, at, 0.0, data)]
    return []


def _said(message: Message | None) -> dict[str, Any]:
    if message is None:
        return {}
    calls = [{"id": call.id, "name": call.name, "args_json": call.args_json} for call in message.tool_calls]
    used = {} if message.usage is None else {"usage": to_builtins(message.usage)}
    return {"text": message.text, "tool_calls": calls, **used}


def _wrong(error: str) -> dict[str, str]:
    return {"error": error} if error else {}


def to_trajectory(trace: RunTrace) -> Trajectory:
    """The trace as SemStreams keeps it: a request and its response are one step, a call and its result too.

    Its steps are those of `flyball.orchestrate.projections.trajectory`, which has the messages in full too. A
    trace does not tell a run that was cancelled from one that failed.
    """
    steps: list[TrajectoryStep] = []
    request: dict[str, Any] = {}
    calls: dict[str, dict[str, Any]] = {}
    for step in trace.steps:
        data: dict[str, Any] = step.data or {}
        if step.kind is TraceStepKind.MODEL_REQUEST:
            request = data
        elif step.kind is TraceStepKind.TOOL_CALL:
            calls[data["tool_call_id"]] = data
        elif step.kind is TraceStepKind.MODEL_RESPONSE:
            used = data.get("usage", {})
            steps.append(
                TrajectoryStep(
                    timestamp=step.timestamp,
                    step_type=StepType.MODEL_CALL,
                    request_id=data["request_id"],
                    prompt=request.get("prompt", ""),
                    response=data.get("text", ""),
                    tokens_in=used.get("input_tokens", 0),
                    tokens_out=used.get("output_tokens", 0),
                    duration=round(step.duration * 1000),
                    model=data["model"],
                )
            )
        elif step.kind is TraceStepKind.TOOL_RESULT:
            steps.append(
                TrajectoryStep(
                    timestamp=step.timestamp,
                    step_type=StepType.TOOL_CALL,
                    request_id=request.get("request_id", ""),
                    tool_name=data["tool_name"],
                    tool_arguments=_arguments(calls.get(data["tool_call_id"], {}).get("args_json", "")),
                    tool_result=data["result"],
                    duration=round(step.duration * 1000),
                )
            )
    gone = Trajectory.new(trace.run_id, trace.start_time or 0.0).add_steps(*steps)
    outcome = Outcome.SUCCESS if trace.success else Outcome.FAILED
    return gone if trace.end_time is None else gone.complete(outcome, trace.end_time)


def _arguments(args_json: str) -> dict[str, Any] | None:
    try:
        arguments: Any = ToolCall("", "", args_json).arguments
    except IncompleteToolCall:
        arguments = args_json
    if not isinstance(arguments, dict):
        arguments = {RAW_ARGUMENTS: arguments}
    return cast("dict[str, Any]", arguments) or None
