"""The course of a loop through its lifecycle, worked out from its journal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from msgspec import Struct, field

from flyball.core.errors import (
    JournalCorrupt,
    RuleFailed,
    SystemError,  # noqa: A004 - pagantic's name for it
    ToolExecutionFailed,
)
from flyball.core.events import (
    Admitted,
    Delivered,
    Event,
    Forked,
    Outcome,
    Reopened,
    Started,
    ToolReturned,
    TurnSettled,
)
from flyball.orchestrate.correlation import loop_correlation
from flyball.orchestrate.lifecycle.phases import RETRY, Mode, Phase
from flyball.orchestrate.lifecycle.standing import phase_of
from flyball.orchestrate.replay import steps
from flyball.orchestrate.state import State


class Transition(Struct, frozen=True):
    """A loop went from one phase to another: when, in which attempt (the one that it begins), and why."""

    from_: Phase = field(name="from_state")
    to: Phase = field(name="to_state")
    at: float
    attempt: int
    reason: str


class ExecutionState(Struct, frozen=True):
    """Where a loop stands in its lifecycle.

    `attempt` counts from 1 and grows with every retry and every reopening. A step is a turn: a model call
    with the handling of its tool calls. `last_error` may be one that the loop has recovered from.
    """

    current: Phase
    entered_at: float
    attempt: int = 1
    total_steps: int = 0
    last_error: SystemError | None = None
    last_step: str = ""


class ExecutionContext(Struct, frozen=True):
    """All about one execution: what was fixed at its beginning, and where it stands now.

    `mode` is `structured` where the answer is held to a schema. `selected_tools` are those on offer.
    """

    request_id: str
    session_id: str
    trace_id: str
    mode: Mode
    started_at: float
    state: ExecutionState
    selected_tools: tuple[str, ...] = ()
    metadata: dict[str, Any] | None = None


def transitions(events: Iterable[Event]) -> list[Transition]:
    """The phases that a loop has gone through, in order. It begins in `init`, which is no transition.

    All follow `EDGES`, but for those of a reopening. A fork's course begins anew where it was forked.

    Raises:
        JournalCorrupt: the events are no journal.
    """
    made: list[Transition] = []
    for moves, event, _ in course(events):
        if isinstance(event, Forked):
            made.clear()
        made.extend(moves)
    return made


def execution_state(events: Iterable[Event]) -> ExecutionState:
    """Where a loop stands.

    Raises:
        JournalCorrupt: the events are no journal.
    """
    return _standing(events)[0]


def execution_context(events: Iterable[Event]) -> ExecutionContext:
    """All about a loop's execution.

    Raises:
        JournalCorrupt: the events are no journal.
    """
    standing, state = _standing(events)
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
        state.metadata,
    )


def course(events: Iterable[Event]) -> Iterator[tuple[list[Transition], Event, State]]:
    """Each event with the transitions that it brought, and the state that it led to.

    The state is one object that the next step changes.

    Raises:
        JournalCorrupt: the events are no journal.
    """
    phase, attempt = Phase.INIT, 1
    for event, state in steps(events):
        moves: list[Transition] = []
        if isinstance(event, Forked):
            phase, attempt = Phase.INIT, 1
        elif isinstance(event, Reopened):
            attempt += 1
            moves.append(Transition(phase, Phase.INIT, event.at, attempt, _reopened(event)))
            phase = Phase.INIT
        for following in _way(phase, phase_of(state)):
            if (phase, following) == RETRY:
                attempt += 1
            reason = _reason(phase, following, event, state)
            moves.append(Transition(phase, following, event.at, attempt, reason))
            phase = following
        yield moves, event, state


def _way(before: Phase, after: Phase) -> tuple[Phase, ...]:
    """The phases that one event leads through: preparing is a phase also where nothing had to be done."""
    if before is after:
        return ()
    return (Phase.PREPARE, after) if before is Phase.INIT and after is Phase.EXECUTE else (after,)


def _reopened(event: Reopened) -> str:
    return f"reopened by {event.by}" if event.by else "reopened"


def _reason(before: Phase, after: Phase, event: Event, state: State) -> str:
    if after in (Phase.ERROR, Phase.CANCELLED):
        return state.error.message if state.error is not None else str(after)
    if after is Phase.COMPLETE:
        return "the answer was accepted" if before is Phase.VALIDATE else "the model answered"
    if after is Phase.VALIDATE:
        return "the answer is to be checked"
    if (before, after) == RETRY:
        told = event.feedback if isinstance(event, TurnSettled) else ()
        return f"retry: {told[0]}" if told else "retry"
    if after is Phase.EXECUTE:
        return "prepared"
    return "admitted" if isinstance(event, Admitted) else type(event).__name__.lower()


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
        return RuleFailed(event.feedback[0], feedback=list(event.feedback)).record()
    return event.error if isinstance(event, Delivered) else None
