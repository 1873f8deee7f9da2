"""RunCost: what something has cost, by model. What is not known is said to be, and is never 0."""

from __future__ import annotations

from decimal import Decimal

from msgspec import Struct, field

from flyball.core.errors import UserError
from flyball.observe.pricing import EXACT, NOTHING


class RunCost(Struct, frozen=True):
    """A cost: in all, and for each model that answered.

    An amount is None where it is not known, because there is no price for the model or its engine does not
    say what it used; then the total is None, too. Costs in one currency can be added up.
    """

    breakdown: dict[str, Decimal | None] = {}
    currency: str = "USD"
    total: Decimal | None = field(name="total_cost", default=NOTHING)

    @classmethod
    def of(cls, breakdown: dict[str, Decimal | None], currency: str = "USD") -> RunCost:
        """The cost of some models' calls."""
        known = [one for one in breakdown.values() if one is not None]
        return cls(breakdown, currency, _summed(known) if len(known) == len(breakdown) else None)

    @property
    def unknown(self) -> tuple[str, ...]:
        """The models of which it is not known."""
        return tuple([name for name, one in self.breakdown.items() if one is None])

    @property
    def known(self) -> Decimal:
        """What is known: the total, or what it is at least."""
        return _summed([one for one in self.breakdown.values() if one is not None])

    def __add__(self, other: RunCost) -> RunCost:
        """Both together.

        Raises:
            UserError: they are in two currencies.
        """
        if not isinstance(other, RunCost):  # pyright: ignore[reportUnnecessaryIsInstance]
            return NotImplemented
        if other.currency != self.currency:
            raise UserError(f"a cost in {self.currency} and one in {other.currency} cannot be added up")
        both = dict(self.breakdown)
        for name, one in other.breakdown.items():
            before = both.get(name, NOTHING)
            both[name] = None if one is None or before is None else EXACT.add(before, one)
        return RunCost.of(both, self.currency)

    def __format__(self, spec: str) -> str:
        """The total as a number's format has it (`f"{cost:.4f}"`), or the word `unknown`."""
        if not spec:
            return str(self)
        return "unknown" if self.total is None else format(self.total, spec)

    def __str__(self) -> str:
        """The total with its currency, or that it is unknown, and why."""
        if self.total is not None:
            return f"{plain(self.total)} {self.currency}"
        least = f"at least {plain(self.known)} {self.currency}; " if self.known else ""
        return f"unknown ({least}no price or no usage of {', '.join(self.unknown)})"


def plain(amount: Decimal) -> str:
    """An amount without an exponent and without zeros at its end."""
    whole, point, rest = f"{amount:f}".partition(".")
    rest = rest.rstrip("0")
    return f"{whole}{point}{rest}" if rest else whole


def _summed(amounts: list[Decimal]) -> Decimal:
    whole = NOTHING
    for one in amounts:
        whole = EXACT.add(whole, one)
    return whole
