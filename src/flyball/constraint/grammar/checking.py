"""Whether a text is a GBNF grammar that llama.cpp can work with, found out before any model is asked.

It reads what llama.cpp's own parser reads, and says where the text goes wrong, which that parser does not.
"""

from __future__ import annotations

from flyball.constraint.grammar.reading import GrammarReader, Symbol
from flyball.core.errors import GrammarWithoutRoot


def check_grammar(text: str) -> None:
    """Check that a text is a GBNF grammar with a rule `root`, whose rules can be worked with.

    Each of them is defined, once; none begins with itself, and each can come to an end.

    Raises:
        GrammarWithoutRoot: it has no rule `root`.
        GrammarMalformed: it is none: details `line` and `column` (from 1), the message says what is wrong
        there.
    """
    checked(text)


def checked(text: str) -> GrammarReader:
    """A text as it was read, once `check_grammar` has nothing against it."""
    reader = GrammarReader(text)
    reader.grammar()
    for name, at in reader.used.items():
        if name not in reader.rules:
            raise reader.wrong(f"the rule {name!r} is not defined", at)
    if "root" not in reader.rules:
        rules = list(reader.rules)
        raise GrammarWithoutRoot(
            "line 1, column 1: there is no rule 'root', where a grammar begins (its rules: "
            f"{', '.join(rules[:8]) or 'none'}): name one so",
            line=1,
            column=1,
            rules=rules,
        )
    _check_recursion(reader)
    _check_ends(reader)
    return reader


def _check_recursion(reader: GrammarReader) -> None:
    """A rule that begins with itself would never begin: llama.cpp does not take it."""
    rules = reader.rules
    empty = _empty_rules(rules)
    begins = {name: _first(options, empty) for name, options in rules.items()}
    for name in rules:
        seen: set[str] = set()
        waiting = list(begins[name])
        while waiting:
            rule = waiting.pop()
            if rule == name:
                raise reader.wrong(f"the rule {name!r} begins with itself", reader.defined[name])
            if rule not in seen:
                seen.add(rule)
                waiting += begins[rule]


def _check_ends(reader: GrammarReader) -> None:
    """A rule all of whose ways lead back to itself would never end, and neither would the answer."""
    ends: set[str] = set()
    found = True
    while found:
        found = False
        for name in reversed(reader.rules):  # what a rule needs mostly stands below it
            if name not in ends and _may_end(reader.rules[name], ends):
                ends.add(name)
                found = True
    for name, at in reader.defined.items():
        if name not in ends:
            raise reader.wrong(f"the rule {name!r} can never end: give it a way out", at)


def _may_end(options: list[list[Symbol]], ends: set[str]) -> bool:
    return any(all(_has_end(symbol, ends) for symbol in option) for option in options)


def _has_end(symbol: Symbol, ends: set[str]) -> bool:
    if symbol.empty:
        return True
    if symbol.group is not None:
        return _may_end(symbol.group, ends)
    return not symbol.rule or symbol.rule in ends


def _empty_rules(rules: dict[str, list[list[Symbol]]]) -> set[str]:
    empty: set[str] = set()
    while True:
        more = {name for name, options in rules.items() if _may_be_empty(options, empty)} - empty
        if not more:
            return empty
        empty |= more


def _may_be_empty(options: list[list[Symbol]], empty: set[str]) -> bool:
    return any(all(_skippable(symbol, empty) for symbol in option) for option in options)


def _skippable(symbol: Symbol, empty: set[str]) -> bool:
    if symbol.empty or symbol.rule in empty:
        return True
    return symbol.group is not None and _may_be_empty(symbol.group, empty)


def _first(options: list[list[Symbol]], empty: set[str]) -> set[str]:
    """The rules that may stand first."""
    found: set[str] = set()
    for option in options:
        for symbol in option:
            if symbol.rule:
                found.add(symbol.rule)
            elif symbol.group is not None:
                found |= _first(symbol.group, empty)
            if not _skippable(symbol, empty):
                break
    return found
