"""Prices: exact, per token, with cached tokens paid once."""

from __future__ import annotations

from decimal import Decimal, localcontext
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flyball import ModelPricing, Usage
from flyball.core.errors import UserError

tokens = st.integers(0, 10**9)
prices = st.decimals(0, 100, places=9)


def used(plain: int, read: int, write: int, output: int) -> Usage:
    return Usage(plain + read + write, output, cache_read_tokens=read, cache_write_tokens=write)


usages = st.builds(used, tokens, tokens, tokens, tokens)
some_above_nothing = st.decimals("0.000000001", 100, places=9)


@given(usages, prices, prices, some_above_nothing, some_above_nothing)
def test_each_token_is_paid_once(
    usage: Usage, input_: Decimal, output: Decimal, read: Decimal, write: Decimal
) -> None:
    plain = usage.input_tokens - usage.cache_read_tokens - usage.cache_write_tokens
    expected = (
        plain * input_
        + usage.cache_read_tokens * read
        + usage.cache_write_tokens * write
        + usage.output_tokens * output
    )
    with localcontext(prec=2):  # whatever a program has set for itself
        assert ModelPricing(input_, output, read, write).cost(usage) == expected


@given(usages, prices, prices, st.sampled_from([None, 0]))
def test_cached_tokens_cost_as_other_input_where_it_is_not_said(
    usage: Usage, input_: Decimal, output: Decimal, unsaid: int | None
) -> None:
    whole = usage.input_tokens * input_ + usage.output_tokens * output
    assert ModelPricing(input_, output, unsaid, unsaid).cost(usage) == whole


@given(st.lists(usages, max_size=5))
def test_calls_cost_together_what_they_cost_each(calls: list[Usage]) -> None:
    pricing = ModelPricing("0.0000011", "0.0000073", "0.00000013", "0.0000017")
    assert sum([pricing.cost(call) or 0 for call in calls]) == pricing.cost(sum(calls, Usage()))


def test_a_float_is_taken_for_what_it_is_written_as() -> None:
    pricing = ModelPricing(0.000003, 0.1)
    assert pricing.cost(Usage(3, 3)) == Decimal("0.300009")
    assert pricing == ModelPricing("0.000003", Decimal("0.1"))


def test_prices_as_they_are_listed() -> None:
    assert ModelPricing.per_million(3, 15, "0.30", 3.75) == ModelPricing(
        "0.000003", "0.000015", "0.0000003", "0.00000375"
    )
    assert ModelPricing.per_million(3, 15).cached_input_cost is None


def test_more_cached_tokens_than_input_are_paid_as_what_they_are() -> None:
    odd = Usage(10, 0, cache_read_tokens=30)
    assert ModelPricing(1, 1, "0.5").cost(odd) == 15


def test_without_a_usage_only_what_is_free_has_a_cost() -> None:
    assert ModelPricing(1, 0).cost(None) is None
    assert ModelPricing(0, 0).cost(None) == 0


@pytest.mark.parametrize("price", ["x", None, True, [], -1, "nan", float("inf"), "-0.1"], ids=repr)
def test_what_is_no_price_is_refused(price: Any) -> None:
    with pytest.raises(UserError, match="output"):
        ModelPricing.per_million(1, price)
    if price is not None:
        with pytest.raises(UserError, match="cached_input_cost is a number"):
            ModelPricing(1, 1, price)
