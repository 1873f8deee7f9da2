"""Where a loop stands in its lifecycle, and all about its execution, worked out from its journal."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from msgspec import Struct

from flyball.core.errors import (
    JournalCorrupt,
    RuleFailed,
    SystemError,  # noqa: A004 - pagantic's name for it
    ToolExecutionFailed,
)
from flyball.core.events import (
    Delivered,
    Event,
    FlowStarted,
    Forked,
    Outcome,
    Reopened,
    Started,
    StepEnded,
    ToolReturned,
    TurnSettled,
)
from flyball.core.flow import node_at
from flyball.orchestrate.correlation import loop_correlation
from flyball.orchestrate.flow_state import FlowState
from flyball.orchestrate.lifecycle.course import Transition, course
from flyball.orchestrate.lifecycle.flows import (
    candidates_in,
    flow_course,
    flow_mode,
    flow_tools,
    holds_output,
)
from flyball.orchestrate.lifecycle.phases import Mode, Phase
from flyball.orchestrate.state import State
from flyball.rerank.candidate import Candidate


class ExecutionState(Struct, frozen=True):
    """Where a loop stands in its lifecycle.

    `attempt` counts from 1 and grows with every retry and every reopening. A step is a turn: a model call
    with the handling of its tool calls; or, of a flow, what it is made of. `last_error` may be one that the
    loop has recovered from.
    """

    current: Phase
    entered_at: float
    attempt: int = 1
    total_steps: int = 0
    last_error: SystemError | None = None
    last_step: str = ""


class ExecutionContext(Struct, frozen=True):
    """All about one execution: what was fixed at its beginning, and where it stands now.

    `mode` is `structured` where the answer is held to a schema; a flow says which it is. `selected_tools` are
    those on offer; `candidates` what is voted on, or was found.
    """

    request_id: str
    session_id: str
    trace_id: str
    mode: Mode
    started_at: float
    state: ExecutionState
    selected_tools: tuple[str, ...] = ()
    candidates: tuple[Candidate, ...] = ()
    metadata: dict[str, Any] | None = None


def transitions(events: Iterable[Event]) -> list[Transition]:
    """The phases that a loop has gone through, in order. It begins in `init`, which is no transition.

    All follow `EDGES`, but for those of a reopening. A fork's course begins anew where it was forked.

    Raises:
        JournalCorrupt: the events are no journal.
    """
    made: list[Transition] = []
    recorded = list(events)
    for moves, event, _ in flow_course(recorded) if _is_flow(recorded) else course(recorded):
        if isinstance(event, Forked):
            made.clear()
        made.extend(moves)
    return made


def execution_state(events: Iterable[Event]) -> ExecutionState:
    """Where a loop stands.

    Raises:
        JournalCorrupt: the events are no journal.
    """
    recorded = list(events)
    return _flow_standing(recorded)[0] if _is_flow(recorded) else _standing(recorded)[0]


def execution_context(events: Iterable[Event]) -> ExecutionContext:
    """All about a loop's execution.

    Raises:
        JournalCorrupt: the events are no journal.
    """
    recorded = list(events)
    if _is_flow(recorded):
        return _flow_context(recorded)
    standing, state = _standing(recorded)
    ids, spec = loop_correlation(state), state.spec
    held = spec.output.schema is not None or bool(spec.output.tools)
    return ExecutionContext(
        ids.request_id,
        ids.session_id,
        ids.trace_id,
        Mode.STRUCTURED if held else Mode.CHAT,
        state.started_at,
        standing,
        tuple(spec.tools) if state.offered is None else state.offered,
        metadata=state.metadata,
    )


def _is_flow(events: list[Event]) -> bool:
    return bool(events) and isinstance(events[0], FlowStarted)


def _flow_context(events: list[Event]) -> ExecutionContext:
    standing, state = _flow_standing(events)
    ids = loop_correlation(state)
    return ExecutionContext(
        ids.request_id,
        ids.session_id,
        ids.trace_id,
        flow_mode(state.flow) or Mode.PLAN,
        state.started_at,
        standing,
        flow_tools(state.flow),
        candidates=candidates_in(state),
        metadata=state.metadata,
    )


def _flow_standing(events: list[Event]) -> tuple[ExecutionState, FlowState]:
    current, entered_at, attempt = Phase.INIT, events[0].at, 1
    error: SystemError | None = None
    done, last = 0, ""
    reached: FlowState | None = None
    for moves, event, reached in flow_course(events):
        if moves:
            newest = moves[-1]
            current, entered_at, attempt = newest.to, newest.at, newest.attempt
        if isinstance(event, StepEnded):
            error = event.error or error
            if event.error is None and not holds_output(reached.flow, event.path):
                done, last = done + 1, node_at(reached.flow, event.path).name
    assert reached is not None, "a flow has a beginning"
    return ExecutionState(current, entered_at, attempt, done, reached.error or error, last), reached


def _standing(events: Iterable[Event]) -> tuple[ExecutionState, State]:
    current, entered_at, attempt = Phase.INIT, 0.0, 1
    turn = total = last = 0
    succeeded = False
    error: SystemError | None = None
    reached: State | None = None
    for moves, event, state in course(events):
        if isinstance(event, Started | Forked):
            current, entered_at, attempt = Phase.INIT, event.at, 1
        if moves:
            newest = moves[-1]
            current, entered_at, attempt = newest.to, newest.at, newest.attempt
        moved_on = 0 < turn < state.turn and not isinstance(event, Reopened | Forked)
        if moved_on or (state.outcome is Outcome.SUCCESS and not succeeded):
            total, last = total + 1, turn
        turn, succeeded = state.turn, state.outcome is Outcome.SUCCESS
        error = state.error or _fault(event) or error
        reached = state
    if reached is None:
        raise JournalCorrupt("journal: no events")
    last_step = f"turn {last}" if total else ""
    return ExecutionState(current, entered_at, attempt, total, error, last_step), reached


def _fault(event: Event) -> SystemError | None:
    """What went wrong in an event without ending the loop."""
    if isinstance(event, ToolReturned) and event.result.error is not None:
        failure = ToolExecutionFailed(event.result.error, tool=event.result.name)
        failure.code = str((event.result.metadata or {}).get("code", failure.code))
        return failure.record()
    if isinstance(event, TurnSettled) and event.feedback and not event.reflected:
        return event.error or RuleFailed(event.feedback[0], feedback=list(event.feedback)).record()
    return event.error if isinstance(event, Delivered) else None
