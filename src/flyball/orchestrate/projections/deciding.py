"""When a loop's outcome was decided: the one moment that all views give for its end."""

from __future__ import annotations

from flyball.core.events import Event, Forked, Reopened
from flyball.orchestrate.course import OVER
from flyball.orchestrate.state import State


def decided_when(before: float | None, event: Event, state: State) -> float | None:
    """When the outcome was decided, after one more event and the state that it led to; None if it is open.

    What happens at the end (delivering, writing it down) comes later and does not move the moment; another
    attempt and a fork decide anew.
    """
    if state.at not in OVER:
        return None
    return event.at if before is None or isinstance(event, Reopened | Forked) else before
