"""Strings that follow several trees at once, and strings of a limited length, by derivatives.

A tree's derivative by a character is what may follow it. Walking a tuple of trees this way, and counting
characters, gives exactly the strings that all of them match within the length, as rules without a loop.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import assert_never

from flyball.constraint.grammar.charset import ANY, Ranges, common, united
from flyball.constraint.grammar.tree import (
    EMPTY,
    NOTHING,
    Chars,
    Choice,
    Expr,
    Literal,
    Ref,
    Repeat,
    Sequence,
    choice,
    optional,
    repeat,
    sequence,
)

MOST_STATES = 800
LONGEST = 250
"""The longest strings that are walked: each character is a step of recursion."""

State = tuple[Expr, ...]


class TooLargeError(Exception):
    """The strings wanted take too many rules."""


def intersection(
    trees: State, low: int, high: int, *, write: Callable[[Expr], Expr], share: Callable[[Expr], Expr]
) -> Expr:
    """The strings of `low` to `high` characters that every tree matches.

    `write` says how a character is written, `share` makes a rule of what several others end with.

    Raises:
        TooLargeError: they are too long, or too many cases have to be told apart.
    """
    if high > LONGEST:
        raise TooLargeError
    known: dict[tuple[State, int], Expr] = {}

    def rest(state: State, at: int) -> Expr:
        if (state, at) in known:
            return known[state, at]
        if len(known) > MOST_STATES:
            raise TooLargeError
        ends = at >= low and all(nullable(tree) for tree in state)
        found = NOTHING
        if at < high:
            steps = [
                sequence(write(Chars(chars)), rest(following, at + 1))
                for following, chars in _steps(state).items()
            ]
            found = choice(*(step for step in steps if step != NOTHING))
        if ends:
            found = optional(found)
        known[state, at] = made = share(found)
        return made

    return rest(trees, 0)


def matches(tree: Expr, text: str) -> bool:
    """Whether the tree matches the text."""
    for char in text:
        tree = derivative(tree, ord(char))
        if tree == NOTHING:
            return False
    return nullable(tree)


def nullable(tree: Expr) -> bool:
    """Whether the tree matches the empty text."""
    match tree:
        case Literal():
            return not tree.text
        case Chars():
            return False
        case Sequence():
            return all(nullable(part) for part in tree.parts)
        case Choice():
            return any(nullable(option) for option in tree.options)
        case Repeat():
            return tree.low == 0 or nullable(tree.item)
        case Ref():
            raise TypeError(f"the rule {tree.rule} is not at hand")
        case _:
            assert_never(tree)


def derivative(tree: Expr, point: int) -> Expr:
    """What may follow this character."""
    match tree:
        case Literal():
            return Literal(tree.text[1:]) if tree.text and ord(tree.text[0]) == point else NOTHING
        case Chars():
            return EMPTY if any(low <= point <= high for low, high in tree.ranges) else NOTHING
        case Sequence():
            first, behind = tree.parts[0], sequence(*tree.parts[1:])
            after = sequence(derivative(first, point), behind)
            return choice(after, derivative(behind, point)) if nullable(first) else after
        case Choice():
            return choice(*(derivative(option, point) for option in tree.options))
        case Repeat():
            high = None if tree.high is None else tree.high - 1
            return sequence(derivative(tree.item, point), repeat(tree.item, max(0, tree.low - 1), high))
        case Ref():
            raise TypeError(f"the rule {tree.rule} is not at hand")
        case _:
            assert_never(tree)


def _steps(state: State) -> dict[State, Ranges]:
    """Where each character leads, characters that lead to the same place together."""
    edges = {0}
    for tree in state:
        for low, high in _first(tree):
            edges.update((low, high + 1))
    points = sorted(edges)
    leads: dict[State, list[tuple[int, int]]] = {}
    for start, end in zip(points, [*points[1:], 0x110000], strict=True):
        following = tuple(derivative(tree, start) for tree in state)
        if NOTHING not in following:
            leads.setdefault(following, []).append((start, end - 1))
    return {following: _characters(ranges) for following, ranges in leads.items()}


def _characters(ranges: list[tuple[int, int]]) -> Ranges:
    return common(united(ranges), ANY)


def _first(tree: Expr) -> Iterator[tuple[int, int]]:
    """The characters that a tree may begin with, as ranges."""
    match tree:
        case Literal():
            if tree.text:
                yield ord(tree.text[0]), ord(tree.text[0])
        case Chars():
            yield from tree.ranges
        case Sequence():
            for part in tree.parts:
                yield from _first(part)
                if not nullable(part):
                    break
        case Choice():
            for option in tree.options:
                yield from _first(option)
        case Repeat():
            yield from _first(tree.item)
        case Ref():
            raise TypeError(f"the rule {tree.rule} is not at hand")
        case _:
            assert_never(tree)
