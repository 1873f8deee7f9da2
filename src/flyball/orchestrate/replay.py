"""A journal taken event by event: what every view of a journal is made from. Pure, like the machine."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from flyball.core.errors import JournalCorrupt
from flyball.core.events import Event, Started
from flyball.orchestrate.machine import accepts, apply, start
from flyball.orchestrate.state import State


def steps(events: Iterable[Event], place: str = "journal") -> Iterator[tuple[Event, State]]:
    """Fold a journal event by event: each event, with the state that it led to.

    The state is one object that the next step changes: who wants to keep something of it takes that at once.

    Raises:
        JournalCorrupt: it does not begin with Started, or an event does not fit where it stands.
    """
    state: State | None = None
    for number, event in enumerate(events):
        if state is None:
            if not isinstance(event, Started):
                raise JournalCorrupt(f"{place}: begins with {type(event).__name__}, not with Started")
            state = start(event)
        elif accepts(state, event):
            apply(state, event)
        else:
            raise JournalCorrupt(
                f"{place}: event {number}, {type(event).__name__}, does not fit: "
                f"the loop stands at {state.at!r} in turn {state.turn}",
                number=number,
            )
        yield event, state
