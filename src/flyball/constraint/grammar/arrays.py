"""Arrays: first items by position, then the others, within their counts."""

from __future__ import annotations

from typing import Any, cast

from flyball.constraint.grammar.canonical import COMMA
from flyball.constraint.grammar.scope import At, Node, Scope
from flyball.constraint.grammar.tree import EMPTY, NOTHING, Expr, Literal, choice, optional, repeat, sequence


def array_expr(schema: Node, at: At, scope: Scope) -> Expr:
    """The arrays that follow the schema."""
    low = int(schema.get("minItems", 0))
    first = cast("list[Any]", schema.get("prefixItems", []))
    if isinstance(schema.get("items", True), list):
        raise at.refuse("items", "a list of schemas is an older dialect's; use 'prefixItems'")
    high = schema.get("maxItems")
    high = max(low, len(first) + scope.bounds.max_items) if high is None else int(high)
    if schema.get("uniqueItems") and high > 1:
        raise at.refuse(
            "uniqueItems", "whether items differ cannot be told while they are written; leave it out"
        )
    if high < low:
        return NOTHING
    starts = [
        scope.compile(inner, at.into("prefixItems", n, name=f"{at.name}-{n + 1}"))
        for n, inner in enumerate(first[:high])
    ]
    further = EMPTY
    if high > len(first):
        item = scope.rule(
            "item", scope.compile(schema.get("items", True), at.into("items", name=f"{at.name}-item"))
        )
        further = item
    return scope.rule(at.name, sequence(Literal("["), _members(starts, further, low, high), Literal("]")))


def _members(starts: list[Expr], further: Expr, low: int, high: int) -> Expr:
    """The items with commas between them, from the last place to the first: what may end, may end there."""
    count = len(starts)
    if high > count:
        if not count:
            rest = repeat(sequence(COMMA, further), max(0, low - 1), high - 1)
            some = sequence(further, rest)
            return some if low else optional(some)
        tail = repeat(sequence(COMMA, further), max(0, low - count), high - count)
    else:
        tail = EMPTY
    for n in range(count - 1, -1, -1):
        member = sequence(COMMA if n else EMPTY, starts[n], tail)
        tail = member if n < low else (optional(member) if member != NOTHING else EMPTY)
    return choice(tail)
