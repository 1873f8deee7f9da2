"""CostTracker: what an agent's runs cost, each for itself and all together; and an estimate without one."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from decimal import Decimal
from threading import Lock

from flyball.core.errors import UserError
from flyball.core.feature import Feature
from flyball.core.usage import CallUsage, Usage
from flyball.observe.prices import Prices, PriceTable, served
from flyball.observe.pricing import EXACT, NOTHING, ModelPricing
from flyball.observe.run_cost import RunCost

DOLLARS = "USD"


class CostTracker(Feature):
    """Prices model calls. On an agent, `Agent(features=[tracker])`, it gives its results their `cost`.

    It does two things, which are not the same:

    - `cost_of` prices calls that are recorded. A run's cost is worked out so from its journal: it is the same
      after a resume or a replay, and wherever the calls were made.
    - `total_cost` and `cost_breakdown()` are of the calls that were made in this process by agents that have
      this tracker, and of what was given to `record`. Each is added as its answer comes, where the call is
      made: nothing is added by a replay, or again by a resume, and a call whose answer got lost has been
      paid and counts. Where workers make the calls, their trackers have the totals.

    It may stand on many agents, and be used from many tasks and threads at once.
    """

    name = "cost_tracker"

    def __init__(
        self,
        pricing: Mapping[str, ModelPricing] | None = None,
        *,
        currency: str = DOLLARS,
        public_prices: bool | None = None,
    ) -> None:
        """Make one.

        Args:
            pricing: prices by a model's name (`gpt-5`, `openai:gpt-5`, or a model string such as `local`).
            currency: what the prices are in.
            public_prices: whether models that are not in the table are looked up in genai-prices' lists,
                which are in US dollars; by default only where there is no table.

        Raises:
            UserError: no price table, or the public prices in another currency than theirs.
            MissingExtra: genai-prices is wanted and not installed.
        """
        if not isinstance(currency, str) or not currency:  # pyright: ignore[reportUnnecessaryIsInstance]
            raise UserError(f"currency= takes a name, such as 'USD', not {currency!r}")
        self.currency = currency
        self._table = PriceTable({} if pricing is None else pricing)
        self._prices: list[Prices] = [self._table]
        if public_prices if public_prices is not None else pricing is None:
            if currency != DOLLARS:
                raise UserError(f"the public prices are in {DOLLARS}, not in {currency}: give pricing=")
            from flyball.observe.public_prices import PublicPrices

            self._prices.append(PublicPrices())
        self._lock = Lock()
        self._totals: dict[str, Decimal | None] = {}

    def __repr__(self) -> str:
        return f"<CostTracker {self.cost}>"

    # What is recorded

    def cost_of(self, calls: Iterable[CallUsage]) -> RunCost:
        """What some calls cost together; the totals are left alone."""
        costs: dict[str, Decimal | None] = {}
        for call in calls:
            _add(costs, served(call).model, self._cost(call))
        return RunCost.of(costs, self.currency)

    # What was made here

    def record(
        self, model: str, usage: Usage | None, *, provider: str = "", at: float | None = None
    ) -> RunCost:
        """Add a model call (or several, as one) to the totals; what it cost.

        Args:
            model: who answered: a model string, or a bare name.
            usage: what it used; None if that is not known.
            provider: who serves the model, where `model` does not say so.
            at: when, for prices that have changed; now, without it.
        """
        return self.note(CallUsage(time.time() if at is None else at, None, usage, model, provider))

    record_usage = record
    """pagantic's name for it."""

    def note(self, call: CallUsage) -> RunCost:
        """Add a model call to the totals; what it cost. Engines of agents that have this tracker tell it."""
        name, cost = served(call).model, self._cost(call)
        with self._lock:
            _add(self._totals, name, cost)
        return RunCost.of({name: cost}, self.currency)

    @property
    def cost(self) -> RunCost:
        """What was recorded here so far."""
        return RunCost.of(self.cost_breakdown(), self.currency)

    @property
    def total_cost(self) -> Decimal | None:
        """What was recorded here so far, in all; None if that is not known."""
        return self.cost.total

    def cost_breakdown(self) -> dict[str, Decimal | None]:
        """What was recorded here so far, by model; None where that is not known."""
        with self._lock:
            return dict(self._totals)

    def pricing(self) -> dict[str, ModelPricing]:
        """A copy of its own table of prices."""
        return dict(self._table.pricing)

    def _cost(self, call: CallUsage) -> Decimal | None:
        for prices in self._prices:
            if (cost := prices.cost(call)) is not None:
                return cost
        return None


def _add(costs: dict[str, Decimal | None], name: str, cost: Decimal | None) -> None:
    before = costs.get(name, NOTHING)
    costs[name] = None if before is None or cost is None else EXACT.add(before, cost)


def estimate_run_cost(
    model: str,
    usage: Usage,
    pricing: Mapping[str, ModelPricing] | None = None,
    *,
    currency: str = DOLLARS,
) -> RunCost:
    """What a usage would cost with a model, as one call; no tracker is touched.

    Raises:
        UserError, MissingExtra: see `CostTracker`.
    """
    if not isinstance(model, str) or not isinstance(usage, Usage):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise UserError(f"estimate_run_cost takes a model's name and a Usage, not {model!r} and {usage!r}")
    asked = CallUsage(time.time(), None, usage, model)
    return CostTracker(pricing, currency=currency).cost_of([asked])
