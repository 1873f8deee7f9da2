"""Strings: of a length, of a pattern, of a format, or of all of these at once."""

from __future__ import annotations

from typing import Any, cast

from flyball.constraint.grammar.automaton import TooLargeError, intersection
from flyball.constraint.grammar.canonical import ANY_CHAR, QUOTE, encoded
from flyball.constraint.grammar.formats import REFUSED, format_tree
from flyball.constraint.grammar.lengths import closed, length, within
from flyball.constraint.grammar.pattern import PatternError, pattern_tree
from flyball.constraint.grammar.scope import At, Node, Scope
from flyball.constraint.grammar.tree import NOTHING, Chars, Choice, Expr, Repeat, Sequence, repeat, sequence


def string_expr(schema: Node, at: At, scope: Scope, *, most: int | None = None) -> Expr:
    """The strings that follow the schema, in quotes; `most` characters where it sets no limit."""
    most = most or scope.bounds.max_string
    low, high = int(schema.get("minLength", 0)), schema.get("maxLength")
    high = None if high is None else int(high)
    if high is not None and high < low:
        return NOTHING
    trees = string_trees(schema, at)
    if not trees:
        char = scope.rule("char", encoded(ANY_CHAR))
        return scope.rule(
            "string", sequence(QUOTE, repeat(char, low, max(low, most) if high is None else high), QUOTE)
        )
    content = _limited(trees, (low, high), most, at, scope)
    return scope.rule("string", sequence(QUOTE, content, QUOTE))


def string_trees(schema: Node, at: At) -> list[Expr]:
    """What the patterns and the format of a schema say, each as a tree over the string's characters."""
    trees: list[Expr] = []
    for pattern in patterns(schema):
        try:
            trees.append(pattern_tree(pattern))
        except PatternError as error:
            raise at.refuse("pattern", f"in {pattern!r}, {error}") from error
    name = schema.get("format")
    if name in REFUSED:
        raise at.refuse("format", f"strings of the format {name!r} are no regular language; leave it out")
    if isinstance(name, str) and (tree := format_tree(name)) is not None:
        trees.append(tree)
    return trees


def patterns(schema: Node) -> list[str]:
    """The patterns of a schema: one as JSON Schema has it, several where schemas were merged."""
    found: Any = schema.get("pattern", [])
    return [found] if isinstance(found, str) else cast("list[str]", list(found))


def _limited(trees: list[Expr], limits: tuple[int, int | None], most: int, at: At, scope: Scope) -> Expr:
    """What stands between the quotes."""
    low, high = limits
    if len(trees) == 1:
        fitting = within(trees[0], low, high)
        if fitting is not None:
            return _named(encoded(closed(fitting, most)), scope)
    ends = [end for tree in trees if (end := length(tree)[1]) is not None]
    end = min([*ends, most if high is None else high])
    keyword = "pattern" if len(trees) > 1 or high is None else "maxLength"
    try:
        return intersection(
            tuple(trees), low, end, write=encoded, share=lambda expr: scope.rule("text", expr)
        )
    except TooLargeError as error:
        raise at.refuse(
            keyword,
            f"strings of up to {end} characters that also follow the pattern or format take too many rules; "
            "put the length into the pattern",
        ) from error


def _named(expr: Expr, scope: Scope) -> Expr:
    """What is counted gets a rule of its own, so that equal sets are written once."""
    if isinstance(expr, Repeat) and not isinstance(expr.item, Chars):
        return repeat(scope.rule("char", _named(expr.item, scope)), expr.low, expr.high)
    if isinstance(expr, Sequence):
        return sequence(*(_named(part, scope) for part in expr.parts))
    if isinstance(expr, Choice):
        return Choice(tuple(_named(option, scope) for option in expr.options))
    return expr
