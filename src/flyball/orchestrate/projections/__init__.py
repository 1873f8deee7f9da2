"""Views of a journal: whatever a person sees of a loop is worked out here, each time, from its events.

    tool_calls      the tools that were run
    correlate       which request, trace, span, model call and tool call each event belongs to
    timeline        pagantic's observability events: inference and tool start and end, lifecycle transitions;
                    and the event log of a run that they can be rebuilt from
    normal_form     what is the same in two journals of the same run
    loop_entity     the loop as SemStreams keeps it
    loop_events     what is told of a loop: that it was created, and how it ended
    context_events  what was made of its context: that it is summed up, and what was left out
    violations      what filters found, and what was done about it
    trajectory      SemStreams' model calls and tool calls, step by step

What is shown to people, whoever shows it, is found in modules of its own:

    summary         a loop in a few words: what lists and searches are made of
    course          what happened, step by step, with times, tokens and what came of it
    explanation     what was sent at each turn, what came back, what decided, what may be done next
    cost            what it cost
    words           what a person is shown of a message

Rules: pure functions of the events; no view is kept and none is written, so none can disagree with another.
Only a summary looks at the time and at other loops as well, where it says how a loop stands.
"""

from typing import TYPE_CHECKING, Any

from flyball.orchestrate.correlation import correlate
from flyball.orchestrate.projections.context_events import context_events
from flyball.orchestrate.projections.loop_entity import entity_of, loop_entity
from flyball.orchestrate.projections.loop_events import (
    LoopEnded,
    lifecycle_payloads,
    loop_created,
    loop_ended,
)
from flyball.orchestrate.projections.normal_form import normal_form
from flyball.orchestrate.projections.tool_calls import tool_calls_made
from flyball.orchestrate.projections.trajectory import Detail, trajectory
from flyball.orchestrate.projections.violations import PolicyViolation, violations
from flyball.orchestrate.tool_record import ToolCallRecord

if TYPE_CHECKING:
    from flyball.observe.timeline import (
        InferenceEndEvent,
        InferenceStartEvent,
        LifecycleTransitionEvent,
        TimelineEvent,
        ToolEndEvent,
        ToolStartEvent,
    )
    from flyball.orchestrate.projections.observed import event_log, timeline

__all__ = [
    "Detail",
    "InferenceEndEvent",
    "InferenceStartEvent",
    "LifecycleTransitionEvent",
    "LoopEnded",
    "PolicyViolation",
    "TimelineEvent",
    "ToolCallRecord",
    "ToolEndEvent",
    "ToolStartEvent",
    "context_events",
    "correlate",
    "entity_of",
    "event_log",
    "lifecycle_payloads",
    "loop_created",
    "loop_ended",
    "loop_entity",
    "normal_form",
    "timeline",
    "tool_calls_made",
    "trajectory",
    "violations",
]

_LATER = {
    "InferenceEndEvent": "flyball.observe.timeline",
    "InferenceStartEvent": "flyball.observe.timeline",
    "LifecycleTransitionEvent": "flyball.observe.timeline",
    "TimelineEvent": "flyball.observe.timeline",
    "ToolEndEvent": "flyball.observe.timeline",
    "ToolStartEvent": "flyball.observe.timeline",
    "event_log": "flyball.orchestrate.projections.observed",
    "timeline": "flyball.orchestrate.projections.observed",
}
"""What a program that watches nothing does not load."""


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_LATER[name]), name)
