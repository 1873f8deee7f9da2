"""Regular expressions of JSON Schema (ECMA 262) as trees over a string's characters.

What is regular and means the same to every reader is taken: sets, groups, alternatives, counts, anchors at
the ends. Look-around, back references, word boundaries, flags and properties of characters are refused, and
so is whatever readers take differently (a bare `]`, a `[` within a set).
"""

from __future__ import annotations

from functools import lru_cache

from flyball.constraint.grammar.charset import ANY, Ranges, of, united, without
from flyball.constraint.grammar.tree import Chars, Expr, Literal, choice, repeat, sequence

_DIGITS: Ranges = ((0x30, 0x39),)
_WORD = united([*_DIGITS, (0x41, 0x5A), (0x5F, 0x5F), (0x61, 0x7A)])
_LINE_ENDS = of("\n\r\u2028\u2029")
_SPACE = united([*of("\t\n\v\f\r \u00a0\u1680\u2028\u2029\u202f\u205f\u3000\ufeff"), (0x2000, 0x200A)])
_SETS = {"d": _DIGITS, "w": _WORD, "s": _SPACE}
_CONTROL = {"t": "\t", "n": "\n", "r": "\r", "f": "\f", "v": "\v"}
_SYNTAX = frozenset("^$\\.*+?()[]{}|/-")


class PatternError(Exception):
    """Something in a pattern that is not taken; the message says what."""


@lru_cache(maxsize=256)
def pattern_tree(pattern: str) -> Expr:
    """The strings in which the pattern finds something; open counts stay open.

    Raises:
        PatternError: the pattern says more than a grammar can, or is none.
    """
    return _Parser(pattern).whole()


class _Parser:
    def __init__(self, pattern: str) -> None:
        self.pattern = pattern
        self.at = 0

    def whole(self) -> Expr:
        """The alternatives at the top, each with anything before and behind it where no anchor stands."""
        options: list[Expr] = []
        anything = repeat(Chars(ANY), 0, None)
        while True:
            start = self.take("^")
            body = self.branch()
            end = self.take("$")
            options.append(sequence(*([] if start else [anything]), body, *([] if end else [anything])))
            if self.at == len(self.pattern):
                return choice(*options)
            if not self.take("|"):
                raise PatternError(f"{self.pattern[self.at]!r} at {self.at} stands alone")

    def alternatives(self) -> Expr:
        options = [self.branch()]
        while self.take("|"):
            options.append(self.branch())
        return choice(*options)

    def branch(self) -> Expr:
        parts: list[Expr] = []
        while self.at < len(self.pattern) and self.peek() not in "|)":
            if self.peek() == "$":
                break
            parts.append(self.counted(self.atom()))
        return sequence(*parts)

    def atom(self) -> Expr:
        char = self.next()
        if char == "(":
            return self.group()
        if char == "[":
            return Chars(self.set())
        if char == ".":
            return Chars(without(ANY, _LINE_ENDS))
        if char == "\\":
            return Chars(self.escape(inside=False))
        if char in "*+?{}]^":
            raise PatternError(f"{char!r} at {self.at - 1} stands where it means nothing; escape it")
        return Literal(char)

    def group(self) -> Expr:
        if self.take("?"):
            if self.take("<") and self.peek() not in "=!":
                name, found, _ = self.pattern[self.at :].partition(">")
                if not found:
                    raise PatternError("a group's name has no end")
                self.at += len(name) + 1
            elif not self.take(":"):
                raise PatternError("look-around and flags are no regular language")
        if self.peek() == "^":
            raise PatternError("'^' is taken at the beginning of the pattern only")
        inner = self.alternatives()
        if not self.take(")"):
            raise PatternError(
                "'$' is taken at the end of the pattern only" if self.peek() == "$" else "')' is missing"
            )
        return inner

    def counted(self, item: Expr) -> Expr:
        counts = {"*": (0, None), "+": (1, None), "?": (0, 1)}
        char = self.peek()
        if char in counts:
            self.at += 1
            low, high = counts[char]
        elif char == "{":
            low, high = self.count()
        else:
            return item
        self.take("?")  # how eagerly it matches makes no difference to what it matches
        if self.peek() and self.peek() in "*+?{":
            raise PatternError(f"a second count at {self.at}")
        return repeat(item, low, high)

    def count(self) -> tuple[int, int | None]:
        inside, found, _ = self.pattern[self.at + 1 :].partition("}")
        low, comma, high = inside.partition(",")
        if not found or not low.isdecimal() or (high and not high.isdecimal()) or not inside.isascii():
            raise PatternError(f"'{{' at {self.at} begins no count; escape it")
        self.at += len(inside) + 2
        if high and int(high) < int(low):
            raise PatternError(f"the count {{{inside}}} ends before it begins")
        return int(low), (int(high) if high else None if comma else int(low))

    def set(self) -> Ranges:
        negated = self.take("^")
        members: list[tuple[int, int]] = []
        while (char := self.next()) != "]":
            if char == "[" or self.pattern[self.at - 1 : self.at + 1] in ("&&", "--", "~~"):
                raise PatternError(f"{char!r} at {self.at - 1} in a set means different things; escape it")
            low = self.escape(inside=True) if char == "\\" else of(char)
            if self.peek() == "-" and self.pattern[self.at + 1 : self.at + 2] not in ("]", ""):
                self.at += 1
                char = self.next()
                high = self.escape(inside=True) if char == "\\" else of(char)
                members.append(_range(low, high))
            else:
                members += low
        if not members:
            raise PatternError("an empty set")
        return (
            without(ANY, united(members))
            if negated
            else without(united(members), without(((0, 0x10FFFF),), ANY))
        )

    def escape(self, *, inside: bool) -> Ranges:
        char = self.next()
        if char.lower() in _SETS:
            ranges = _SETS[char.lower()]
            return ranges if char.islower() else without(ANY, ranges)
        if char in _CONTROL:
            return of(_CONTROL[char])
        if char == "x":
            return self.hexadecimal(2)
        if char == "u":
            return self.hexadecimal(4)
        if char in _SYNTAX and (inside or char != "-"):
            return of(char)
        if char.isdecimal():
            raise PatternError("back references are no regular language")
        raise PatternError(f"the escape \\{char} is not taken")

    def hexadecimal(self, size: int) -> Ranges:
        digits = self.pattern[self.at : self.at + size]
        try:
            point = int(digits, 16)
        except ValueError:
            point = -1
        if len(digits) < size or point < 0 or not digits.isalnum() or 0xD800 <= point <= 0xDFFF:
            raise PatternError(f"no character's number at {self.at}: {digits!r}")
        self.at += size
        return ((point, point),)

    def peek(self) -> str:
        return self.pattern[self.at : self.at + 1]

    def next(self) -> str:
        if self.at == len(self.pattern):
            raise PatternError("it ends too early")
        self.at += 1
        return self.pattern[self.at - 1]

    def take(self, char: str) -> bool:
        if self.peek() != char:
            return False
        self.at += 1
        return True


def _range(low: Ranges, high: Ranges) -> tuple[int, int]:
    start, end = _single(low), _single(high)
    if start > end:
        raise PatternError("a range that ends before it begins")
    return start, end


def _single(ranges: Ranges) -> int:
    points = [point for low, high in ranges for point in (low, high)]
    if len(set(points)) != 1:
        raise PatternError("a range between sets")
    return points[0]
