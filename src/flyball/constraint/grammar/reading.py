"""Reading a GBNF grammar as llama.cpp's own parser does, and saying where a text goes wrong.

Each rule is read twice at once: as symbols, by which a grammar is checked, and as a tree, by which texts are
matched.
"""

from __future__ import annotations

import re

from msgspec import Struct

from flyball.constraint.grammar.charset import ANY, united, without
from flyball.constraint.grammar.tree import (
    EMPTY,
    NOTHING,
    Chars,
    Expr,
    Literal,
    Ref,
    Rules,
    choice,
    repeat,
    sequence,
)
from flyball.core.errors import GrammarMalformed

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
    """A part of a sequence: a rule by name, a group by its options, or text; whether it may be left out.

    `expr` is the same as a tree.
    """

    rule: str = ""
    group: list[list[Symbol]] | None = None
    empty: bool = False
    expr: Expr = EMPTY


class GrammarReader:
    """One reading of one text: `rules` are there after `grammar()`."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.rules: dict[str, list[list[Symbol]]] = {}
        self.used: dict[str, int] = {}
        self.defined: dict[str, int] = {}
        self.token: str = ""
        """The first token of a model that stands in it: what that matches depends on the model."""

    @property
    def trees(self) -> Rules:
        """The rules as trees."""
        return {name: _tree(options) for name, options in self.rules.items()}

    def wrong(self, what: str, at: int | None = None) -> GrammarMalformed:
        """What is wrong with the text, and where."""
        at = self.at if at is None else at
        line, column = self.text.count("\n", 0, at) + 1, at - (self.text.rfind("\n", 0, at) + 1) + 1
        return GrammarMalformed(f"line {line}, column {column}: {what}", line=line, column=column)

    def grammar(self) -> None:
        """Reads all rules."""
        if "\0" in self.text:
            raise self.wrong("a NUL character ends the grammar here", self.text.index("\0"))
        self.skip(_WIDE_SPACE)
        while self.at < len(self.text):
            self.rule()

    def rule(self) -> None:
        """Reads a rule."""
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
        """Reads what stands between bars."""
        options = [self.sequence(nested=nested)]
        while self.peek() == "|":
            self.at += 1
            self.skip(_WIDE_SPACE)
            options.append(self.sequence(nested=nested))
        return options

    def sequence(self, *, nested: bool) -> list[Symbol]:
        """Reads symbols with their counts; inside brackets they may go on in the next line."""
        symbols: list[Symbol] = []
        space = _WIDE_SPACE if nested else _SPACE
        while (char := self.peek()) and (symbol := self.symbol(char)) is not None:
            self.skip(space)
            self.counts(symbol, space)
            symbols.append(symbol)
        return symbols

    def symbol(self, char: str) -> Symbol | None:
        """Reads a symbol; None where there is none."""
        if char == '"':
            text = self.literal()
            return Symbol(empty=not text, expr=Literal(text))
        if char == "[":
            return Symbol(expr=self.characters())
        if char == ".":
            self.at += 1
            return Symbol(expr=Chars(ANY))
        if char in "<!":
            token = _TOKEN.match(self.text, self.at)
            if token is None:
                raise self.wrong("a token is written <[number]> or <text>")
            self.at = token.end()
            self.token = self.token or token[0]
            return Symbol(expr=NOTHING)
        if char == "(":
            return self.group()
        if _NAME.match(char):
            start = self.at
            name = self.name("a rule")
            self.used.setdefault(name, start)
            return Symbol(rule=name, expr=Ref(name))
        if char in "*+?{":
            raise self.wrong(f"{char!r} has nothing before it to repeat")
        return None

    def group(self) -> Symbol:
        """Reads what stands in brackets."""
        start = self.at
        self.at += 1
        self.skip(_WIDE_SPACE)
        options = self.alternatives(nested=True)
        if self.peek() != ")":
            raise (
                self.wrong("this '(' is not closed", start) if not self.peek() else self.wrong("expected ')'")
            )
        self.at += 1
        return Symbol(group=options, expr=_tree(options))

    def literal(self) -> str:
        """Reads a literal; its text."""
        start = self.at
        self.at += 1
        read: list[str] = []
        while self.peek() != '"':
            if not self.peek():
                raise self.wrong("this text is not closed", start)
            read.append(chr(self.character()))
        self.at += 1
        return "".join(read)

    def characters(self) -> Expr:
        """Reads a set of characters."""
        start = self.at
        self.at += 1
        if negated := self.peek() == "^":
            self.at += 1
        if self.peek() == "]":
            raise self.wrong("this set is empty", start)
        ranges: list[tuple[int, int]] = []
        while self.peek() != "]":
            if not self.peek():
                raise self.wrong("this set is not closed", start)
            ranges.append(self.characters_from_to())
        self.at += 1
        held = united(ranges)
        return Chars(without(ANY, held) if negated else held)

    def characters_from_to(self) -> tuple[int, int]:
        """Reads a character of a set, or a range of them; the first and the last."""
        start, first = self.at, self.character()
        if self.peek() != "-" or self.text[self.at + 1 : self.at + 2] in ("", "]"):
            return first, first
        self.at += 1
        if (last := self.character()) < first:
            told = self.text[start : self.at]
            raise self.wrong(f"the range {told} holds nothing: it begins after its end", start)
        return first, last

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

    def counts(self, symbol: Symbol, space: re.Pattern[str]) -> None:
        """Reads the counts behind a symbol: how often it stands there, and whether it may be left out."""
        while (char := self.peek()) and char in "*+?{":
            if char == "{":
                low, high = self.count()
            else:
                low, high = (1 if char == "+" else 0), (1 if char == "?" else None)
                self.at += 1
            symbol.empty |= low == 0
            symbol.expr = repeat(symbol.expr, low, high)
            self.skip(space)

    def count(self) -> tuple[int, int | None]:
        """Reads a count in braces; the lowest, and the highest if there is one."""
        count = _COUNT.match(self.text, self.at)
        if count is None:
            raise self.wrong("a count is written {3}, {3,} or {3,5}")
        low, high = int(count[1]), int(count[3] or count[1])
        if low > MOST_TIMES or high > MOST_TIMES:
            raise self.wrong(f"a count goes up to {MOST_TIMES}; make a rule of a part and repeat that")
        if count[3] and high < low:
            raise self.wrong(f"the count {count[0]} begins after its end")
        self.at = count.end()
        return low, None if count[2] and not count[3] else high

    def name(self, what: str) -> str:
        """Reads a name."""
        found = _NAME.match(self.text, self.at)
        if found is None:
            raise self.wrong(f"expected {what}, not {self.peek()!r}")
        self.at = found.end()
        return found[0]

    def skip(self, space: re.Pattern[str]) -> None:
        """Passes over space and remarks."""
        found = space.match(self.text, self.at)
        self.at = found.end() if found else self.at

    def peek(self) -> str:
        """The next character; empty at the end."""
        return self.text[self.at : self.at + 1]


def _tree(options: list[list[Symbol]]) -> Expr:
    return choice(*[sequence(*[symbol.expr for symbol in option]) for option in options])
