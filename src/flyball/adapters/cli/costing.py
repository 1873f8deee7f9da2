"""What a recorded run cost, by the public prices, where their package is installed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace

from flyball.core.errors import MissingExtra
from flyball.core.events import Event
from flyball.core.usage import CallUsage
from flyball.orchestrate.spending import spent
from flyball.orchestrate.state import State

if TYPE_CHECKING:
    from flyball.observe.run_cost import RunCost

_OWN = ("local", "ollama", "test")
"""Providers that no price list has: who runs a model knows what that costs."""


def cost_of(events: Sequence[Event], state: State) -> RunCost | None:
    """What a run cost; None where nobody here knows prices, or none is meant."""
    from flyball.adapters.cli.origin import origin_of
    from flyball.observe.cost import CostTracker
    from flyball.observe.prices import served

    model = origin_of(events, state).model
    calls = [_told_by(call, model) for call in spent(state)]
    if all(served(call).provider in _OWN for call in calls):
        return None
    try:
        return CostTracker().cost_of(calls)
    except MissingExtra:
        return None


def _told_by(call: CallUsage, model: str) -> CallUsage:
    """A call with its provider: that of the model string that the run was begun with, if none is known."""
    from flyball.observe.prices import served

    if served(call).provider:
        return call
    known = served(CallUsage(call.at, None, None, model)).provider
    return replace(call, provider=known or "unsaid")
