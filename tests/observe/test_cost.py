"""The tracker: what was recorded adds up, from anywhere; what is looked at does not."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flyball import CostTracker, ModelPricing, RunUsage, Usage, estimate_run_cost
from flyball.core.errors import UserError
from flyball.core.usage import CallUsage

PRICING = {"small": ModelPricing("0.1", "0.2"), "large": ModelPricing("1", "2"), "mine": ModelPricing(0, 0)}
models = st.sampled_from(["small", "large", "mine", "other"])
calls = st.lists(st.builds(CallUsage, st.just(0.0), models, st.builds(Usage, st.integers(0, 99)))).map(tuple)


@given(calls, calls)
def test_recording_adds_up_to_the_cost_of_all(
    first: tuple[CallUsage, ...], rest: tuple[CallUsage, ...]
) -> None:
    tracker = CostTracker(PRICING)
    for call in first + rest:
        tracker.record(call.model or "", call.usage)
    assert tracker.cost == tracker.cost_of(first + rest) == tracker.cost_of(first) + tracker.cost_of(rest)
    assert tracker.total_cost == tracker.cost.total
    assert tracker.cost_breakdown() == tracker.cost.breakdown


def test_a_tracker_begins_with_nothing() -> None:
    tracker = CostTracker(PRICING, currency="EUR")
    assert tracker.total_cost == 0
    assert tracker.cost_breakdown() == {}
    assert repr(tracker) == "<CostTracker 0 EUR>"


def test_no_dust_gathers() -> None:
    tracker = CostTracker(PRICING)
    for _ in range(1000):
        tracker.record("small", Usage(1))
    assert tracker.total_cost == 100


def test_an_unknown_price_is_never_zero() -> None:
    tracker = CostTracker(PRICING)
    assert tracker.record("small", Usage(1)).total == Decimal("0.1")
    assert tracker.record("other", Usage(1)).total is None
    assert tracker.total_cost is None
    assert tracker.cost_breakdown() == {"small": Decimal("0.1"), "other": None}
    assert str(tracker.cost) == "unknown (at least 0.1 USD; no price or no usage of other)"
    assert tracker.record("small", None).total is None, "nobody knows what it used"


def test_only_a_price_of_zero_is_for_nothing() -> None:
    tracker = CostTracker(PRICING)
    assert tracker.record("mine", Usage(10**9, 10**9)).total == 0
    assert tracker.record("mine", None).total == 0
    assert tracker.total_cost == 0


def test_what_is_given_out_is_a_copy() -> None:
    given = dict(PRICING)
    tracker = CostTracker(given)
    given.clear()
    tracker.pricing().clear()
    assert tracker.pricing() == PRICING
    tracker.record("small", Usage(1))
    tracker.cost_breakdown().clear()
    assert tracker.total_cost == Decimal("0.1")


def test_threads_may_record_at_once() -> None:
    tracker = CostTracker(PRICING)
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(tracker.record, ["small"] * 1000, map(Usage, range(1000))))
    assert tracker.total_cost == Decimal("0.1") * sum(range(1000))


def test_an_estimate_touches_nothing() -> None:
    usage = RunUsage(10, 5, cache_read_tokens=4, requests=2)
    pricing = {"large": ModelPricing(1, 2, "0.5")}
    cost = estimate_run_cost("large", usage, pricing, currency="EUR")
    assert (cost.total, cost.breakdown, cost.currency) == (18, {"large": Decimal(18)}, "EUR")
    assert estimate_run_cost("unheard-of", usage, pricing).total is None


@pytest.mark.parametrize("currency", ["", None, 3], ids=repr)
def test_a_currency_has_a_name(currency: Any) -> None:
    with pytest.raises(UserError, match="currency="):
        CostTracker(PRICING, currency=currency)
