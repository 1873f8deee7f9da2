"""What each model call of a loop used, and of the loops under it: what its cost is worked out from."""

from __future__ import annotations

from flyball.core.events import ChildEnded, ModelAnswered
from flyball.core.usage import CallUsage
from flyball.orchestrate.state import State


def spent(state: State) -> tuple[CallUsage, ...]:
    """The calls in their order. One that failed is among them if something had come of it by then; what that
    used may not be known. Those of a loop under this one stand where that loop was over.
    """
    calls: list[CallUsage] = []
    for event in state.called:
        if isinstance(event, ChildEnded):
            calls += event.spent
            continue
        message = event.message if isinstance(event, ModelAnswered) else event.partial
        if message is not None:
            model, provider = state.spec.served_by(event.purpose)
            calls.append(CallUsage(event.at, message.model, message.usage, model, provider))
    return tuple(calls)


def requests_made(state: State) -> int:
    """How many model calls a loop has made itself and had made under it; not those of a run before it."""
    return state.usage.requests - (0 if state.carried is None else state.carried.usage.requests)
