"""Two schemas that both have to hold, as one.

Merging is exact or refused: the merged schema allows what both allow, nothing more and nothing less.
"""

from __future__ import annotations

from collections.abc import Callable
from math import lcm
from typing import Any, cast

from flyball.constraint.grammar.scope import At

Plain = dict[str, Any]

_HIGHER = ("minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties")
_LOWER = ("maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties")
_KEPT_APART = ("anyOf", "oneOf", "$ref")
"""What cannot be merged key by key: it goes on as one more schema that has to hold."""
_OF_ARRAYS = ("prefixItems", "items")
_OF_OBJECTS = ("properties", "patternProperties", "additionalProperties")


def merged(one: Plain, other: Plain, at: At) -> Plain:
    """A schema that holds where both do.

    Raises:
        GrammarUnsupported: they say things that cannot be said together.
    """
    if {"const", "enum"} & one.keys() and {"const", "enum"} & other.keys():
        one, other = _as_enum(one), _as_enum(other)
    result: Plain = dict(one)
    _merge_objects(result, one, other, at)
    _merge_arrays(result, one, other)
    apart: Plain = {}
    for key, theirs in other.items():
        if key in _OF_OBJECTS or key in _OF_ARRAYS:
            continue
        if key not in one:
            result[key] = theirs
        elif key in _KEPT_APART:
            if theirs != one[key]:
                apart[key] = theirs
        elif (merge := _MERGES.get(key)) is not None:
            result[key] = merge(one[key], theirs, at.into(key))
    if apart:
        result["allOf"] = [*result.get("allOf", []), apart]
    return result


def both(one: Any, other: Any) -> Any:
    """Two schemas of any form that have to hold, to be merged when they are looked at."""
    if one is False or other is False:
        return False
    if one is True or one == {}:
        return other
    if other is True or other in ({}, one):
        return one
    return {"allOf": [one, other]}


def _types(one: Any, other: Any, at: At) -> list[str]:
    ours, theirs = types(one), types(other)
    kept = [name for name in ours if name in theirs or (name == "integer" and "number" in theirs)]
    return kept + [name for name in theirs if name == "integer" and "number" in ours and name not in kept]


def types(value: Any) -> list[str]:
    """The types of a `type` keyword, as a list."""
    return [value] if isinstance(value, str) else list(cast("list[str]", value))


def _multiple(one: Any, other: Any, at: At) -> Any:
    if one == other:
        return one
    if one == int(one) and other == int(other):
        return lcm(int(one), int(other))
    raise at.refuse("multipleOf", f"{one} and {other} at once; give their common multiple")


def _same(one: Any, other: Any, at: At) -> Any:
    if one == other:
        return one
    keyword = at.path.rpartition("/")[2]
    raise at.refuse(keyword, f"{one!r} and {other!r} are asked for at once; keep one of them")


def _patterns(one: Any, other: Any, at: At) -> list[str]:
    ours = [one] if isinstance(one, str) else list(one)
    theirs = [other] if isinstance(other, str) else list(other)
    return ours + [pattern for pattern in theirs if pattern not in ours]


def _enum(one: Any, other: Any) -> list[Any]:
    return [value for value in one if any(same_json(value, wanted) for wanted in other)]


def _as_enum(schema: Plain) -> Plain:
    """The schema with `enum` where it had `const`."""
    if "const" not in schema:
        return schema
    only = schema["const"]
    allowed = [only] if "enum" not in schema else _enum([only], schema["enum"])
    return {**{key: value for key, value in schema.items() if key != "const"}, "enum": allowed}


def same_json(one: Any, other: Any) -> bool:
    """Whether two values are the same to JSON Schema: 1 and 1.0 are, 1 and true are not."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, dict) and isinstance(other, dict):
        ours, theirs = cast("Plain", one), cast("Plain", other)
        return ours.keys() == theirs.keys() and all(same_json(ours[key], theirs[key]) for key in ours)
    if isinstance(one, list) and isinstance(other, list):
        mine, yours = cast("list[Any]", one), cast("list[Any]", other)
        return len(mine) == len(yours) and all(map(same_json, mine, yours))
    return bool(one == other)


def _merge_arrays(result: Plain, one: Plain, other: Plain) -> None:
    """The items place by place: what comes after the listed ones follows `items`."""
    ours, theirs = one.get("prefixItems", []), other.get("prefixItems", [])
    mine, yours = one.get("items", True), other.get("items", True)
    if size := max(len(ours), len(theirs)):
        result["prefixItems"] = [
            both(ours[n] if n < len(ours) else mine, theirs[n] if n < len(theirs) else yours)
            for n in range(size)
        ]
    if "items" in one or "items" in other:
        result["items"] = both(mine, yours)


def _merge_objects(result: Plain, one: Plain, other: Plain, at: At) -> None:
    """Properties, and what each side says of the keys that only the other one names."""
    if not any(key in one for key in _OF_OBJECTS) or not any(key in other for key in _OF_OBJECTS):
        result.update({key: other[key] for key in _OF_OBJECTS if key in other})
        return
    for side, against in ((one, other), (other, one)):
        mine, theirs = side.get("patternProperties"), against.get("patternProperties")
        foreign = against.get("properties", {}).keys() - side.get("properties", {}).keys()
        if mine and mine != theirs and (foreign or "additionalProperties" in against):
            raise at.refuse("patternProperties", "another schema that has to hold speaks of the same keys")
    ours, theirs = one.get("properties", {}), other.get("properties", {})
    properties: Plain = {}
    for name in dict.fromkeys([*ours, *theirs]):
        mine = ours.get(name, one.get("additionalProperties", True))
        yours = theirs.get(name, other.get("additionalProperties", True))
        properties[name] = both(mine, yours)
    if properties or "properties" in one or "properties" in other:
        result["properties"] = properties
    ours, theirs = one.get("patternProperties", {}), other.get("patternProperties", {})
    if ours or theirs:
        result["patternProperties"] = {
            pattern: both(ours.get(pattern, True), theirs.get(pattern, True))
            for pattern in dict.fromkeys([*ours, *theirs])
        }
    if "additionalProperties" in one or "additionalProperties" in other:
        result["additionalProperties"] = both(
            one.get("additionalProperties", True), other.get("additionalProperties", True)
        )


def _take(chosen: Callable[[Any, Any], Any]) -> Callable[[Any, Any, At], Any]:
    return lambda one, other, at: chosen(one, other)


_MERGES: dict[str, Callable[[Any, Any, At], Any]] = {
    **dict.fromkeys(_HIGHER, _take(max)),
    **dict.fromkeys(_LOWER, _take(min)),
    "type": _types,
    "enum": _take(_enum),
    "multipleOf": _multiple,
    "pattern": _patterns,
    "format": _same,
    "required": _take(lambda one, other: list(dict.fromkeys([*one, *other]))),
    "propertyNames": _take(both),
    "uniqueItems": _take(lambda one, other: one or other),
    "allOf": _take(lambda one, other: [*one, *other]),
}
