"""What a recorded loop cost, by the public prices, where their package is installed."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING

from msgspec.structs import replace

from flyball.core.errors import MissingExtra
from flyball.core.events import Event
from flyball.core.usage import CallUsage
from flyball.observe.prices import served
from flyball.orchestrate.provenance import provenance_of
from flyball.orchestrate.spending import spent
from flyball.orchestrate.state import State

if TYPE_CHECKING:
    from flyball.observe.cost import CostTracker
    from flyball.observe.run_cost import RunCost

_OWN = ("local", "ollama", "test")
"""Providers that no price list has: who runs a model knows what that costs."""


def cost_of(events: Sequence[Event], state: State) -> RunCost | None:
    """What a loop cost, with the loops under it that are over; None where nobody here knows prices, or none
    is meant. What cannot be priced is said to be unknown in it, and is never 0.
    """
    return cost_of_calls(spent(state), provenance_of(events, state).model)


def cost_of_calls(calls: Sequence[CallUsage], model: str) -> RunCost | None:
    """What some model calls cost; `model` is the string of the loop that made them: it says who serves those
    of which nothing else does. None as in `cost_of`.
    """
    told = [_told_by(call, model) for call in calls]
    if all(served(call).provider in _OWN for call in told):
        return None
    tracker = public_prices()
    return None if tracker is None else tracker.cost_of(told)


@cache
def public_prices() -> CostTracker | None:
    """Whoever knows the public prices; looked for once, because many loops are priced in a row."""
    from flyball.observe.cost import CostTracker

    try:
        return CostTracker()
    except MissingExtra:
        return None


def _told_by(call: CallUsage, model: str) -> CallUsage:
    """A call with its provider: that of the model string that the loop was begun with, if none is known."""
    if served(call).provider:
        return call
    known = served(CallUsage(call.at, None, None, model)).provider
    return replace(call, provider=known or "unsaid")
