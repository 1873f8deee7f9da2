"""JSON's types as schemas name them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

_TYPE_OF_KEYWORD = {
    "object": ("properties", "required", "additionalProperties", "minProperties", "patternProperties"),
    "array": ("items", "prefixItems", "minItems", "uniqueItems"),
    "string": ("minLength", "maxLength", "pattern", "format"),
    "number": ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
}


def types_of(schema: Mapping[str, Any]) -> Sequence[str]:
    """The types that a schema names, in its order; none where it names none."""
    kinds = schema.get("type", ())
    return (kinds,) if isinstance(kinds, str) else kinds


def implied_types(schema: Mapping[str, Any]) -> Sequence[str]:
    """What a schema without a type speaks of; of nothing in particular: null will do."""
    kinds = [kind for kind, words in _TYPE_OF_KEYWORD.items() if any(word in schema for word in words)]
    return kinds or ("null",)


def is_of_type(value: Any, kind: str) -> bool:
    """Whether a JSON value is of a type; 1.0 is an integer, True is no number."""
    match kind:
        case "null":
            return value is None
        case "boolean":
            return isinstance(value, bool)
        case "integer":
            return isinstance(value, int | float) and not isinstance(value, bool) and value == int(value)
        case "number":
            return isinstance(value, int | float) and not isinstance(value, bool)
        case "string":
            return isinstance(value, str)
        case "array":
            return isinstance(value, list)
        case "object":
            return isinstance(value, dict)
        case _:
            return False
