"""Costs: they add up, and what is not known stays unknown."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flyball import RunCost
from flyball.core.errors import UserError

amounts = st.none() | st.decimals(0, 10**6, places=9)
costs = st.dictionaries(st.sampled_from(["a", "b", "c"]), amounts).map(RunCost.of)


@given(costs, costs, costs)
def test_adding_is_associative(one: RunCost, two: RunCost, three: RunCost) -> None:
    assert (one + two) + three == one + (two + three)


@given(costs, costs)
def test_adding_goes_both_ways(one: RunCost, other: RunCost) -> None:
    assert one + other == other + one


@given(costs)
def test_adding_nothing_changes_nothing(cost: RunCost) -> None:
    assert cost + RunCost() == cost == RunCost() + cost


@given(costs, costs)
def test_what_is_unknown_makes_the_whole_unknown_and_never_nothing(one: RunCost, other: RunCost) -> None:
    both = one + other
    assert set(both.unknown) == {*one.unknown, *other.unknown}
    assert (both.total is None) is bool(both.unknown)
    assert str(both).startswith("unknown") is bool(both.unknown)
    assert (f"{both:.2f}" == "unknown") is bool(both.unknown)
    if both.total is not None:
        assert both.total == both.known == sum([amount or 0 for amount in both.breakdown.values()])


@given(costs)
def test_a_cost_comes_back_from_json_with_its_keys(cost: RunCost) -> None:
    written = msgspec.json.encode(cost)
    assert msgspec.json.decode(written, type=RunCost) == cost
    assert set(msgspec.json.decode(written)) == {"total_cost", "breakdown", "currency"}


@given(costs.filter(lambda cost: cost.total is not None))
def test_numbers_are_read_and_written_as_in_gollem(cost: RunCost) -> None:
    numbers = msgspec.json.Encoder(decimal_format="number").encode(cost)
    written = msgspec.json.decode(numbers)
    assert written["total_cost"] == float(cost.total or 0)
    assert set(map(type, [written["total_cost"], *written["breakdown"].values()])) <= {int, float}
    assert msgspec.json.decode(numbers, type=RunCost) == cost


@pytest.mark.parametrize(
    ("breakdown", "shown"),
    [
        ({}, "0 EUR"),
        ({"a": Decimal("1E-7")}, "0.0000001 EUR"),
        ({"a": Decimal("10.00"), "b": Decimal("2.50")}, "12.5 EUR"),
        ({"a": None}, "unknown (no price or no usage of a)"),
        (
            {"a": None, "b": Decimal("0.20"), "c": None},
            "unknown (at least 0.2 EUR; no price or no usage of a, c)",
        ),
    ],
)
def test_a_cost_is_shown_in_full(breakdown: dict[str, Decimal | None], shown: str) -> None:
    cost = RunCost.of(breakdown, "EUR")
    assert str(cost) == f"{cost}" == shown


def test_a_cost_is_formatted_as_a_number() -> None:
    assert f"{RunCost.of({'a': Decimal('0.12345')}):.3f}" == "0.123"


def test_two_currencies_do_not_add_up() -> None:
    with pytest.raises(UserError, match="EUR and one in USD"):
        _ = RunCost.of({}, "EUR") + RunCost.of({})


def test_a_cost_is_added_to_a_cost_alone() -> None:
    cost: Any = RunCost()
    with pytest.raises(TypeError):
        _ = cost + 1
