"""JSON Schemas of Python types: what pydantic finds, and what types say of themselves.

A type with a `__json_schema__` classmethod says itself what it looks like, wherever it stands: as an output,
as a tool's parameter, or inside another type. What is validated is still the type.
"""

from __future__ import annotations

from functools import cache
from typing import Any, cast

from flyball.core.encodable import NotEncodable, to_json
from flyball.core.errors import SchemaMalformed
from flyball.core.messages import JSON

_DEFINITIONS = "#/$defs/"


def schema_for(kind: Any) -> dict[str, JSON]:
    """The JSON Schema of a type: what its own `__json_schema__` classmethod says, else what pydantic finds.

    Raises:
        SchemaMalformed: the type has none; the message names it.
    """
    own = own_schema(kind)
    if own is not None:
        return own
    try:
        from pydantic import TypeAdapter

        return adapter_schema(TypeAdapter[Any](kind))
    except SchemaMalformed:
        raise
    except Exception as error:  # the type's own code runs here
        raise _none_for(kind, error) from error


def own_schema(kind: Any) -> dict[str, JSON] | None:
    """What a type's own `__json_schema__` says; None where it has none.

    Raises:
        SchemaMalformed: it fails, or gives no JSON object.
    """
    own = getattr(kind, "__json_schema__", None)
    if not callable(own):
        return None
    try:
        return json_object(own(), f"{_name(kind)}.__json_schema__()")
    except SchemaMalformed:
        raise
    except Exception as error:  # the type's own code runs here
        raise _none_for(kind, error) from error


def adapter_schema(adapter: Any) -> dict[str, JSON]:
    """The JSON Schema of what a pydantic adapter validates, with what the types in it say of themselves.

    That of a type that holds itself has the type's own definition at its top: providers want to see there
    that it is an object's.

    Raises:
        SchemaMalformed: a type in it fails to say what it looks like.
        PydanticInvalidForJsonSchema: something in it has no JSON Schema.
    """
    schema: dict[str, Any] = adapter.json_schema(schema_generator=_generator())
    reference = schema.get("$ref")
    if isinstance(reference, str) and reference.startswith(_DEFINITIONS):
        definition = schema["$defs"][reference.removeprefix(_DEFINITIONS)]
        return definition | {name: value for name, value in schema.items() if name != "$ref"}
    return schema


def json_object(schema: object, what: str) -> dict[str, JSON]:
    """A JSON object that may be a schema.

    Raises:
        SchemaMalformed: it is none; `what` says what.
    """
    try:
        plain = to_json(schema, what)
    except NotEncodable as error:
        raise SchemaMalformed(f"no JSON: {error}") from error
    if not isinstance(plain, dict):
        raise SchemaMalformed(f"{what} is a {type(schema).__name__}, and a JSON Schema is an object")
    return cast("dict[str, JSON]", plain)


@cache
def _generator() -> Any:
    """What makes schemas for pydantic, and asks the types first; pydantic is imported when one is wanted."""
    from pydantic.json_schema import GenerateJsonSchema

    class AsksTypes(GenerateJsonSchema):
        def model_schema(self, schema: Any) -> dict[str, Any]:
            own = _own_inside(schema["cls"])
            return super().model_schema(schema) if own is None else own

        def dataclass_schema(self, schema: Any) -> dict[str, Any]:
            own = _own_inside(schema["cls"])
            return super().dataclass_schema(schema) if own is None else own

        def enum_schema(self, schema: Any) -> dict[str, Any]:
            own = _own_inside(schema["cls"])
            return super().enum_schema(schema) if own is None else own

    return AsksTypes


def _own_inside(kind: Any) -> dict[str, JSON] | None:
    """What a type says of itself, where it stands inside another.

    Raises:
        SchemaMalformed: it refers to its own beginning, which is another there.
    """
    own = own_schema(kind)
    if own is not None and _refers_to_itself(own):
        raise SchemaMalformed(
            f"{_name(kind)}.__json_schema__() refers to itself by '#', and stands inside another type here: "
            "write out what it refers to",
            type=_name(kind),
        )
    return own


def _refers_to_itself(value: Any) -> bool:
    if isinstance(value, list):
        return any(map(_refers_to_itself, cast("list[Any]", value)))
    if not isinstance(value, dict):
        return False
    inner = cast("dict[str, Any]", value)
    reference = inner.get("$ref")
    return (isinstance(reference, str) and reference.startswith("#")) or any(
        map(_refers_to_itself, inner.values())
    )


def _none_for(kind: Any, error: Exception) -> SchemaMalformed:
    name, reason = _name(kind), str(error).partition("\n")[0]
    return SchemaMalformed(
        f"the type {name} has no JSON Schema ({type(error).__name__}: {reason}): use a pydantic model, a "
        "dataclass, a TypedDict, a plain type, or give it a `__json_schema__` method",
        type=name,
    )


def _name(kind: Any) -> str:
    return kind.__qualname__ if isinstance(kind, type) else repr(kind)
