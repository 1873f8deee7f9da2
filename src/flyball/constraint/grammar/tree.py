"""A grammar as a tree: what GBNF can say, in six kinds of nodes.

Build with `sequence`, `choice`, `repeat` and `optional`, never with the classes: the functions keep trees
in a simple form, and carry `NOTHING` (what no text matches) upwards, so that an impossible part makes what
needs it impossible, and vanishes from what does not.
"""

from __future__ import annotations

from msgspec import Struct

from flyball.constraint.grammar.charset import Ranges


class Literal(Struct, frozen=True):
    """Exactly this text."""

    text: str


class Chars(Struct, frozen=True):
    """One character of a set."""

    ranges: Ranges


class Sequence(Struct, frozen=True):
    """One part after the other."""

    parts: tuple[Expr, ...]


class Choice(Struct, frozen=True):
    """One of the options; none of them means that nothing matches."""

    options: tuple[Expr, ...]


class Repeat(Struct, frozen=True):
    """The item `low` to `high` times; without `high`, any number of times."""

    item: Expr
    low: int
    high: int | None


class Ref(Struct, frozen=True):
    """What the rule of that name says."""

    rule: str


Expr = Literal | Chars | Sequence | Choice | Repeat | Ref
Rules = dict[str, Expr]

EMPTY = Literal("")
"""The empty text."""
NOTHING = Choice(())
"""No text at all, not even the empty one."""


def sequence(*parts: Expr) -> Expr:
    """One after the other; literals that meet become one."""
    flat: list[Expr] = []
    for part in parts:
        for piece in part.parts if isinstance(part, Sequence) else (part,):
            if piece == NOTHING:
                return NOTHING
            if isinstance(piece, Literal):
                if not piece.text:
                    continue
                if flat and isinstance(flat[-1], Literal):
                    flat[-1] = Literal(flat[-1].text + piece.text)
                    continue
            flat.append(piece)
    if not flat:
        return EMPTY
    return flat[0] if len(flat) == 1 else Sequence(tuple(flat))


def choice(*options: Expr) -> Expr:
    """One of these; each of them once, those that match nothing left out."""
    flat: dict[Expr, None] = {}
    for option in options:
        for piece in option.options if isinstance(option, Choice) else (option,):
            flat[piece] = None
    return next(iter(flat)) if len(flat) == 1 else Choice(tuple(flat))


def repeat(item: Expr, low: int, high: int | None) -> Expr:
    """The item so many times."""
    if high is not None and high < low:
        return NOTHING
    if high == 0 or item == EMPTY:
        return EMPTY
    if item == NOTHING:
        return NOTHING if low else EMPTY
    if low == high == 1:
        return item
    return Repeat(item, low, high)


def optional(item: Expr) -> Expr:
    """The item, or nothing in its place."""
    return repeat(item, 0, 1)
