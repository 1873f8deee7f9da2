"""Tools whose parameters come as a JSON Schema: from another system, where no Python type says them.

The schema is checked for its shape only, and so are the arguments: an object with what is required. All else
is left to the function.
"""

from __future__ import annotations

from typing import Any, cast

import msgspec

from flyball.core.encodable import NotEncodable, to_json
from flyball.core.errors import SchemaMalformed
from flyball.tool.feedback import not_json, wrong
from flyball.tool.schema import JSONSchema, Validate


def check_given(tool: str, schema: Any) -> JSONSchema:
    """A copy of the given JSON Schema, if it has the shape of one for arguments.

    Raises:
        SchemaMalformed: it is no object schema; the message says what is wrong.
    """
    fault = _fault_of(schema)
    if not fault:
        try:
            return to_json(schema, "schema")
        except NotEncodable as error:
            fault = f"cannot be written as JSON: {error}"
    raise SchemaMalformed(f"tool {tool!r}: the given JSON Schema {fault}", tool=tool)


def _fault_of(given: Any) -> str:
    if not isinstance(given, dict):
        return f"is a {type(given).__name__}, not a dict"
    schema = cast("JSONSchema", given)
    if schema.get("type") != "object":
        return f"has type {schema.get('type')!r}; arguments are an object"
    properties: Any = schema.get("properties", {})
    if not isinstance(properties, dict):
        return f"has properties that are a {type(properties).__name__}, not a dict"
    for name, inner in cast("dict[Any, Any]", properties).items():
        if not isinstance(name, str) or not isinstance(inner, dict | bool):
            return f"has a property {name!r} that is no schema"
    required: Any = schema.get("required", [])
    if not isinstance(required, list) or not all(isinstance(n, str) for n in cast("list[Any]", required)):
        return f"has required {required!r}, which is no list of names"
    return ""


def validator_for(schema: JSONSchema) -> Validate:
    """JSON text to arguments, which are an object and have what the schema requires; else ModelRetry."""
    decode = msgspec.json.Decoder().decode
    required: tuple[str, ...] = tuple(schema.get("required", ()))

    def validate(args_json: str) -> dict[str, Any]:
        try:
            given: Any = decode(args_json if args_json.strip() else "{}")
        except (msgspec.DecodeError, ValueError, RecursionError) as error:
            raise wrong(f"- {not_json(str(error), args_json)}") from error
        if not isinstance(given, dict):
            raise wrong(f"- Input should be an object, not a {type(given).__name__}")
        arguments = cast("dict[str, Any]", given)
        if missing := [name for name in required if name not in arguments]:
            raise wrong("\n".join([f"- {name}: Field required" for name in missing]))
        return arguments

    return validate
