"""The public price lists of providers, as the package genai-prices has them. Nothing is fetched."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from importlib.util import find_spec
from typing import Any

from flyball.core.errors import MissingExtra
from flyball.core.usage import CallUsage, Usage
from flyball.inference.model_string import OPENAI_COMPATIBLE
from flyball.observe.prices import Served, served

_PACKAGE = "genai_prices"
_CALLED_THERE = {"vertex": "google", "vertex-anthropic": "google"}
"""Providers that have another name there."""


class PublicPrices:
    """Prices at the time of each call, in US dollars, with tiers for long prompts.

    A provider must be named exactly: what a model of the same name costs elsewhere says nothing about a
    local one. Only of a bare name that nobody said a provider of, the provider is told from the name. A
    program that keeps genai-prices up to date (its `UpdatePrices`) has the newer prices here, too.
    """

    __slots__ = ()

    def __init__(self) -> None:
        """Make sure that they can be had.

        Raises:
            MissingExtra: the package is not installed.
        """
        if find_spec(_PACKAGE) is None:
            raise MissingExtra(
                "prices of models are looked up in genai-prices, which is not installed: "
                "pip install 'flyball[cost]', or give prices of your own, CostTracker({'model': "
                "ModelPricing(…)})",
                extra="cost",
            )

    def cost(self, call: CallUsage) -> Decimal | None:
        """See `Prices.cost`."""
        if call.usage is None:
            return None
        where = _place(served(call))
        if where is None:
            return None
        from genai_prices import calc_price

        then = datetime.fromtimestamp(call.at, UTC)
        model: str = where.pop("model_ref")
        try:
            return calc_price(_counted(call.usage), model, genai_request_timestamp=then, **where).total_price
        except (LookupError, ValueError):  # there is no such model, or it is not paid by such tokens
            return None


def _place(call: Served) -> dict[str, Any] | None:
    """Where a model is listed; None where no list is meant."""
    model, provider, base_url = call
    if provider == OPENAI_COMPATIBLE:
        return {"model_ref": model, "provider_api_url": base_url} if base_url else None
    if not provider:
        return {"model_ref": model}
    provider = _CALLED_THERE.get(provider, provider)
    from genai_prices.data_snapshot import get_snapshot

    if not any(one.id == provider for one in get_snapshot().providers):
        return None  # it would take names that look alike for the same
    return {"model_ref": model, "provider_id": provider}


def _counted(usage: Usage) -> Any:
    from genai_prices import Usage as Counted

    cached = usage.cache_read_tokens + usage.cache_write_tokens
    return Counted(
        input_tokens=max(usage.input_tokens, cached),
        output_tokens=usage.output_tokens,
        cache_read_tokens=usage.cache_read_tokens,
        cache_write_tokens=usage.cache_write_tokens,
    )
