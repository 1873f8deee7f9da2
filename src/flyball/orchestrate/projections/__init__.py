"""Views of a journal: whatever a person sees of a loop is worked out here, each time, from its events.

    tool_calls      the tools that were run
    correlate       which request, trace, span, model call and tool call each event belongs to
    timeline        pagantic's observability events: inference and tool start and end, lifecycle transitions
    normal_form     what is the same in two journals of the same run
    loop_entity     the loop as SemStreams keeps it
    loop_events     what is told of a loop: that it was created, and how it ended
    trajectory      SemStreams' model calls and tool calls, step by step

Rules: pure functions of the events; no view is kept and none is written, so none can disagree with another.
"""

from flyball.orchestrate.correlation import correlate
from flyball.orchestrate.projections.loop_entity import entity_of, loop_entity
from flyball.orchestrate.projections.loop_events import (
    LoopEnded,
    lifecycle_payloads,
    loop_created,
    loop_ended,
)
from flyball.orchestrate.projections.normal_form import normal_form
from flyball.orchestrate.projections.timeline import (
    InferenceEndEvent,
    InferenceStartEvent,
    LifecycleTransitionEvent,
    TimelineEvent,
    ToolEndEvent,
    ToolStartEvent,
    timeline,
)
from flyball.orchestrate.projections.tool_calls import ToolCallRecord, tool_calls_made
from flyball.orchestrate.projections.trajectory import Detail, trajectory

__all__ = [
    "Detail",
    "InferenceEndEvent",
    "InferenceStartEvent",
    "LifecycleTransitionEvent",
    "LoopEnded",
    "TimelineEvent",
    "ToolCallRecord",
    "ToolEndEvent",
    "ToolStartEvent",
    "correlate",
    "entity_of",
    "lifecycle_payloads",
    "loop_created",
    "loop_ended",
    "loop_entity",
    "normal_form",
    "timeline",
    "tool_calls_made",
    "trajectory",
]
