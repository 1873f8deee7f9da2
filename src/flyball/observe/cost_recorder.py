"""CostRecorder: pagantic's interface of a cost tracker. `CostTracker` keeps; here is one that does not."""

from __future__ import annotations

from decimal import Decimal
from typing import Protocol, runtime_checkable

from flyball.core.usage import Usage
from flyball.observe.cost import CostTracker
from flyball.observe.pricing import NOTHING
from flyball.observe.run_cost import RunCost

InMemoryCostTracker = CostTracker
"""pagantic's name for it."""


@runtime_checkable
class CostRecorder(Protocol):
    """Adds up what model calls cost. It may be used from many threads."""

    def record_usage(
        self, model: str, usage: Usage | None, *, provider: str = "", at: float | None = None
    ) -> RunCost:
        """Add a model call; what it cost. See `CostTracker.record`."""
        ...

    @property
    def total_cost(self) -> Decimal | None:
        """What was recorded so far, in all; None if that is not known."""
        ...


class NoOpCostTracker:
    """Records nothing: what it has recorded cost nothing."""

    def record_usage(
        self, model: str, usage: Usage | None, *, provider: str = "", at: float | None = None
    ) -> RunCost:
        """See `CostRecorder.record_usage`."""
        return RunCost()

    @property
    def total_cost(self) -> Decimal | None:
        """See `CostRecorder.total_cost`."""
        return NOTHING
