"""Whether a text is a GBNF grammar that llama.cpp can work with, found out before any model is asked.

It reads what llama.cpp's own parser reads, and says where the text goes wrong, which that parser does not.
"""

from __future__ import annotations

import re

from msgspec import Struct

from flyball.core.errors import GrammarMalformed, GrammarWithoutRoot

MOST_TIMES = 2_000
"""The largest count: llama.cpp refuses a larger one at the lower end, and forgets it at the upper."""

_NAME = re.compile(r"[a-zA-Z0-9-]+")
_SPACE = re.compile(r"(?:[ \t]|#[^\r\n]*)*")
_WIDE_SPACE = re.compile(r"(?:[ \t\r\n]|#[^\r\n]*)*")
_COUNT = re.compile(r"\{[ \t]*(\d+)[ \t]*(?:(,)[ \t]*(\d*)[ \t]*)?\}")
_TOKEN = re.compile(r"!?<(?:\[\d+\]|[^<>\r\n]+)>")
_HEX = {"x": 2, "u": 4, "U": 8}
_ESCAPED = {"t": "\t", "r": "\r", "n": "\n"}


class Symbol(Struct):
    """A part of a sequence: a rule by name, a group by its options, or text; whether it may be left out."""

    rule: str = ""
    group: list[list[Symbol]] | None = None
    empty: bool = False


def check_grammar(text: str) -> None:
    """Check that a text is a GBNF grammar with a rule `root`, whose rules can be worked with.

    Each of them is defined, once; none begins with itself, and each can come to an end.

    Raises:
        GrammarWithoutRoot: it has no rule `root`.
        GrammarMalformed: it is none: details `line` and `column` (from 1), the message says what is wrong
        there.
    """
    reader = _Reader(text)
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


