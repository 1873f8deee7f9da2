"""The tools that were run under a flow: by the agents of its loops, and by the steps that are a tool's call.

One more projection of journals: what a step ran follows from what it was given and how it ended.
"""

from __future__ import annotations

from collections.abc import Sequence

from flyball.core.errors import CancelledTimeout, LoopNotFound, ToolExecutionFailed, ToolTimeout
from flyball.core.events import ChildStarted, Event, StepEnded
from flyball.core.flow import node_at
from flyball.observe.tool_outcome import arguments_of
from flyball.orchestrate.flow_machine import start, step_effect, take
from flyball.orchestrate.flow_state import FlowState
from flyball.orchestrate.journal import Journal
from flyball.orchestrate.plan.handlers.tooling import call_of
from flyball.orchestrate.plan.steps import TOOL
from flyball.orchestrate.projections import ToolCallRecord, tool_calls_made
from flyball.orchestrate.recorded import load_any
from flyball.orchestrate.state import State

_RAN = frozenset({ToolExecutionFailed.code, ToolTimeout.code, CancelledTimeout.code})
"""The failures of calls that were made: all others were refused before."""


async def flow_tool_calls(journal: Journal, events: Sequence[Event]) -> list[ToolCallRecord]:
    """The tool calls under a flow: those of its loops where they were begun, of its steps where they ended.

    A step that was tried again has a record of each time. Calls that never ran are not among them.
    """
    made: list[ToolCallRecord] = []
    state: FlowState | None = None
    for event in events:
        if state is None:
            state = start(event)  # pyright: ignore[reportArgumentType] - a flow begins so
            continue
        if isinstance(event, ChildStarted):
            made += await _of_loop(journal, event.loop_id)
        elif isinstance(event, StepEnded) and node_at(state.flow, event.path).kind == TOOL:
            made += _of_step(state, event)
        take(state, event)
    return made


async def _of_loop(journal: Journal, loop_id: str) -> list[ToolCallRecord]:
    try:
        events, under = await load_any(journal, loop_id)
    except LoopNotFound:
        return []  # recorded as begun, and no more
    if isinstance(under, State):
        return tool_calls_made(events)
    return await flow_tool_calls(journal, events)


def _of_step(state: FlowState, event: StepEnded) -> list[ToolCallRecord]:
    error = event.error
    call = call_of(state.ready[event.path].input, step_effect(state, event.path, event.attempt))
    if call is None or (error is not None and error.code not in _RAN):
        return []
    record = ToolCallRecord(
        call.name,
        arguments_of(call),
        event.output,
        None if error is None else error.message,
        event.duration,
        call.id,
        code=None if error is None else error.code,
    )
    return [record]
