"""Printing a grammar as GBNF, in the form that llama.cpp reads fast and reads rightly.

Its parser turns `x{m,n}` into n rules, refuses where counts inside counts multiply to 2,000, and takes an
upper count beyond 2,000 for none at all. Hence: what is repeated is a character, a set or a rule of its
own, and long counts are made of rules over shorter ones. A count that fits stays flat: that is the form in
which the decoder has a single state to follow.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import assert_never

from flyball.constraint.grammar.charset import Ranges
from flyball.constraint.grammar.tree import Chars, Choice, Expr, Literal, Ref, Repeat, Rules, Sequence

LONGEST = 1_900
"""The largest count that is printed as one."""

_ESCAPED = {"\n": "\\n", "\r": "\\r", "\t": "\\t", "\\": "\\\\", '"': '\\"'}


def print_grammar(rules: Rules) -> str:
    """The rules as GBNF text, `root` first."""
    return _Printer(rules).text()


class _Printer:
    def __init__(self, rules: Rules) -> None:
        self.rules = rules
        self.extra: dict[str, str] = {}
        self.names: dict[Expr, str] = {}

    def text(self) -> str:
        lines = {name: self.alternatives(expr) for name, expr in self.rules.items()}
        order = ["root", *(name for name in lines if name != "root")]
        printed = [f"{name} ::= {lines[name]}" for name in order]
        printed += [f"{name} ::= {body}" for name, body in self.extra.items()]
        return "\n".join(printed) + "\n"

    def alternatives(self, expr: Expr) -> str:
        if isinstance(expr, Choice):
            return " | ".join(self.parts(option) for option in expr.options)
        return self.parts(expr)

    def parts(self, expr: Expr) -> str:
        if isinstance(expr, Sequence):
            return " ".join(self.unit(part) for part in expr.parts)
        return self.unit(expr)

    def unit(self, expr: Expr) -> str:
        match expr:
            case Literal():
                return quoted(expr.text)
            case Chars():
                return _class(expr.ranges)
            case Ref():
                return expr.rule
            case Repeat():
                return self.repeated(expr)
            case Sequence() | Choice():
                return f"({self.alternatives(expr)})"
            case _:
                assert_never(expr)

    def repeated(self, expr: Repeat) -> str:
        item, low, high = expr.item, expr.low, expr.high
        if (low, high) == (0, 1):
            return f"{self.grouped(item)}?"
        atom = self.atom(item)
        if high is None:
            if low > LONGEST:
                return f"{self.exactly(item, low)} {atom}*"
            return f"{atom}{'*' if low == 0 else '+' if low == 1 else f'{{{low},}}'}"
        if high <= LONGEST:
            return f"{atom}{{{low}}}" if low == high else f"{atom}{{{low},{high}}}"
        if low == high:
            return self.exactly(item, low)
        if low:
            return f"{self.exactly(item, low)} {self.at_most(item, high - low)}"
        return self.at_most(item, high)

    def exactly(self, item: Expr, count: int) -> str:
        """So many of them, as a rule over blocks where they are too many for one count."""
        if count <= LONGEST:
            return f"{self.atom(item)}{{{count}}}" if count != 1 else self.atom(item)
        block, blocks, rest = LONGEST, count // LONGEST, count % LONGEST
        body = self.exactly(Ref(self.rule(item, block, f"{self.atom(item)}{{{block}}}")), blocks)
        return f"{body} {self.exactly(item, rest)}" if rest else body

    def at_most(self, item: Expr, count: int) -> str:
        """Up to so many: a whole block and what may follow it, or less than a block."""
        if count <= LONGEST:
            return f"{self.atom(item)}{{0,{count}}}"
        name = f"upto-{self.rule(item, 0, self.atom(item))}-{count}"
        if name not in self.extra:
            self.extra[name] = ""
            # Blocks grow with the count, so that there are never more than a few dozen of these rules.
            block = LONGEST * max(1, -(-count // (LONGEST * 32)))
            more = self.at_most(item, count - block)
            self.extra[name] = f"{self.exactly(item, block)} {more} | {self.at_most(item, block - 1)}"
        return name

    def atom(self, item: Expr) -> str:
        """What a count may stand behind."""
        if isinstance(item, Ref | Chars) or (isinstance(item, Literal) and len(item.text) == 1):
            return self.unit(item)
        return self.rule(item, 1, self.alternatives(item))

    def grouped(self, item: Expr) -> str:
        """What a `?` may stand behind: a literal of several characters is several symbols to some readers."""
        if isinstance(item, Repeat) or (isinstance(item, Literal) and len(item.text) > 1):
            return f"({self.unit(item)})"
        return self.unit(item)

    def rule(self, item: Expr, count: int, body: str) -> str:
        key = Repeat(item, count, count)
        if key not in self.names:
            name = "part" if count == 1 else "block"
            number = len(self.names) + 1
            while f"{name}-{number}" in self.rules:
                number += 1_000
            self.names[key] = f"{name}-{number}"
            self.extra[self.names[key]] = body
        return self.names[key]


def quoted(text: str) -> str:
    """The text as a GBNF literal."""
    return (
        '"'
        + "".join(_ESCAPED.get(c) or (c if ord(c) >= 0x80 or c.isprintable() else _number(c)) for c in text)
        + '"'
    )


def _class(ranges: Ranges) -> str:
    # Never as what it is not: `[^x]` also matches what is no character, and broken UTF-8 would come through.
    return f"[{''.join(_spans(ranges))}]"


def _spans(ranges: Ranges) -> Iterable[str]:
    for low, high in ranges:
        if low == high:
            yield _member(low)
        else:
            yield f"{_member(low)}{'-' if high > low + 1 else ''}{_member(high)}"


def _member(point: int) -> str:
    char = chr(point)
    if char.isalnum() or char in " !#$%&'()*+,./:;<=>?@_`{|}~":
        return char
    return _ESCAPED.get(char) or _number(char)


def _number(char: str) -> str:
    point = ord(char)
    return f"\\x{point:02x}" if point <= 0xFF else f"\\u{point:04x}" if point <= 0xFFFF else f"\\U{point:08x}"
