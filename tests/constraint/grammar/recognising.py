"""Whether a grammar's tree matches a text, followed character by character as llama.cpp does it.

llguidance reads literals as words, longest first, and so cannot judge a grammar in which a word may begin
like a text of another kind. This one has no words.
"""

from __future__ import annotations

from typing import assert_never

from flyball.constraint.grammar.tree import (
    Chars,
    Choice,
    Expr,
    Literal,
    Ref,
    Repeat,
    Rules,
    Sequence,
    repeat,
)

Stack = tuple[Expr, ...]


def recognises(rules: Rules, text: str) -> bool:
    """Whether the grammar matches the whole text."""
    stacks = _open(rules, {(rules["root"],)})
    for char in text:
        stacks = _open(rules, {after for stack in stacks if (after := _step(stack, char)) is not None})
    return () in stacks


def _step(stack: Stack, char: str) -> Stack | None:
    match stack:
        case (Literal(text=text), *rest) if text[0] == char:
            return (Literal(text[1:]), *rest) if text[1:] else tuple(rest)
        case (Chars(ranges=ranges), *rest) if any(low <= ord(char) <= high for low, high in ranges):
            return tuple(rest)
        case _:
            return None


def _open(rules: Rules, stacks: set[Stack]) -> set[Stack]:
    """The stacks with a character on top, or nothing at all."""
    done: set[Stack] = set()
    seen: set[Stack] = set()
    waiting = list(stacks)
    while waiting:
        stack = waiting.pop()
        if stack in seen:
            continue
        seen.add(stack)
        if not stack:
            done.add(stack)
            continue
        top, rest = stack[0], stack[1:]
        match top:
            case Literal():
                (done.add(stack) if top.text else waiting.append(rest))
            case Chars():
                done.add(stack)
            case Ref():
                waiting.append((rules[top.rule], *rest))
            case Sequence():
                waiting.append((*top.parts, *rest))
            case Choice():
                waiting += [(option, *rest) for option in top.options]
            case Repeat():
                more = repeat(top.item, max(0, top.low - 1), None if top.high is None else top.high - 1)
                waiting.append((top.item, more, *rest))
                if top.low == 0:
                    waiting.append(rest)
            case _:
                assert_never(top)
    return done
