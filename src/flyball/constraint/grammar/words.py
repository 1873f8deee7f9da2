"""Texts in which some words do not occur."""

from __future__ import annotations

from flyball.constraint.grammar.charset import ANY, of, without
from flyball.constraint.grammar.rulebook import RuleBook
from flyball.constraint.grammar.tree import EMPTY, Chars, Expr, Ref, choice, sequence

_SPACE = of(" \t\n\r")


def text_without(words: tuple[str, ...], book: RuleBook) -> Expr:
    """Any text that is not empty, does not begin with white space, and has none of the words in it.

    It has no end of its own: the limit of tokens is its end. The rules follow how much of a word has just
    been written; where a word would be complete, there is no way on.
    """
    states = list(dict.fromkeys(["", *(word[:n] for word in words for n in range(1, len(word)))]))
    names = {state: f"text-after-{n}" for n, state in enumerate(states)}
    for state in states:
        book.rules[names[state]] = choice(*_ways_on(state, words, names), EMPTY)
    started = [
        sequence(Chars(without(part.ranges, _SPACE)), following)
        for part, following in _steps("", words, names)
        if without(part.ranges, _SPACE)
    ]
    return book.add("text", choice(*started))


def _ways_on(state: str, words: tuple[str, ...], names: dict[str, str]) -> list[Expr]:
    return [sequence(part, following) for part, following in _steps(state, words, names)]


def _steps(state: str, words: tuple[str, ...], names: dict[str, str]) -> list[tuple[Chars, Ref]]:
    """Where the characters lead from here: those of the words each to its place, all others back to none."""
    letters = {char for word in words for char in word}
    leads: dict[str, list[str]] = {}
    for char in sorted(letters):
        written = state + char
        if any(written.endswith(word) for word in words):
            continue
        tail = next(written[n:] for n in range(len(written) + 1) if written[n:] in names)
        leads.setdefault(tail, []).append(char)
    elsewhere = letters - set(leads.pop("", []))
    steps = [(Chars(without(ANY, of("".join(elsewhere)))), Ref(names[""]))]
    return steps + [(Chars(of("".join(chars))), Ref(names[tail])) for tail, chars in leads.items()]
