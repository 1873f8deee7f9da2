"""What is told of runs, as an event log has it; and the timeline, given back from a log alone.

    layer        action                      what it is
    orchestrate  run_start, run              a run, or a flow: that it began, and that it is over
    orchestrate  transition                  from one phase of its lifecycle to another
    orchestrate  turn_start, turn            a turn
    orchestrate  infer_start, infer          a model call
    tool         tool_start, tool            a tool call
    context      context                     what the model is told beyond what was said
    orchestrate  step_start, step            a step of a flow
    validate     guardrail, validate, condition
    constraint   repair
    memory       compact

No log holds what was said: neither prompts and answers, nor arguments and results of tools.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, get_args

from msgspec import convert, to_builtins

from flyball.observe.event_log import Event
from flyball.observe.events import (
    ContextCompactedEvent,
    ContextPreparedEvent,
    ModelRequestedEvent,
    ModelRespondedEvent,
    RunCompletedEvent,
    RuntimeEvent,
    StepEndedEvent,
    ToolEndedEvent,
)
from flyball.observe.timeline import TimelineEvent, timeline_event

_KINDS: dict[str, type[TimelineEvent]] = {
    str(kind.__struct_config__.tag): kind for kind in get_args(TimelineEvent)
}
_TOLD = ("turn", "name", "passed", "succeeded", "stopped", "path", "kind", "attempt", "loop_id", "success")
"""What else is told of runtime events, where they have it."""


def log_event(event: RuntimeEvent) -> Event:
    """A runtime event as a log has it."""
    typed = timeline_event(event)
    if typed is None:
        data = {name: getattr(event, name) for name in _TOLD if hasattr(event, name)}
        data = {"event": event.type, "at": event.occurred_at, "agent": event.agent, **data, **_more(event)}
    else:
        data: dict[str, Any] = to_builtins(typed)
        del data["correlation"]
        data |= _more(event)
    took, ids = _duration(event), event.correlation
    return Event(event.occurred_at - took, event.LAYER, event.ACTION, data, took, _error(event), ids)


def timeline(events: Iterable[Event], *, request_id: str = "") -> list[TimelineEvent]:
    """The timeline that a log holds, in the log's order; with an id, that of one request.

    Of a log that heard all of a run, it is that of the run's journal.

    Raises:
        ValidationError: (msgspec's) an event that says it is one of these has not what they have.
    """
    told: list[TimelineEvent] = []
    for event in events:
        kind = _KINDS.get(str(event.data.get("event")))
        if kind is None or (request_id and event.correlation.request_id != request_id):
            continue
        told.append(convert({**event.data, "correlation": to_builtins(event.correlation)}, kind))
    return told


def _more(event: RuntimeEvent) -> dict[str, Any]:
    """What of some kinds is told besides."""
    if isinstance(event, ModelRequestedEvent):
        return {"messages": len(event.messages), "model": event.model, "purpose": event.purpose}
    if isinstance(event, ModelRespondedEvent):
        return {"messages": event.message_count, "model": event.model, "purpose": event.purpose}
    if isinstance(event, ContextCompactedEvent):
        return to_builtins(event.stats)
    if isinstance(event, ContextPreparedEvent):
        return {"added": event.added, "notes": list(event.notes), "degraded": list(event.degraded)}
    if isinstance(event, RunCompletedEvent):
        return {"error_code": "" if event.failure is None else event.failure.code}
    return {}


def _duration(event: RuntimeEvent) -> float:
    if isinstance(event, RunCompletedEvent):
        return max(0.0, event.completed_at - event.started_at)
    if isinstance(event, ModelRespondedEvent | ToolEndedEvent | StepEndedEvent):
        return event.duration
    return 0.0


def _error(event: RuntimeEvent) -> str:
    if isinstance(event, ToolEndedEvent):
        return event.result.error or ""
    return getattr(event, "error", "")
