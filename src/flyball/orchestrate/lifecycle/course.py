"""Transitions: how a loop goes from phase to phase, event by event."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec import Struct, field

from flyball.core.events import Admitted, Event, Forked, Reopened, TurnSettled
from flyball.orchestrate.lifecycle.phases import RETRY, Phase
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


class Course:
    """The way of one loop through its phases, as far as it has come: told event by event what happens."""

    __slots__ = ("attempt", "phase")

    def __init__(self) -> None:
        self.phase = Phase.INIT
        self.attempt = 1

    def moves(self, event: Event, state: State) -> list[Transition]:
        """The transitions that an event brings, which led to this state."""
        made: list[Transition] = []
        kind = type(event)
        if kind is Forked:
            self.phase, self.attempt = Phase.INIT, 1
        elif isinstance(event, Reopened):
            self.attempt += 1
            made.append(Transition(self.phase, Phase.INIT, event.at, self.attempt, reopened(event)))
            self.phase = Phase.INIT
        now = phase_of(state)
        if now is self.phase:
            return made
        for following in _way(self.phase, now):
            if (self.phase, following) == RETRY:
                self.attempt += 1
            reason = _reason(self.phase, following, event, state)
            made.append(Transition(self.phase, following, event.at, self.attempt, reason))
            self.phase = following
        return made


def course(events: Iterable[Event]) -> Iterator[tuple[list[Transition], Event, State]]:
    """Each event with the transitions that it brought, and the state that it led to.

    The state is one object that the next step changes.

    Raises:
        JournalCorrupt: the events are no journal.
    """
    way = Course()
    for event, state in steps(events):
        yield way.moves(event, state), event, state


def reopened(event: Reopened) -> str:
    """Why a loop that was over is tried again."""
    return f"reopened by {event.by}" if event.by else "reopened"


def _way(before: Phase, after: Phase) -> tuple[Phase, ...]:
    """The phases that one event leads through: preparing is a phase also where nothing had to be done."""
    return (Phase.PREPARE, after) if before is Phase.INIT and after is Phase.EXECUTE else (after,)


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
