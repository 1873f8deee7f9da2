"""Ranges of numbers digit by digit: exact, and no larger than the bounds are long."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from flyball.constraint.grammar.tree import (
    EMPTY,
    NOTHING,
    Chars,
    Expr,
    Literal,
    Repeat,
    choice,
    optional,
    repeat,
    sequence,
)

Share = Callable[[Expr], Expr]
"""Makes a rule of an expression that several others end with."""

DIGIT = Chars(((0x30, 0x39),))
NONZERO = Chars(((0x31, 0x39),))


def naturals(low: int, high: int) -> Expr:
    """The whole numbers from `low` (not negative) to `high`, without leading zeros."""
    if low > high:
        return NOTHING
    options: list[Expr] = []
    if low == 0:
        options.append(Literal("0"))
        low = 1
    full: list[int] = []
    for length in range(len(str(low)), len(str(high)) + 1) if low <= high else ():
        start, end = max(low, 10 ** (length - 1)), min(high, 10**length - 1)
        if start == 10 ** (length - 1) and end == 10**length - 1:
            full.append(length)
        else:
            options.append(_between(str(start), str(end)))
    if full:  # lengths without a bound of their own lie next to each other
        options.append(sequence(NONZERO, repeat(DIGIT, full[0] - 1, full[-1] - 1)))
    return choice(*options)


def integers(low: int, high: int) -> Expr:
    """The whole numbers from `low` to `high`; zero has no sign."""
    negative = sequence(Literal("-"), naturals(max(1, -high), -low)) if low < 0 else NOTHING
    positive = naturals(max(0, low), high) if high >= 0 else NOTHING
    return choice(positive, negative)


def multiples(low: int, high: int, of: int, most: int, share: Share) -> Expr | None:
    """The multiples in a range; None where that takes more than `most` rules."""
    parts: list[Expr] = []
    for sign, start, end in (("", max(0, low), high), ("-", max(1, -high), -low)):
        if start > end:
            continue
        found = _multiples(start, end, of, most, share)
        if found is None:
            return None
        parts.append(sequence(Literal(sign), found))
    return choice(*parts)


def _multiples(low: int, high: int, of: int, most: int, share: Share) -> Expr | None:
    first = -(-low // of) * of
    if first > high:
        return NOTHING
    if (high - first) // of < 64:
        return choice(*(Literal(str(value)) for value in range(first, high + 1, of)))
    zeros = len(str(of)) - 1
    if of == 10**zeros:  # the numbers below, with zeros behind
        inner = sequence(naturals(max(1, first // of), high // of), Literal("0" * zeros))
        return choice(Literal("0"), inner) if first == 0 else inner
    if of * len(str(high)) > most:
        return None
    options: list[Expr] = [Literal("0")] if first == 0 else []
    for length in range(len(str(max(1, low))), len(str(high)) + 1):
        start, end = max(low, 10 ** (length - 1)), min(high, 10**length - 1)
        if start <= end:
            options.append(_between(str(start), str(end), of, share))
    return choice(*options)


def _between(low: str, high: str, of: int = 1, share: Share | None = None) -> Expr:
    """The numbers of one length between two, or their multiples."""
    last = len(low)

    @cache
    def rest(at: int, above: bool, below: bool, left: int) -> Expr:
        if at == last:
            return EMPTY if left == 0 else NOTHING
        above = above or not low[at:].strip("0")
        below = below or not high[at:].strip("9")
        if above and below and of == 1:
            return repeat(DIGIT, last - at, last - at)
        start = 0 if above else int(low[at])
        end = 9 if below else int(high[at])
        by_rest: dict[Expr, list[int]] = {}
        for digit in range(start, end + 1):
            tail = rest(at + 1, above or digit > start, below or digit < end, (left * 10 + digit) % of)
            if tail != NOTHING:
                by_rest.setdefault(tail, []).append(digit)
        found = choice(*(sequence(_one_of(digits), tail) for tail, digits in by_rest.items()))
        return share(found) if share else found

    past = False  # neither bound has been left behind
    return rest(0, past, past, 0)


def fractions(low: str, high: str | None, most: int, *, low_open: bool, high_open: bool) -> Expr:
    """What may follow a whole number: nothing, or a point and up to `most` digits, from `.low` to `.high`.

    Without `high` there is no upper end. An open end is not in the range itself. Trailing zeros are allowed.
    """
    size = max(len(low), len(high or ""), 1)
    low = low.ljust(size, "0")
    top = (high or "").ljust(size, "0")

    @cache
    def rest(at: int, above: bool, below: bool) -> Expr:
        above = above or (not low_open and not low[at:].strip("0"))
        ends = _may_end(low[at:], above, low_open, lowest=True) and _may_end(
            top[at:], below, high_open, lowest=False
        )
        if at == most:
            return EMPTY if ends else NOTHING
        if above and below:
            return repeat(DIGIT, 0, most - at)
        start = 0 if above or at >= size else int(low[at])
        end = 9 if below else (int(top[at]) if at < size else 0)
        by_rest: dict[Expr, list[int]] = {}
        for digit in range(start, end + 1):
            tail = rest(at + 1, above or digit > _digit(low, at), below or digit < _digit(top, at))
            if tail != NOTHING:
                by_rest.setdefault(tail, []).append(digit)
        further = choice(*(sequence(_one_of(digits), tail) for tail, digits in by_rest.items()))
        return optional(further) if ends else further

    below = high is None
    past = False
    whole = _may_end(low, past, low_open, lowest=True) and _may_end(top, below, high_open, lowest=False)
    point = sequence(Literal("."), _not_empty(rest(0, past, below))) if most else NOTHING
    return optional(point) if whole else point


def _not_empty(expr: Expr) -> Expr:
    if isinstance(expr, Repeat) and expr.low == 0:
        return repeat(expr.item, 1, expr.high)
    return expr


def _may_end(digits: str, past: bool, is_open: bool, *, lowest: bool) -> bool:
    """Whether a number may stop where these digits of its bound are still to come."""
    if past:
        return True
    zeros = not digits.strip("0")
    return (zeros and not is_open) if lowest else (not zeros or not is_open)


def _digit(bound: str, at: int) -> int:
    return int(bound[at]) if at < len(bound) else 0


def _one_of(digits: list[int]) -> Expr:
    if len(digits) == 1:
        return Literal(str(digits[0]))
    if digits == list(range(digits[0], digits[-1] + 1)):
        return Chars(((0x30 + digits[0], 0x30 + digits[-1]),))
    return choice(*(Literal(str(digit)) for digit in digits))
