"""From a signature to a JSON Schema for the model and a validator for what comes back.

pydantic does both, over a TypedDict made of the parameters: the validator's answer is the keyword arguments
themselves, and what the model leaves out is left to the function's own defaults. pydantic is imported when
the first tool is made, not before.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Annotated, Any, NotRequired, Required, TypeAlias, cast

from flyball.core.encodable import NotEncodable, to_json
from flyball.core.errors import SchemaMalformed
from flyball.core.type_schema import adapter_schema
from flyball.tool.signature import MISSING, Argument

JSONSchema: TypeAlias = dict[str, Any]
Validate: TypeAlias = Callable[[str], dict[str, Any]]
"""JSON text to keyword arguments; raises ValueError (pydantic's ValidationError) or ModelRetry."""

_SCHEMAS_BY_NAME = frozenset({"properties", "$defs", "patternProperties", "dependentSchemas"})
_SCHEMA_LISTS = frozenset({"anyOf", "oneOf", "allOf", "prefixItems"})
_SCHEMAS = frozenset({"items", "additionalProperties", "contains", "not", "if", "then", "else"})


def schema_for(
    tool: str, arguments: tuple[Argument, ...], about: Mapping[str, str], *, strict: bool = False
) -> tuple[JSONSchema, Validate]:
    """The schema and the validator of a tool's arguments; `about` describes those that do not themselves.

    With `strict` nothing is taken for something else: the text "1" is no number.

    Raises:
        SchemaMalformed: a parameter's type has no schema; the message names it.
    """
    try:
        schema, validate = _built(tool, arguments, strict=strict)
    except Exception:
        # Asking for each parameter alone says which one is to blame.
        for argument in arguments:
            try:
                _built(tool, (argument,))
            except Exception as error:
                raise _malformed(tool, argument, error) from error
        raise
    for argument in arguments:
        _explain(schema["properties"].get(argument.name, {}), argument, about.get(argument.name))
    return schema, validate


def _built(
    tool: str, arguments: tuple[Argument, ...], *, strict: bool = False
) -> tuple[JSONSchema, Validate]:
    from pydantic import ConfigDict, TypeAdapter
    from typing_extensions import TypedDict  # pydantic wants this one before Python 3.12

    fields = {argument.name: _field(argument) for argument in arguments}
    shape: Any = TypedDict(tool, fields)  # pyright: ignore[reportArgumentType, reportGeneralTypeIssues]
    shape.__pydantic_config__ = ConfigDict(extra="forbid")
    adapter: TypeAdapter[dict[str, Any]] = TypeAdapter(shape)
    schema = to_json(without_titles(adapter_schema(adapter)), "schema")
    validate = adapter.validator.validate_json
    return schema, cast("Validate", partial(validate, strict=True) if strict else validate)


def _field(argument: Argument) -> Any:
    annotation, default = argument.annotation, argument.default
    if _is_field_info(default):
        # `days: int = Field(3, ge=1)`: pydantic holds the default, since the function's is the Field itself.
        annotation = Annotated[annotation, default]
        return Required[annotation] if default.is_required() else NotRequired[annotation]
    return Required[annotation] if default is MISSING else NotRequired[annotation]


def _explain(shown: JSONSchema, argument: Argument, about: str | None) -> None:
    if about:
        shown.setdefault("description", about)
    if argument.default is MISSING or _is_field_info(argument.default):
        return
    try:
        shown.setdefault("default", to_json(argument.default))
    except NotEncodable:
        # It holds all the same; the model just cannot be shown it.
        return


def _is_field_info(value: Any) -> bool:
    from pydantic.fields import FieldInfo

    return isinstance(value, FieldInfo)


def without_titles(schema: JSONSchema) -> JSONSchema:
    """The schema without titles, which repeat the names and cost tokens; a property called title stays."""
    return {key: _inside(key, value) for key, value in schema.items() if key != "title"}


def _inside(key: str, value: Any) -> Any:
    if key in _SCHEMAS_BY_NAME and isinstance(value, dict):
        return {name: _sub(inner) for name, inner in cast("JSONSchema", value).items()}
    if key in _SCHEMA_LISTS and isinstance(value, list):
        return [_sub(inner) for inner in cast("list[Any]", value)]
    return _sub(value) if key in _SCHEMAS else value


def _sub(schema: Any) -> Any:
    return without_titles(cast("JSONSchema", schema)) if isinstance(schema, dict) else schema


def _malformed(tool: str, argument: Argument, error: Exception) -> SchemaMalformed:
    annotation = argument.annotation
    kind = annotation.__name__ if isinstance(annotation, type) else str(annotation)
    reason = str(error).strip().partition("\n")[0]
    return SchemaMalformed(
        f"tool {tool!r}: parameter {argument.name!r} of type {kind} has no JSON Schema: {reason}",
        tool=tool,
        parameter=argument.name,
    )