class _Reader:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.rules: dict[str, list[list[Symbol]]] = {}
        self.used: dict[str, int] = {}
        self.defined: dict[str, int] = {}

    def wrong(self, what: str, at: int | None = None) -> GrammarMalformed:
        at = self.at if at is None else at
        line, column = self.text.count("\n", 0, at) + 1, at - (self.text.rfind("\n", 0, at) + 1) + 1
        return GrammarMalformed(f"line {line}, column {column}: {what}", line=line, column=column)

    def grammar(self) -> None:
        if "\0" in self.text:
            raise self.wrong("a NUL character ends the grammar here", self.text.index("\0"))
        self.skip(_WIDE_SPACE)
        while self.at < len(self.text):
            self.rule()

    def rule(self) -> None:
        start, name = self.at, self.name("the name of a rule")
        self.skip(_SPACE)
        if not self.text.startswith("::=", self.at):
            raise self.wrong(f"'::=' should follow the name {name!r}")
        self.at += 3
        self.skip(_WIDE_SPACE)
        if name in self.defined:
            line = self.text.count("\n", 0, self.defined[name]) + 1
            raise self.wrong(f"the rule {name!r} is defined already, in line {line}", start)
        self.defined[name] = start
        self.rules[name] = self.alternatives(nested=False)
        if self.at < len(self.text) and self.peek() not in "\r\n":
            raise self.wrong(f"{self.peek()!r} is unexpected; a rule ends with its line")
        self.skip(_WIDE_SPACE)

    def alternatives(self, *, nested: bool) -> list[list[Symbol]]:
        options = [self.sequence(nested=nested)]
        while self.peek() == "|":
            self.at += 1
            self.skip(_WIDE_SPACE)
            options.append(self.sequence(nested=nested))
        return options

    def sequence(self, *, nested: bool) -> list[Symbol]:
        symbols: list[Symbol] = []
        space = _WIDE_SPACE if nested else _SPACE
        while (char := self.peek()) and (symbol := self.symbol(char)) is not None:
            self.skip(space)
            symbol.empty |= self.counts(space)
            symbols.append(symbol)
        return symbols

    def symbol(self, char: str) -> Symbol | None:
        if char == '"':
            return Symbol(empty=self.literal())
        if char == "[":
            self.characters()
        elif char == ".":
            self.at += 1
        elif char in "<!":
            token = _TOKEN.match(self.text, self.at)
            if token is None:
                raise self.wrong("a token is written <[number]> or <text>")
            self.at = token.end()
        elif char == "(":
            return self.group()
        elif _NAME.match(char):
            start = self.at
            name = self.name("a rule")
            self.used.setdefault(name, start)
            return Symbol(rule=name)
        elif char in "*+?{":
            raise self.wrong(f"{char!r} has nothing before it to repeat")
        else:
            return None
        return Symbol()

    def group(self) -> Symbol:
        start = self.at
        self.at += 1
        self.skip(_WIDE_SPACE)
        options = self.alternatives(nested=True)
        if self.peek() != ")":
            raise (
                self.wrong("this '(' is not closed", start) if not self.peek() else self.wrong("expected ')'")
            )
        self.at += 1
        return Symbol(group=options)

    def literal(self) -> bool:
        """Reads a literal; whether it is empty."""
        start = self.at
        self.at += 1
        while self.peek() != '"':
            if not self.peek():
                raise self.wrong("this text is not closed", start)
            self.character()
        self.at += 1
        return self.at == start + 2

    def characters(self) -> None:
        start = self.at
        self.at += 1
        if self.peek() == "^":
            self.at += 1
        if self.peek() == "]":
            raise self.wrong("this set is empty", start)
        while self.peek() != "]":
            if not self.peek():
                raise self.wrong("this set is not closed", start)
            self.characters_from_to()
        self.at += 1

    def characters_from_to(self) -> None:
        """Reads a character of a set, or a range of them."""
        start, first = self.at, self.character()
        if self.peek() != "-" or self.text[self.at + 1 : self.at + 2] in ("", "]"):
            return
        self.at += 1
        if self.character() < first:
            told = self.text[start : self.at]
            raise self.wrong(f"the range {told} holds nothing: it begins after its end", start)

    def character(self) -> int:
        """Reads a character; its number."""
        if self.peek() != "\\":
            self.at += 1
            return ord(self.text[self.at - 1])
        mark = self.text[self.at + 1 : self.at + 2]
        if mark in _HEX:
            digits = self.text[self.at + 2 : self.at + 2 + _HEX[mark]]
            if not re.fullmatch(rf"[0-9a-fA-F]{{{_HEX[mark]}}}", digits):
                raise self.wrong(f"\\{mark} needs {_HEX[mark]} hexadecimal digits")
            self.at += 2 + _HEX[mark]
            return int(digits, 16)
        if mark and mark in 'trn\\"[]-':
            self.at += 2
            return ord(_ESCAPED.get(mark, mark))
        raise self.wrong(f"there is no escape \\{mark}")

    def counts(self, space: re.Pattern[str]) -> bool:
        """Reads the counts behind a symbol; whether they allow none of it."""
        empty = False
        while (char := self.peek()) and char in "*+?{":
            if char == "{":
                count = _COUNT.match(self.text, self.at)
                if count is None:
                    raise self.wrong("a count is written {3}, {3,} or {3,5}")
                low, high = int(count[1]), int(count[3] or count[1])
                if low > MOST_TIMES or high > MOST_TIMES:
                    raise self.wrong(
                        f"a count goes up to {MOST_TIMES}; make a rule of a part and repeat that"
                    )
                if count[3] and high < low:
                    raise self.wrong(f"the count {count[0]} begins after its end")
                empty |= low == 0
                self.at = count.end()
            else:
                empty |= char != "+"
                self.at += 1
            self.skip(space)
        return empty

    def name(self, what: str) -> str:
        found = _NAME.match(self.text, self.at)
        if found is None:
            raise self.wrong(f"expected {what}, not {self.peek()!r}")
        self.at = found.end()
        return found[0]

    def skip(self, space: re.Pattern[str]) -> None:
        found = space.match(self.text, self.at)
        self.at = found.end() if found else self.at

    def peek(self) -> str:
        return self.text[self.at : self.at + 1]


def _check_recursion(reader: _Reader) -> None:
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


def _check_ends(reader: _Reader) -> None:
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
