"""ModelPricing: what a model's tokens cost. Per token, and exact."""

from __future__ import annotations

from decimal import Context, Decimal, InvalidOperation
from typing import Any, TypeAlias

from msgspec import Struct
from msgspec.structs import force_setattr

from flyball.core.errors import UserError
from flyball.core.usage import Usage

Amount: TypeAlias = "Decimal | int | float | str"
"""Money as a user may write it. A float is taken for what it is written as: 0.1 is a tenth."""

EXACT = Context(prec=60)
"""What amounts are worked out in: whatever the program has set for its own decimals changes nothing here."""
NOTHING = Decimal(0)
_MILLION = Decimal(1_000_000)
_MAY_BE_UNSAID = ("cached_input_cost", "cache_write_cost")


def amount(given: Any, what: str) -> Decimal:
    """An amount of money as a decimal.

    Raises:
        UserError: it is none, or less than 0.
    """
    try:
        if isinstance(given, bool) or not isinstance(given, Decimal | int | float | str):
            raise TypeError
        exact = given if isinstance(given, Decimal) else Decimal(str(given))
    except (InvalidOperation, TypeError):
        raise UserError(f"{what} is a number, such as '0.000003', not {given!r}") from None
    if not exact.is_finite() or exact < 0:
        raise UserError(f"{what} is a number from 0, not {given!r}")
    return exact


class ModelPricing(Struct, frozen=True, repr_omit_defaults=True):
    """What each token of a model costs: 3 dollars for a million are 0.000003 a token.

    Tokens that are read from a cache or written to it cost as much as other input where it is not said (or is
    0). A model that costs nothing is `ModelPricing(0, 0)`: that has to be said, too.

    Raises:
        UserError: a price is no number, or less than 0.
    """

    input_token_cost: Amount
    output_token_cost: Amount
    cached_input_cost: Amount | None = None
    cache_write_cost: Amount | None = None

    def __post_init__(self) -> None:
        for name in self.__struct_fields__:
            given = getattr(self, name)
            if given is not None or name not in _MAY_BE_UNSAID:
                force_setattr(self, name, amount(given, name))

    @classmethod
    def per_million(
        cls,
        input: Amount,  # noqa: A002 - what price lists call it
        output: Amount,
        cached_input: Amount | None = None,
        cache_write: Amount | None = None,
    ) -> ModelPricing:
        """The same from prices as they are listed, for a million tokens."""
        prices = [
            None if given is None else EXACT.divide(amount(given, name), _MILLION)
            for name, given in (
                ("input", input),
                ("output", output),
                ("cached_input", cached_input),
                ("cache_write", cache_write),
            )
        ]
        return cls(*prices)  # pyright: ignore[reportArgumentType] - the first two are there

    @property
    def is_free(self) -> bool:
        """Whether nothing costs anything, however much it is."""
        return not any(getattr(self, name) for name in self.__struct_fields__)

    def cost(self, usage: Usage | None) -> Decimal | None:
        """What a call comes to; None where nobody said what it used.

        Cached tokens are part of the input, and are not paid twice.
        """
        if usage is None:
            return NOTHING if self.is_free else None
        plain = max(0, usage.input_tokens - usage.cache_read_tokens - usage.cache_write_tokens)
        each = self.input_token_cost
        priced = (
            (plain, each),
            (usage.cache_read_tokens, self.cached_input_cost or each),
            (usage.cache_write_tokens, self.cache_write_cost or each),
            (usage.output_tokens, self.output_token_cost),
        )
        whole = NOTHING
        for tokens, price in priced:
            assert isinstance(price, Decimal), "a price was made one when it was given"
            whole = EXACT.fma(Decimal(tokens), price, whole)
        return whole
