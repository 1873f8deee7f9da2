r"""JSON as text, in the one form that grammars allow.

The form is what `json.dumps(value, ensure_ascii=False)` writes: `", "` between members, `": "` behind keys,
no other white space, characters as themselves, and only what must be escaped is, each in its shortest way
(`\"`, `\\`, `\n`, …, `\u001f`). Models write this form most readily, and one form keeps the grammar small.
"""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any, assert_never

from flyball.constraint.grammar.charset import ANY, Ranges, common, of, without
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

COMMA = Literal(", ")
QUOTE = Literal('"')
ANY_CHAR = Chars(ANY)

_SHORT = {'"': '"', "\\": "\\", "\b": "b", "\f": "f", "\n": "n", "\r": "r", "\t": "t"}
_SHORT_SET = of("".join(_SHORT))
_ESCAPED = ((0, 0x1F), (0x22, 0x22), (0x5C, 0x5C))


def literal(value: Any) -> Literal:
    """A value as the one text that stands for it."""
    return Literal(json.dumps(value, ensure_ascii=False))


def encoded(content: Expr) -> Expr:
    """What a tree over a string's characters becomes between the quotes: an escape is one character."""
    match content:
        case Literal():
            return Literal(json.dumps(content.text, ensure_ascii=False)[1:-1])
        case Chars():
            return _encoded_set(content.ranges)
        case Sequence():
            return sequence(*(encoded(part) for part in content.parts))
        case Choice():
            return choice(*(encoded(option) for option in content.options))
        case Repeat():
            return repeat(encoded(content.item), content.low, content.high)
        case Ref():
            return content
        case _:
            assert_never(content)


@lru_cache(maxsize=512)
def _encoded_set(ranges: Ranges) -> Expr:
    plain = without(ranges, _ESCAPED)
    escapes: list[Expr] = []
    if short := common(ranges, _SHORT_SET):
        escapes.append(Chars(of("".join(mark for char, mark in _SHORT.items() if common(short, of(char))))))
    for low, digit in ((0x00, "0"), (0x10, "1")):
        here = without(common(ranges, ((low, low + 15),)), _SHORT_SET)
        if here:
            last = "".join(f"{point - low:x}" for start, end in here for point in range(start, end + 1))
            escapes.append(sequence(Literal(f"u00{digit}"), Chars(of(last))))
    options: list[Expr] = [Chars(plain)] if plain else []
    if escapes:
        options.append(sequence(Literal("\\"), choice(*escapes)))
    return choice(*options)
