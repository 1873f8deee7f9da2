"""Whether two schemas can be told apart: a proof that nothing written for one is taken for the other.

`oneOf` allows what exactly one branch allows. A grammar over branches that are apart says the same; where
no proof is found the branches may overlap, and the schema is refused.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from msgspec import Struct

from flyball.constraint.grammar.numbers import Range, number_range

Plain = dict[str, Any]
_DEPTH = 6


class Look(Struct, frozen=True):
    """How to look at schemas: each as its plain cases, and whether it accepts a value."""

    cases: Callable[[Any], list[Plain]]
    accepts: Callable[[Plain, Any], bool]
    kinds: Callable[[Plain], list[str]]
    undeclared: bool


def apart(one: Any, other: Any, look: Look, depth: int = _DEPTH) -> bool:
    """Whether nothing written for one schema follows the other, and the other way round."""
    if depth == 0:
        return False
    return all(_apart(a, b, look, depth) for a in look.cases(one) for b in look.cases(other))


def _apart(one: Plain, other: Plain, look: Look, depth: int) -> bool:
    for side, against in ((one, other), (other, one)):
        if "const" in side or "enum" in side:
            listed: list[Any] = [side["const"]] if "const" in side else side["enum"]
            return not any(look.accepts(against, value) and look.accepts(side, value) for value in listed)
    ours, theirs = look.kinds(one), look.kinds(other)
    shared = {name for name in ours if name in theirs}
    if "number" in ours + theirs and "integer" in ours + theirs:
        shared.add("number")
    return all(_KINDS[name](one, other, look, depth) for name in shared)


def _numbers(one: Plain, other: Plain, look: Look, depth: int) -> bool:
    a, b = number_range(one), number_range(other)
    return _before(a, b) or _before(b, a)


def _before(one: Range, other: Range) -> bool:
    if one.high is None or other.low is None:
        return False
    return one.high < other.low or (one.high == other.low and (one.high_open or other.low_open))


def _counts(low: str, high: str) -> Callable[[Plain, Plain], bool]:
    def told_apart(one: Plain, other: Plain) -> bool:
        return any(high in a and a[high] < b.get(low, 0) for a, b in ((one, other), (other, one)))

    return told_apart


_lengths = _counts("minLength", "maxLength")
_sizes = _counts("minItems", "maxItems")


def _strings(one: Plain, other: Plain, look: Look, depth: int) -> bool:
    return _lengths(one, other)


def _arrays(one: Plain, other: Plain, look: Look, depth: int) -> bool:
    if _sizes(one, other):
        return True
    sure = min(one.get("minItems", 0), other.get("minItems", 0), 8)
    return any(apart(_item(one, n), _item(other, n), look, depth - 1) for n in range(sure))


def _item(schema: Plain, n: int) -> Any:
    first = cast("list[Any]", schema.get("prefixItems", []))
    return first[n] if n < len(first) else schema.get("items", True)


def _objects(one: Plain, other: Plain, look: Look, depth: int) -> bool:
    ours, theirs = set(one.get("required", [])), set(other.get("required", []))
    for name in ours & theirs:
        mine, yours = one.get("properties", {}), other.get("properties", {})
        if name in mine and name in yours and apart(mine[name], yours[name], look, depth - 1):
            return True
    if any(_forbids(other, name) for name in ours) or any(_forbids(one, name) for name in theirs):
        return True
    # Each needs a key that is never written for the other.
    return any(_never_writes(other, name, look) for name in ours) and any(
        _never_writes(one, name, look) for name in theirs
    )


def _forbids(schema: Plain, name: str) -> bool:
    named = schema.get("properties", {})
    if name in named:
        return named[name] is False
    return schema.get("additionalProperties") is False and not schema.get("patternProperties")


def _never_writes(schema: Plain, name: str, look: Look) -> bool:
    if "properties" not in schema or name in schema["properties"] or schema.get("patternProperties"):
        return False
    return name not in schema.get("required", []) and not schema.get("additionalProperties", look.undeclared)


def _never(one: Plain, other: Plain, look: Look, depth: int) -> bool:
    return False


_KINDS: dict[str, Callable[[Plain, Plain, Look, int], bool]] = {
    "integer": _numbers,
    "number": _numbers,
    "string": _strings,
    "array": _arrays,
    "object": _objects,
    "boolean": _never,
    "null": _never,
}
