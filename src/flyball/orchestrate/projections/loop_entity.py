"""The loop as SemStreams keeps it: what stands in AGENT_LOOPS under a loop's id."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from flyball.core.errors import CancelledTimeout, JournalCorrupt
from flyball.core.events import Event, Outcome, SignalReceived
from flyball.core.forms.semstreams import LoopEntity, portable_result, read_tool_result, write_tool_result
from flyball.core.limits import Limits
from flyball.core.messages import ToolResult
from flyball.core.signals import SignalType
from flyball.orchestrate.approvals import answer_so_far
from flyball.orchestrate.course import OVER
from flyball.orchestrate.lifecycle import stage_of
from flyball.orchestrate.projections.deciding import decided_when
from flyball.orchestrate.replay import steps
from flyball.orchestrate.state import State
from flyball.orchestrate.task_facts import (
    max_iterations_of,
    role_of,
    task_id_of,
    told_of,
)

_TOLD = frozenset({"user_id", "channel_type", "channel_id", "workflow_slug", "workflow_step"})
_USUAL_DEPTH = Limits().max_depth
TIMEOUT = "timeout"
"""Who cancelled a loop whose time was up."""


def loop_entity(events: Iterable[Event]) -> LoopEntity:
    """The loop that a journal tells of.

    Raises:
        JournalCorrupt: the events are no journal.
    """
    reached: State | None = None
    paused_by = ""
    decided_at: float | None = None
    for event, state in steps(events):
        reached = state
        if isinstance(event, SignalReceived) and event.signal.type is SignalType.PAUSE:
            paused_by = event.signal.by
        decided_at = decided_when(decided_at, event, state)
    if reached is None:
        raise JournalCorrupt("journal: no events")
    return entity_of(reached, paused_by=paused_by, decided_at=decided_at)


def entity_of(state: State, *, paused_by: str = "", decided_at: float | None = None) -> LoopEntity:
    """The loop of a state, with the two things that a state does not hold: who paused it last, and when its
    outcome was decided.
    """
    pending = {result.call_id: _on_the_wire(result) for result in state.results if result is not None}
    over, cancelled = state.at in OVER, state.outcome is Outcome.CANCELLED
    asked_to_pause = state.pausing or state.paused
    return LoopEntity(
        id=state.loop_id,
        task_id=task_id_of(state),
        state=str(stage_of(state)),
        role=role_of(state),
        model=state.spec.model,
        iterations=state.iterations,
        max_iterations=max_iterations_of(state),
        pending_tool_results=pending if pending and state.open and not over else None,
        started_at=state.started_at,
        timeout_at=state.deadline,
        parent_loop_id=state.parent_loop_id,
        depth=state.depth,
        pause_requested=state.pausing and not state.paused,
        pause_requested_by=paused_by if asked_to_pause else "",
        state_before_pause=str(stage_of(replace(state, paused=False))) if state.paused else "",
        cancelled_by=cancelled_by(state),
        cancelled_at=decided_at if over and cancelled else None,
        outcome=str(state.outcome or "") if over else "",
        result=result_of(state) if over else "",
        error=state.error.message if over and state.error is not None else "",
        completed_at=decided_at if over else None,
        identity=state.identity,
        **_depth_of(state),
        **told_of(state, _TOLD),
    )


def _depth_of(state: State) -> dict[str, int]:
    """How deep loops may go under this one: what the task said, or the limit if it is not the usual one."""
    told, allowed = told_of(state, ("max_depth",)), state.spec.limits.max_depth
    if told or allowed is None or allowed == _USUAL_DEPTH:
        return told
    return {"max_depth": allowed}


def cancelled_by(state: State) -> str:
    """Who cancelled a loop, as far as they said; `timeout` where its time was up."""
    if state.outcome is not Outcome.CANCELLED or state.error is None:
        return ""
    if state.error.code == CancelledTimeout.code:
        return TIMEOUT
    return str((state.error.details or {}).get("by", ""))


def result_of(state: State) -> str:
    """What came of a loop that ended well, as text: the answer, without the object that it was wrapped in."""
    return answer_so_far(state) if state.outcome is Outcome.SUCCESS else ""


def _on_the_wire(result: ToolResult) -> ToolResult:
    """A result as the wire holds it: content as text, and no images."""
    return read_tool_result(write_tool_result(portable_result(result)))
