"""How long the strings of a tree are, and trees whose strings keep to a length."""

from __future__ import annotations

from typing import assert_never

from flyball.constraint.grammar.tree import (
    Chars,
    Choice,
    Expr,
    Literal,
    Ref,
    Repeat,
    Sequence,
    choice,
    repeat,
    sequence,
)

Length = tuple[int, int | None]


def length(tree: Expr) -> Length:
    """The least and the most characters; None where there is no most."""
    match tree:
        case Literal():
            return len(tree.text), len(tree.text)
        case Chars():
            return 1, 1
        case Sequence():
            lows, highs = zip(*(length(part) for part in tree.parts), strict=True)
            return sum(lows), None if None in highs else sum(highs)
        case Choice():
            if not tree.options:
                return 0, 0
            lows, highs = zip(*(length(option) for option in tree.options), strict=True)
            return min(lows), None if None in highs else max(highs)
        case Repeat():
            low, high = length(tree.item)
            return low * tree.low, None if high is None or tree.high is None else high * tree.high
        case Ref():
            raise TypeError(f"the rule {tree.rule} is not at hand")
        case _:
            assert_never(tree)


def closed(tree: Expr, most: int) -> Expr:
    """The tree with an end to each count that has none."""
    if length(tree)[1] is not None:
        return tree
    match tree:
        case Literal() | Chars() | Ref():
            return tree
        case Sequence():
            return sequence(*(closed(part, most) for part in tree.parts))
        case Choice():
            return choice(*(closed(option, most) for option in tree.options))
        case Repeat():
            high = max(most, tree.low) if tree.high is None else tree.high
            return repeat(closed(tree.item, most), tree.low, high)
        case _:
            assert_never(tree)


def within(tree: Expr, low: int, high: int | None) -> Expr | None:
    """The strings of the tree that are `low` to `high` long, where its shape shows them; else None.

    It shows them where at most one count of single characters decides about the length.
    """
    least, most = length(tree)
    if least >= low and (high is None or (most is not None and most <= high)):
        return tree
    if isinstance(tree, Choice):
        options = [within(option, low, high) for option in tree.options]
        return None if None in options else choice(*(option for option in options if option is not None))
    parts = tree.parts if isinstance(tree, Sequence) else (tree,)
    open_parts = [n for n, part in enumerate(parts) if (size := length(part))[0] != size[1]]
    if len(open_parts) > 1:
        return None
    if not open_parts:
        return choice()  # one length, and not the right one
    part = parts[open_parts[0]]
    if not isinstance(part, Repeat) or length(part.item) != (1, 1):
        return None
    fixed = least - part.low
    ends = [end for end in (part.high, None if high is None else high - fixed) if end is not None]
    limited = repeat(part.item, max(part.low, low - fixed), min(ends) if ends else None)
    return sequence(*parts[: open_parts[0]], limited, *parts[open_parts[0] + 1 :])
