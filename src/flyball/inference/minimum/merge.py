"""Two schemas as one that asks for both: how `allOf`, and what stands beside a reference, are read."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from math import lcm
from typing import Any

from flyball.inference.minimum.scalar import exact


class _Contradiction(Exception):  # noqa: N818 - a verdict, not an error: it never leaves this module
    """Nothing can fit both."""


def merged(one: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any] | None:
    """A schema for whatever fits both, or None where nothing can (or where both rules cannot be one)."""
    if not one or not other:
        return dict(one or other)
    both = {**other, **one}
    try:
        for word in one.keys() & other.keys():
            if one[word] != other[word] and word in _MERGE:
                both[word] = _MERGE[word](one[word], other[word])
    except _Contradiction:
        return None
    names = (*one.get("properties", ()), *other.get("properties", ()))
    if names:
        both["properties"] = {
            name: _all_of(property_schema(one, name), property_schema(other, name)) for name in names
        }
    return both


def property_schema(schema: Mapping[str, Any], name: str) -> Any:
    """What an object's schema asks of the property with this name."""
    asked = [
        rule for pattern, rule in schema.get("patternProperties", {}).items() if re.search(pattern, name)
    ]
    if name in schema.get("properties", {}):
        asked.append(schema["properties"][name])
    if not asked:
        return schema.get("additionalProperties", True)
    return asked[0] if len(asked) == 1 else {"allOf": asked}


def _all_of(one: Any, other: Any) -> Any:
    if one is True or one == other:
        return other
    if other is True:
        return one
    return {"allOf": [one, other]}


def _types(one: Any, other: Any) -> list[str]:
    mine, theirs = ([kind] if isinstance(kind, str) else list(kind) for kind in (one, other))
    common = [kind for kind in mine if kind in theirs or (kind == "integer" and "number" in theirs)]
    if "number" in mine and "integer" in theirs and "integer" not in common:
        common.append("integer")
    if not common:
        raise _Contradiction
    return common


def _common_values(one: list[Any], other: list[Any]) -> list[Any]:
    values = [value for value in one if value in other]
    if not values:
        raise _Contradiction
    return values


def _step(one: int | float, other: int | float) -> int | float:
    a, b = exact(one), exact(other)
    top = lcm(a.numerator * b.denominator, b.numerator * a.denominator)
    bottom = a.denominator * b.denominator
    return top // bottom if top % bottom == 0 else top / bottom


def _cannot(one: Any, other: Any) -> Any:
    raise _Contradiction


def _by_key(one: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    return {key: _all_of(one.get(key, True), other.get(key, True)) for key in (*one, *other)}


def _by_place(one: list[Any], other: list[Any]) -> list[Any]:
    longer, shorter = (one, other) if len(one) >= len(other) else (other, one)
    return [_all_of(item, shorter[n]) if n < len(shorter) else item for n, item in enumerate(longer)]


_MERGE: Mapping[str, Callable[[Any, Any], Any]] = {
    **dict.fromkeys(("minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties"), max),
    **dict.fromkeys(("maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties"), min),
    **dict.fromkeys(("items", "additionalProperties", "propertyNames"), _all_of),
    **dict.fromkeys(("const", "pattern", "format"), _cannot),
    "type": _types,
    "enum": _common_values,
    "required": lambda one, other: [*one, *other],
    "patternProperties": _by_key,
    "prefixItems": _by_place,
    "multipleOf": _step,
    "uniqueItems": lambda one, other: one or other,
}
"""How a keyword that both have becomes one; of any other keyword the first schema's is kept."""
