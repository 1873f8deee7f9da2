"""Schemas that OpenAI holds a model to (`strict`): its subset of JSON Schema, and what fits into it.

Rules of the subset: every object names all its properties as required and allows no others; keywords outside
the subset are not there. A schema whose meaning would change (an object with free keys, a tuple, a property
that may be left out and may not be null) does not fit, and is sent without `strict`.
"""

from __future__ import annotations

from typing import Any, cast

_KEPT = frozenset((
    "type", "description", "enum", "const", "$ref", "anyOf", "items", "properties", "required",
    "additionalProperties", "$defs", "title", "pattern", "format", "minimum", "maximum", "exclusiveMinimum",
    "exclusiveMaximum", "multipleOf", "minItems", "maxItems",
))  # fmt: skip
_HARMLESS = frozenset((
    "default", "examples", "$schema", "$id", "$comment", "deprecated", "readOnly", "discriminator",
))  # fmt: skip
"""What may be left out: nothing that a value has to follow."""
_FORMATS = frozenset((
    "date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid",
))  # fmt: skip


def strict_schema(schema: dict[str, Any], *, nulls: bool = False) -> dict[str, Any] | None:
    """The schema as OpenAI's strict mode takes it; None where it does not fit without changing its meaning.

    What follows the strict schema follows the schema. With `nulls`, for who insists on `strict`, a property
    that may be left out becomes one that may be null instead.
    """
    try:
        fitted = _fitted(schema, nulls)
    except _DoesNotFitError:
        return None
    return fitted if fitted.get("type") == "object" and "anyOf" not in fitted else None


class _DoesNotFitError(Exception):
    pass


def _fitted(schema: Any, nulls: bool) -> dict[str, Any]:
    if not isinstance(schema, dict):
        raise _DoesNotFitError
    node = cast("dict[str, Any]", schema)
    fitted: dict[str, Any] = {}
    for key, value in node.items():
        if key in _HARMLESS:
            continue
        if key == "oneOf" or (key == "allOf" and len(value) == 1):
            _put(fitted, key, value, nulls)
        elif not _belongs(key, value):
            raise _DoesNotFitError
        elif key in ("properties", "$defs"):
            fitted[key] = {name: _fitted(inner, nulls) for name, inner in value.items()}
        elif key == "anyOf":
            fitted[key] = [_fitted(inner, nulls) for inner in value]
        elif key == "items":
            fitted[key] = _fitted(value, nulls)
        elif key == "additionalProperties":
            if value is not False:
                raise _DoesNotFitError
        else:
            fitted[key] = value
    if "properties" in fitted or fitted.get("type") == "object":
        _close(fitted, nulls)
    if not fitted.keys() - {"description", "title", "$defs"}:
        raise _DoesNotFitError  # anything goes, and strict has no word for that
    if "$ref" in fitted and len(fitted) > 1 and not fitted.keys() - {"$ref", "description", "title"}:
        # Beside a reference the subset has nothing.
        return {"$ref": fitted["$ref"]}
    return fitted


def _belongs(key: str, value: Any) -> bool:
    return key in _KEPT and (key != "format" or value in _FORMATS)


def _put(fitted: dict[str, Any], key: str, value: Any, nulls: bool) -> None:
    if key == "oneOf":
        fitted["anyOf"] = [_fitted(inner, nulls) for inner in value]
    else:
        fitted.update(_fitted(value[0], nulls))


def _close(fitted: dict[str, Any], nulls: bool) -> None:
    if fitted.get("type", "object") != "object":
        raise _DoesNotFitError
    properties: dict[str, Any] = fitted.setdefault("properties", {})
    asked: list[str] = fitted.get("required") or []
    if any(name not in properties for name in asked):
        raise _DoesNotFitError
    for name in properties.keys() - set(asked):
        if not _takes_null(properties[name]):
            if not nulls:
                raise _DoesNotFitError
            properties[name] = {"anyOf": [properties[name], {"type": "null"}]}
    fitted.update(type="object", required=list(properties), additionalProperties=False)


def _takes_null(schema: dict[str, Any]) -> bool:
    kind = schema.get("type")
    if kind == "null" or (isinstance(kind, list) and "null" in kind):
        return True
    return any(_takes_null(inner) for inner in schema.get("anyOf", ()))
