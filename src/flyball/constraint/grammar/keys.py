"""Keys that a schema does not name: any string but the names it has."""

from __future__ import annotations

from flyball.constraint.grammar.canonical import ANY_CHAR, QUOTE, encoded
from flyball.constraint.grammar.charset import ANY, of, without
from flyball.constraint.grammar.scope import Scope
from flyball.constraint.grammar.tree import NOTHING, Chars, Expr, choice, optional, repeat, sequence


def other_key(names: tuple[str, ...], scope: Scope) -> Expr:
    """A key of up to `max_key` characters that is none of the names, with its quotes."""
    char = scope.rule("char", encoded(ANY_CHAR))
    longest = max(scope.bounds.max_key, max((len(name) + 1 for name in names), default=0))

    def rest(left: tuple[str, ...], at: int) -> Expr:
        """What may follow where these names have been written so far."""
        by_first: dict[str, list[str]] = {}
        for name in left:
            if len(name) > at:
                by_first.setdefault(name[at], []).append(name)
        apart = Chars(without(ANY, of("".join(by_first))))
        options = [sequence(encoded(apart), repeat(char, 0, longest - at - 1))]
        for first, names_there in by_first.items():
            options.append(sequence(encoded(Chars(of(first))), rest(tuple(names_there), at + 1)))
        further = choice(*options)
        ends = all(len(name) != at for name in left)
        return scope.rule("key", optional(further) if ends else further)

    content = rest(names, 0) if names else repeat(char, 0, longest)
    return scope.rule("key", sequence(QUOTE, content, QUOTE)) if content != NOTHING else NOTHING
