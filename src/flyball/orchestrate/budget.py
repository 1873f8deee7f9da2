"""MaxCost: the run condition that knows prices: it ends a run when that has cost too much."""

from __future__ import annotations

from threading import Lock
from typing import Any

from flyball.core.context import RunContext
from flyball.core.errors import UserError
from flyball.core.messages import Message
from flyball.core.usage import CallUsage
from flyball.observe.cost import CostTracker
from flyball.observe.pricing import Amount, amount
from flyball.observe.run_cost import RunCost, plain
from flyball.validate.conditions import Reason, RunCondition

_REMEMBERED = 1024
"""How many runs' costs are kept, so that a turn has only its own call to price."""


class MaxCost(RunCondition):
    """Stops a run at the first answer with which it has cost more than this, in the tracker's currency.

    A cost that is not known is no cost of 0: it stops the run, too, with the reason. With `allow_unknown`
    what is known of it counts. Either way limits on tokens hold, whatever they cost.

    It stops between model calls: the answer that went over is paid. Each run has the whole amount; loops
    under it have their own.
    """

    def __init__(self, most: Amount, tracker: CostTracker, *, allow_unknown: bool = False) -> None:
        """Make one.

        Args:
            most: what a run may cost.
            tracker: who knows the prices; put it on the agent, too.
            allow_unknown: go on where the cost is not known.

        Raises:
            UserError: no amount, or no tracker.
        """
        if not isinstance(tracker, CostTracker):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise UserError(f"MaxCost takes an amount and a CostTracker, not {tracker!r}")
        self.most = amount(most, "MaxCost's amount")
        self.tracker = tracker
        self.allow_unknown = allow_unknown
        self._lock = Lock()
        self._priced: dict[str, tuple[int, CallUsage, RunCost]] = {}
        """By run: how many calls are priced, the last of them, and what they cost."""
        super().__init__(self._met, "max_cost")

    def _met(self, ctx: RunContext[Any], message: Message) -> Reason:
        cost = self._so_far(ctx.run_id, ctx.spent)
        if cost.total is None and not self.allow_unknown:
            return f"what the run costs is {cost}, and {self._allowed} are allowed: give the model a price"
        if cost.known <= self.most:
            return None
        return f"the run has cost {plain(cost.known)} {cost.currency}, and {self._allowed} are allowed"

    @property
    def _allowed(self) -> str:
        return f"{plain(self.most)} {self.tracker.currency}"

    def _so_far(self, run_id: str, calls: tuple[CallUsage, ...]) -> RunCost:
        with self._lock:
            known = self._priced.pop(run_id, None)
        # The same id may be another run's, in another journal: its calls are other ones.
        if known is not None and known[0] <= len(calls) and calls[known[0] - 1] == known[1]:
            cost = known[2] + self.tracker.cost_of(calls[known[0] :])
        else:
            cost = self.tracker.cost_of(calls)
        with self._lock:
            if calls:
                self._priced[run_id] = len(calls), calls[-1], cost
            while len(self._priced) > _REMEMBERED:
                del self._priced[next(iter(self._priced))]
        return cost
