"""Where a price is found: which model a call was of, and what a table of one's own says about it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any, NamedTuple, Protocol

from flyball.core.errors import UserError
from flyball.core.usage import CallUsage
from flyball.inference.model_string import OPENAI_COMPATIBLE
from flyball.observe.pricing import ModelPricing

_DATE = re.compile(r"[-@]\d{3,}[\d-]*$")
"""What a provider adds to the name of a model that was asked for by its short one: `gpt-5-2025-08-07`."""


class Prices(Protocol):
    """Knows what calls cost, or does not."""

    def cost(self, call: CallUsage) -> Decimal | None:
        """What a call cost; None if that is not known. It never raises."""
        ...


class Served(NamedTuple):
    """Which model answered a call, and who serves it. An empty provider: nobody said."""

    model: str
    provider: str
    base_url: str = ""


def served(call: CallUsage) -> Served:
    """Which model a call was of: as it was answered, or else as it was asked for."""
    asked, provider = call.asked, call.provider
    if provider:
        return Served(call.model or asked, provider)
    if asked.startswith(("http://", "https://")):
        base_url, _, name = asked.partition("#")
        return Served(call.model or name or asked, OPENAI_COMPATIBLE, base_url)
    before, colon, name = asked.partition(":")
    if colon:
        return Served(call.model or name, before)
    # `local` and `test` are whole model strings, and any other word is a model's name.
    return Served(call.model or asked, asked if asked in ("local", "test") else "")


class PriceTable:
    """A table of one's own: prices by a model's name.

    A name is looked up as the model gave it, then without the date that providers add; each also behind its
    provider (`openai:gpt-5`). Then the model string that was asked for counts (`local`).
    """

    __slots__ = ("pricing",)

    def __init__(self, pricing: Mapping[str, ModelPricing]) -> None:
        """Make one.

        Raises:
            UserError: it does not hold prices by name.
        """
        given: Any = pricing
        if not isinstance(given, Mapping):
            raise UserError(f"pricing= takes prices by a model's name, not {given!r}")
        for name, price in pricing.items():
            if not isinstance(price, ModelPricing):  # pyright: ignore[reportUnnecessaryIsInstance]
                raise UserError(
                    f"the price of {name!r} is to be a ModelPricing(input_token_cost, …), not {price!r}"
                )
        self.pricing = dict(pricing)

    def cost(self, call: CallUsage) -> Decimal | None:
        """See `Prices.cost`."""
        for name in _names(call):
            if name in self.pricing:
                return self.pricing[name].cost(call.usage)
        return None


def _names(call: CallUsage) -> Iterator[str]:
    model, provider, _ = served(call)
    for name in (model, _DATE.sub("", model)):
        yield name
        if provider:
            yield f"{provider}:{name}"
    if not call.provider:  # an engine that was passed may have been one of several: only its answers count
        yield call.asked
