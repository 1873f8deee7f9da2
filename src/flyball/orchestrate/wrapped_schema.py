"""Wrapping a schema: the object that holds, under a key, what follows a schema that is no object's."""

from __future__ import annotations

from typing import Any, cast

_BESIDE = ("$schema", "$defs", "definitions")
"""What belongs at the top of a schema, and stays there."""
_NAMED = frozenset({"$defs", "definitions", "dependentSchemas", "patternProperties", "properties"})
"""Keywords that hold schemas by names of the user's own."""
_DATA = frozenset({"const", "default", "enum", "examples"})
"""Keywords that hold values, not schemas."""


def wrapped(schema: dict[str, Any], key: str) -> dict[str, Any]:
    """The schema of an object that has what follows `schema` under a key.

    References go on working: definitions stay at the top, and what the schema says about itself points to
    where it stands now. A schema with an `$id` is a document of its own, and is left as it is.
    """
    beside: dict[str, Any] = {}
    inner = schema
    if "$id" not in schema:
        moved = _moved(schema, f"#/properties/{key}")
        beside = {name: moved.pop(name) for name in _BESIDE if name in moved}
        inner = moved
    return {**beside, "type": "object", "properties": {key: inner}, "required": [key]}


def _moved(schema: dict[str, Any], place: str) -> dict[str, Any]:
    return {name: _keyword(name, value, place) for name, value in schema.items()}


def _keyword(name: str, value: Any, place: str) -> Any:
    if name == "$ref" and isinstance(value, str):
        return _reference(value, place)
    if name in _NAMED and isinstance(value, dict):
        return {own: _inner(schema, place) for own, schema in cast("dict[str, Any]", value).items()}
    return value if name in _DATA else _inner(value, place)


def _inner(value: Any, place: str) -> Any:
    if isinstance(value, list):
        return [_inner(item, place) for item in cast("list[Any]", value)]
    return _moved(cast("dict[str, Any]", value), place) if isinstance(value, dict) else value


def _reference(reference: str, place: str) -> str:
    """A reference to the schema itself or into it, at its new place; any other as it is."""
    within = reference == "#" or reference.startswith("#/")
    definition = reference.startswith(("#/$defs/", "#/definitions/"))
    return place + reference[1:] if within and not definition else reference
