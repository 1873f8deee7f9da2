"""Whether a dict is a JSON Schema: by the shape of its keywords, and by the meta-schema if it is at hand."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, cast

from flyball.core.encodable import NotEncodable, to_json
from flyball.core.errors import SchemaMalformed
from flyball.core.messages import JSON

TYPES = ("string", "number", "integer", "boolean", "object", "array", "null")
"""The types that JSON Schema knows."""

DRAFTS = frozenset(
    {
        "https://json-schema.org/draft/2020-12/schema",
        "https://json-schema.org/draft/2019-09/schema",
        "http://json-schema.org/draft-07/schema",
        "http://json-schema.org/draft-06/schema",
        "http://json-schema.org/draft-04/schema",
    }
)
"""The dialects that are checked against their meta-schema; any other would have to be fetched first."""

_SCHEMA = (
    "additionalProperties",
    "contains",
    "contentSchema",
    "else",
    "if",
    "not",
    "propertyNames",
    "then",
    "unevaluatedItems",
    "unevaluatedProperties",
)
_SCHEMAS = ("allOf", "anyOf", "oneOf", "prefixItems")
_NAMED_SCHEMAS = ("$defs", "definitions", "dependentSchemas", "patternProperties", "properties")
_TEXT = ("$comment", "$id", "$ref", "$schema", "description", "format", "pattern", "title")
_COUNT = (
    "maxContains",
    "maxItems",
    "maxLength",
    "maxProperties",
    "minContains",
    "minItems",
    "minLength",
    "minProperties",
)
_NUMBER = ("maximum", "minimum", "multipleOf")
_FLAG = ("deprecated", "readOnly", "uniqueItems", "writeOnly")


def check_schema(schema: Mapping[str, JSON]) -> None:
    """Check that a dict is a JSON Schema. Nothing is fetched for it.

    Raises:
        SchemaMalformed: it is none; the message says where and what should stand there.
    """
    try:
        plain = to_json(schema, "schema")
    except NotEncodable as error:
        raise SchemaMalformed(f"no JSON: {error}") from error
    if not isinstance(plain, dict):
        raise SchemaMalformed(f"a schema is an object, not a {type(schema).__name__}: {repr(schema)[:80]}")
    _check(plain, "schema")  # pyright: ignore[reportUnknownArgumentType]
    dialect = cast("dict[str, JSON]", plain).get("$schema", "")
    if not dialect or dialect.rstrip("#") in DRAFTS:
        _check_meta(plain)  # pyright: ignore[reportUnknownArgumentType]


def _check(schema: Any, where: str) -> None:
    if isinstance(schema, bool):
        return
    if not isinstance(schema, dict):
        raise _wrong(where, "a schema (an object, true or false)", schema)
    for key, value in cast("dict[str, Any]", schema).items():
        if checker := _CHECKS.get(key):
            checker(value, f"{where}.{key}")


def _types(value: Any, where: str) -> None:
    names: list[Any] = [value] if isinstance(value, str) else _members(value, where)
    if not names or any(name not in TYPES for name in names):
        raise _wrong(where, f"one or several of {', '.join(TYPES)}", value)


def _required(value: Any, where: str) -> None:
    names = _members(value, where)
    if not all(isinstance(name, str) for name in names) or len(set(names)) != len(names):
        raise _wrong(where, "a list of different names", value)


def _items(value: Any, where: str) -> None:
    # A list of schemas is what older dialects have; the meta-schema decides, where the dialect is known.
    if isinstance(value, list):
        _schemas(cast("list[Any]", value), where)
    else:
        _check(value, where)


def _schemas(value: Any, where: str) -> None:
    members = _members(value, where)
    if not members:
        raise _wrong(where, "a list of at least one schema", value)
    for n, member in enumerate(members):
        _check(member, f"{where}[{n}]")


def _named_schemas(value: Any, where: str) -> None:
    if not isinstance(value, dict):
        raise _wrong(where, "an object of schemas", value)
    for name, member in cast("dict[str, Any]", value).items():
        _check(member, f"{where}.{name}")


def _members(value: Any, where: str) -> list[Any]:
    if not isinstance(value, list):
        raise _wrong(where, "a list", value)
    return cast("list[Any]", value)


def _text(value: Any, where: str) -> None:
    if not isinstance(value, str):
        raise _wrong(where, "text", value)


def _flag(value: Any, where: str) -> None:
    if not isinstance(value, bool):
        raise _wrong(where, "true or false", value)


def _number(value: Any, where: str) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise _wrong(where, "a number", value)


def _count(value: Any, where: str) -> None:
    _number(value, where)
    if value < 0 or value != int(value):
        raise _wrong(where, "a whole number that is not negative", value)


_CHECKS: dict[str, Callable[[Any, str], object]] = {
    "type": _types,
    "required": _required,
    "items": _items,
    "enum": _members,
    "examples": _members,
    **dict.fromkeys(_SCHEMA, _check),
    **dict.fromkeys(_SCHEMAS, _schemas),
    **dict.fromkeys(_NAMED_SCHEMAS, _named_schemas),
    **dict.fromkeys(_TEXT, _text),
    **dict.fromkeys(_COUNT, _count),
    **dict.fromkeys(_NUMBER, _number),
    **dict.fromkeys(_FLAG, _flag),
}


def _check_meta(schema: dict[str, JSON]) -> None:
    try:
        import jsonschema_rs
    except ImportError:
        return  # not a dependency of the core: the shapes have been looked at
    try:
        jsonschema_rs.meta.validate(schema)
    except jsonschema_rs.ValidationError as error:
        path = "".join(f"[{step!r}]" for step in error.instance_path)
        raise SchemaMalformed(f"schema{path} breaks the meta-schema: {error.message}") from error


def _wrong(where: str, wanted: str, value: object) -> SchemaMalformed:
    return SchemaMalformed(f"{where} should be {wanted}, but is {repr(value)[:80]}")
