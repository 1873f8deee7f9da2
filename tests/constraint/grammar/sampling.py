"""Texts that a grammar generates, from its tree and a seeded source of chance."""

from __future__ import annotations

import random
from typing import assert_never

from flyball.constraint.grammar.tree import Chars, Choice, Expr, Literal, Ref, Repeat, Rules, Sequence


def sample(rules: Rules, chance: random.Random) -> str:
    """One text of the grammar. Edges come often: no repetition, all of them, the ends of a set."""
    return "".join(_parts(rules["root"], rules, chance))


def _parts(expr: Expr, rules: Rules, chance: random.Random) -> list[str]:
    match expr:
        case Literal():
            return [expr.text]
        case Chars():
            return [_char(expr, chance)]
        case Ref():
            return _parts(rules[expr.rule], rules, chance)
        case Sequence():
            return [text for part in expr.parts for text in _parts(part, rules, chance)]
        case Choice():
            return _parts(chance.choice(expr.options), rules, chance)
        case Repeat():
            return [text for _ in range(_count(expr, chance)) for text in _parts(expr.item, rules, chance)]
        case _:
            assert_never(expr)


def _count(expr: Repeat, chance: random.Random) -> int:
    few = expr.low + chance.choice((0, 1, 1, 2, 3, 7))
    most = few if expr.high is None else expr.high
    # The full count only of what is small: a list of lists of full length would be huge.
    if isinstance(expr.item, Chars) and most < 200 and chance.random() < 0.1:
        return most
    return min(few, most)


def _char(expr: Chars, chance: random.Random) -> str:
    low, high = chance.choice(expr.ranges)
    point = chance.choice((low, high, chance.randint(low, high), chance.randint(low, min(high, low + 100))))
    return chr(point)
