"""Views of a journal: whatever a person sees of a loop is worked out here, each time, from its events.

    tool_calls      the tools that were run
    correlate       which request, trace, span, model call and tool call each event belongs to
    timeline        pagantic's observability events: inference and tool start and end, lifecycle transitions
    normal_form     what is the same in two journals of the same run

Rules: pure functions of the events; no view is kept and none is written, so none can disagree with another.
"""

from flyball.orchestrate.correlation import correlate
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

__all__ = [
    "InferenceEndEvent",
    "InferenceStartEvent",
    "LifecycleTransitionEvent",
    "TimelineEvent",
    "ToolCallRecord",
    "ToolEndEvent",
    "ToolStartEvent",
    "correlate",
    "normal_form",
    "timeline",
    "tool_calls_made",
]
