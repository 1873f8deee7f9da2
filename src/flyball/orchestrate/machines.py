"""The two machines as one: for who asks about a loop and does not mind whether it is an agent's or a flow's.

Which of the two a journal is of, its first event says.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from flyball.core.events import Event, FlowStarted, Outcome, Stage, Started
from flyball.orchestrate import flow_machine, machine
from flyball.orchestrate.flow_state import FlowState
from flyball.orchestrate.state import State

AnyState: TypeAlias = State | FlowState


def is_flow(events: Sequence[Event]) -> bool:
    """Whether a journal is a flow's."""
    return bool(events) and isinstance(events[0], FlowStarted)


def name_of(started: Started | FlowStarted) -> str:
    """What a loop that begins is called: its agent, or the flow."""
    return started.spec.agent if isinstance(started, Started) else started.flow.name


def start(started: Started | FlowStarted) -> AnyState:
    """The state of a loop that has just begun."""
    return machine.start(started) if isinstance(started, Started) else flow_machine.start(started)


def fold(events: Sequence[Event], place: str = "journal") -> AnyState:
    """The state that a whole journal leads to.

    Raises:
        JournalCorrupt: it is empty, does not begin as a journal does, or an event does not fit.
    """
    return flow_machine.fold(events, place) if is_flow(events) else machine.fold(events, place)


def accepts(state: AnyState, event: Event) -> bool:
    """Whether an event fits here."""
    if isinstance(state, FlowState):
        return flow_machine.accepts(state, event)
    return machine.accepts(state, event)


def take(state: AnyState, event: Event) -> bool:
    """Fold an event if it fits; whether it did."""
    return flow_machine.take(state, event) if isinstance(state, FlowState) else machine.take(state, event)


def stage(state: AnyState) -> Stage:
    """The stage that a loop is in. A flow executes, unless it is paused or over."""
    if not isinstance(state, FlowState):
        from flyball.orchestrate.lifecycle import stage_of

        return stage_of(state)
    if state.at != "run":
        return _ENDED[state.outcome or Outcome.FAILED]
    return Stage.PAUSED if state.paused else Stage.EXECUTING


def is_paused(state: AnyState) -> bool:
    """Whether a loop is paused, or will be as soon as what runs has finished."""
    return state.paused or (isinstance(state, State) and state.pausing)


def ends_children(state: AnyState) -> bool:
    """Whether what runs under a loop is to be ended: it was cancelled, or is a flow that has failed."""
    failed = isinstance(state, FlowState) and state.outcome is Outcome.FAILED
    return failed or state.outcome is Outcome.CANCELLED


_ENDED = {
    Outcome.SUCCESS: Stage.COMPLETE,
    Outcome.FAILED: Stage.FAILED,
    Outcome.CANCELLED: Stage.CANCELLED,
}
