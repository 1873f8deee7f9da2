"""What metrics are told of runs.

Latencies are of the layer that did the work: `inference` (model calls), `tool`, `orchestrate` (whole runs and
flows). Counters: `run`, `infer`, `tool`, `step`, each also with `_error`; `retry`, for each way back of the
lifecycle.
"""

from __future__ import annotations

from typing import Any

from flyball.core.phases import Phase
from flyball.observe import genai
from flyball.observe.events import (
    ModelRespondedEvent,
    PhaseChangedEvent,
    RunCompletedEvent,
    RuntimeEvent,
    StepEndedEvent,
    ToolEndedEvent,
)
from flyball.observe.metrics import MetricsCollector
from flyball.observe.timeline import succeeded
from flyball.observe.tool_outcome import code_of


def count(event: RuntimeEvent, metrics: MetricsCollector) -> None:
    """Tell metrics what an event says."""
    if isinstance(event, ModelRespondedEvent):
        attributes = genai.call_metrics(event)
        metrics.record_latency("inference", event.duration, attributes)
        if event.response is not None and event.response.usage is not None:
            metrics.record_tokens(event.response.usage, attributes)
        _tally(metrics, "infer", attributes)
    elif isinstance(event, ToolEndedEvent):
        attributes = {genai.OPERATION: genai.EXECUTE_TOOL, genai.TOOL_NAME: event.tool_name}
        if not succeeded(event):
            attributes[genai.ERROR_TYPE] = code_of(event.result) or str(event.result.status)
        metrics.record_latency("tool", event.duration, attributes)
        _tally(metrics, "tool", attributes)
    elif isinstance(event, RunCompletedEvent):
        attributes = genai.run_metrics(event)
        metrics.record_latency("orchestrate", max(0.0, event.completed_at - event.started_at), attributes)
        _tally(metrics, "run", attributes)
    elif isinstance(event, StepEndedEvent):
        attributes = {genai.WORKFLOW_NAME: event.agent, "flyball.step.name": event.name}
        if event.failure is not None:
            attributes[genai.ERROR_TYPE] = event.failure.code
        _tally(metrics, "step", attributes)
    elif isinstance(event, PhaseChangedEvent) and _is_retry(event):
        metrics.increment_counter("retry", 1, {genai.AGENT_NAME: event.agent})


def _tally(metrics: MetricsCollector, name: str, attributes: dict[str, Any]) -> None:
    metrics.increment_counter(name, 1, attributes)
    if genai.ERROR_TYPE in attributes:
        metrics.increment_counter(f"{name}_error", 1, attributes)


def _is_retry(event: PhaseChangedEvent) -> bool:
    return event.from_state is Phase.VALIDATE and event.to_state is Phase.EXECUTE
