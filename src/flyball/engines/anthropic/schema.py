"""Schemas that Claude can be held to: its subset of JSON Schema, and what fits into it.

The decoder knows types, objects with named keys, lists, enumerations, choices and references. What it does
not know about a value (how long, how large, of which pattern) is told in the description, and checked when
the answer is there. What it does not know about the form (free keys, tuples, schemas that contain themselves,
anything at all) cannot be said: such a schema does not fit.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from flyball.core.encodable import as_text

_FORMATS = frozenset((
    "date-time", "time", "date", "duration", "email", "hostname", "uri", "ipv4", "ipv6", "uuid",
))  # fmt: skip
_HARMLESS = frozenset((
    "default", "examples", "$schema", "$id", "$comment", "deprecated", "readOnly", "writeOnly",
    "discriminator",
))  # fmt: skip
"""What may be left out: nothing that a value has to follow."""
_TOLD = frozenset((
    "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minLength", "maxLength",
    "pattern", "minItems", "maxItems", "uniqueItems", "format", "minProperties", "maxProperties",
    "contentEncoding", "contentMediaType",
))  # fmt: skip
"""What is told in words."""
_TYPES = frozenset(("object", "array", "string", "integer", "number", "boolean", "null"))
_PLAIN = (str, int, float, bool, type(None))


def fitting_schema(schema: Mapping[str, Any]) -> dict[str, Any] | None:
    """The schema as Claude takes it; None where it does not fit.

    What follows the schema follows what is given here, too, but for keys that the schema does not name: one
    that says nothing about them was made from a type, and means that there are none.
    """
    try:
        fitted = _fitted(schema)
    except _DoesNotFitError:
        return None
    return None if _turns_back(fitted) else fitted


class _DoesNotFitError(Exception):
    pass


def _fitted(schema: Any) -> dict[str, Any]:
    if not isinstance(schema, Mapping):
        raise _DoesNotFitError
    node = {key: value for key, value in cast("Mapping[str, Any]", schema).items() if key not in _HARMLESS}
    fitted: dict[str, Any] = {}
    if (definitions := node.pop("$defs", None)) is not None:
        fitted["$defs"] = {name: _fitted(inner) for name, inner in definitions.items()}
    for key in ("title", "description"):
        if key in node:
            fitted[key] = node.pop(key)
    if "$ref" in node:
        return _reference(node, fitted)
    _put_kind(fitted, node)
    told = [f"{key}: {as_text(node.pop(key))}" for key in list(node) if key in _TOLD]
    if node:
        raise _DoesNotFitError
    if told:
        said = fitted.get("description")
        fitted["description"] = f"{said}\n\n{{{', '.join(told)}}}" if said else f"{{{', '.join(told)}}}"
    return fitted


def _reference(node: dict[str, Any], fitted: dict[str, Any]) -> dict[str, Any]:
    reference = node.pop("$ref")
    if node or not str(reference).startswith("#/$defs/"):
        raise _DoesNotFitError
    # Beside a reference stands nothing but, at the root, what it may refer to.
    return {key: fitted[key] for key in ("$defs",) if key in fitted} | {"$ref": reference}


def _put_kind(fitted: dict[str, Any], node: dict[str, Any]) -> None:
    kind = node.pop("type", None)
    choices = node.pop("anyOf", None) or node.pop("oneOf", None)
    if isinstance(kind, list):
        if choices:
            raise _DoesNotFitError
        choices, kind = [{"type": one} for one in cast("list[Any]", kind)], None
    elif choices and kind is not None:
        raise _DoesNotFitError
    if "enum" in node or "const" in node:
        if choices:
            raise _DoesNotFitError
        _put_literals(fitted, node)
    elif choices:
        fitted["anyOf"] = [_fitted(choice) for choice in choices]
    elif len(several := node.get("allOf") or ()) == 1:
        del node["allOf"]
        fitted.update({**_fitted(several[0]), **fitted})
    elif kind not in _TYPES:
        raise _DoesNotFitError
    else:
        fitted["type"] = kind
        _put_inside(fitted, node)


def _put_literals(fitted: dict[str, Any], node: dict[str, Any]) -> None:
    key = "const" if "const" in node else "enum"
    value = node.pop(key)
    if not all(isinstance(one, _PLAIN) for one in (value if key == "enum" else [value])):
        raise _DoesNotFitError
    fitted[key] = value


def _put_inside(fitted: dict[str, Any], node: dict[str, Any]) -> None:
    if fitted["type"] == "object":
        if node.pop("additionalProperties", False) is not False or not node.get("properties"):
            raise _DoesNotFitError
        properties = node.pop("properties")
        fitted["properties"] = {name: _fitted(inner) for name, inner in properties.items()}
        required = node.pop("required", [])
        if not set(required) <= set(properties):
            raise _DoesNotFitError
        fitted.update(required=required, additionalProperties=False)
    elif fitted["type"] == "array":
        if "items" not in node:
            raise _DoesNotFitError
        fitted["items"] = _fitted(node.pop("items"))
        if node.get("minItems") in (0, 1):
            fitted["minItems"] = node.pop("minItems")
    elif fitted["type"] == "string" and node.get("format") in _FORMATS:
        fitted["format"] = node.pop("format")


def _turns_back(schema: Mapping[str, Any]) -> bool:
    """Whether a reference leads to itself."""
    definitions: Mapping[str, Any] = schema.get("$defs", {})
    leads = {name: set(_references(inner)) for name, inner in definitions.items()}
    for name, direct in leads.items():
        seen: set[str] = set()
        ahead = set(direct)
        while ahead:
            at = ahead.pop()
            if at == name:
                return True
            if at not in seen:
                seen.add(at)
                ahead |= leads.get(at, set())
    return False


def _references(value: Any) -> list[str]:
    if isinstance(value, Mapping):
        found: list[str] = []
        for key, inner in cast("Mapping[str, Any]", value).items():
            if key == "$ref":
                found.append(str(inner).removeprefix("#/$defs/"))
            else:
                found += _references(inner)
        return found
    if isinstance(value, list):
        return [name for inner in cast("list[Any]", value) for name in _references(inner)]
    return []
