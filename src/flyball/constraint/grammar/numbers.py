"""Integers and numbers: bounds to the digit, and multiples where digits can tell them.

Numbers are written out: no exponent, no leading zeros, as many digits as the bounds allow.
"""

from __future__ import annotations

from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from typing import Any

from msgspec import Struct

from flyball.constraint.grammar.bounds import Bounds
from flyball.constraint.grammar.digits import DIGIT, fractions, integers, multiples, naturals
from flyball.constraint.grammar.scope import At, Node, Scope
from flyball.constraint.grammar.tree import NOTHING, Expr, Literal, choice, optional, repeat, sequence

MOST_STATES = 400
"""How many rules a `multipleOf` may take; beyond, it is refused."""
_SAFE_DIGITS = 15
"""Different decimals of so many digits are different floats: a bound cannot be met by rounding."""


class Range(Struct, frozen=True):
    """The numbers between two ends; an open end is not among them."""

    low: Decimal | None
    high: Decimal | None
    low_open: bool
    high_open: bool

    @property
    def empty(self) -> bool:
        """Whether no number lies in it."""
        if self.low is None or self.high is None:
            return False
        return self.low > self.high or (self.low == self.high and (self.low_open or self.high_open))


def number_range(schema: Node) -> Range:
    """The range that `minimum`, `maximum` and their exclusive forms leave."""
    low, low_open = _tighter(schema.get("minimum"), schema.get("exclusiveMinimum"), lowest=True)
    high, high_open = _tighter(schema.get("maximum"), schema.get("exclusiveMaximum"), lowest=False)
    return Range(low, high, low_open, high_open)


def integer_expr(schema: Node, at: At, scope: Scope) -> Expr:
    """The whole numbers that follow the schema."""
    span = number_range(schema)
    low, high = _whole_ends(span, scope.bounds)
    of = 1
    if "multipleOf" in schema:
        # n is a multiple of p/q (in lowest terms) where p divides n
        of = decimal(schema["multipleOf"]).as_integer_ratio()[0]
    if of == 1:
        return scope.rule("integer", integers(low, high))
    found = multiples(low, high, of, MOST_STATES, lambda expr: scope.rule("digits", expr))
    if found is None:
        raise at.refuse(
            "multipleOf", f"multiples of {of} over this range take too many rules; narrow the range"
        )
    return scope.rule("multiple", found)


def number_expr(schema: Node, at: At, scope: Scope) -> Expr:
    """The numbers that follow the schema, with a fraction where it leaves room for one."""
    span, places = number_range(schema), scope.bounds.max_fraction
    if "multipleOf" in schema:
        step = decimal(schema["multipleOf"])
        if step == step.to_integral_value():
            return integer_expr(schema, at, scope)
        places = -int(step.normalize().as_tuple().exponent)
        if step != Decimal(1).scaleb(-places):
            raise at.refuse(
                "multipleOf", f"{schema['multipleOf']} is neither whole nor a power of ten; use one of those"
            )
    if span.empty:
        return NOTHING
    whole = max((len(str(abs(int(end)))) for end in (span.low, span.high) if end is not None), default=0)
    if whole:
        places = min(places, max(0, _SAFE_DIGITS - whole))
    return scope.rule("number", _numbers(span, places, scope.bounds))


def decimal(value: Any) -> Decimal:
    """A number of the schema as it was written: the shortest decimal that stands for it."""
    return Decimal(repr(value)) if isinstance(value, float) else Decimal(value)


def _tighter(closed: Any, opened: Any, *, lowest: bool) -> tuple[Decimal | None, bool]:
    if closed is None and opened is None:
        return None, False
    if closed is None:
        return decimal(opened), True
    if opened is None:
        return decimal(closed), False
    one, other = decimal(closed), decimal(opened)
    outside = one > other if lowest else one < other
    return (one, False) if outside else (other, True)


def _whole_ends(span: Range, bounds: Bounds) -> tuple[int, int]:
    """The first and the last whole number; an end that is missing lies `max_digits` digits away."""
    low = high = None
    if span.low is not None:
        low = int(span.low.to_integral_value(ROUND_CEILING))
        low += span.low_open and low == span.low
    if span.high is not None:
        high = int(span.high.to_integral_value(ROUND_FLOOR))
        high -= span.high_open and high == span.high
    far = 10**bounds.max_digits - 1
    if low is None:
        low = -far if high is None or high > -far else high * 10
    if high is None:
        high = far if low < far else low * 10
    return low, high


def _numbers(span: Range, places: int, bounds: Bounds) -> Expr:
    far = Decimal(10**bounds.max_digits)
    low, high = span.low, span.high
    low_open, high_open = span.low_open, span.high_open
    if low is None:
        low, low_open = min(-far, (high or Decimal(0)) * 10), True
    if high is None:
        high, high_open = max(far, low * 10), True
    zero = Decimal(0)
    positive = negative = NOTHING
    if high >= 0:
        starts_open = low_open if low >= 0 else False
        positive = _magnitudes(max(zero, low), high, places, low_open=starts_open, high_open=high_open)
    if low < 0:
        start_open = high_open if high <= 0 else False  # -0.0 is in the range where 0 is
        negative = _magnitudes(max(zero, -high), -low, places, low_open=start_open, high_open=low_open)
    return choice(positive, sequence(Literal("-"), negative))


def _magnitudes(low: Decimal, high: Decimal, places: int, *, low_open: bool, high_open: bool) -> Expr:
    """The numbers from `low`, which is not negative, to `high`."""
    if low > high or (low == high and (low_open or high_open)):
        return NOTHING
    first, from_digits = _split(low)
    last, to_digits = _split(high)
    if first == last:
        behind = fractions(from_digits, to_digits, places, low_open=low_open, high_open=high_open)
        return sequence(Literal(str(first)), behind)
    options: list[Expr] = []
    if from_digits or low_open:
        behind = fractions(from_digits, None, places, low_open=low_open, high_open=False)
        options.append(sequence(Literal(str(first)), behind))
        first += 1
    anything = optional(sequence(Literal("."), repeat(DIGIT, 1, places))) if places else Literal("")
    options.append(sequence(naturals(first, last - 1), anything))
    if to_digits or not high_open:
        behind = fractions("", to_digits, places, low_open=False, high_open=high_open)
        options.append(sequence(Literal(str(last)), behind))
    return choice(*options)


def _split(value: Decimal) -> tuple[int, str]:
    """The whole part and the digits after the point, without trailing zeros."""
    whole, _, digits = f"{value:f}".partition(".")
    return int(whole), digits.rstrip("0")
