"""JSON Schemas: a builder for them, those of Python types (`type_schema`), and whether a dict is one.

A schema is a plain dict everywhere in flyball; `Schema` (pagantic's type) builds one and reads one. Whether a
value follows a schema is not decided here; `check_schema` says whether a dict is one at all.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from msgspec import UNSET, Struct, UnsetType

from flyball.core.messages import JSON
from flyball.core.schema_check import check_schema
from flyball.core.type_schema import json_object, schema_for

__all__ = ["Schema", "check_schema", "is_object_schema", "schema_for"]


class Schema(Struct, frozen=True, omit_defaults=True):
    """A JSON Schema in the making: objects with typed properties, arrays, enumerations, plain types.

    Keywords that it does not know, and those that it knows in a shape that its fields cannot hold (a list of
    types, an empty list of properties), are in `extra`, so that reading and writing gives the same dict back.
    """

    type: str = ""
    description: str = ""
    properties: dict[str, Schema] = {}
    required: tuple[str, ...] = ()
    enum: tuple[JSON, ...] = ()
    items: Schema | None = None
    default: JSON | UnsetType = UNSET
    extra: dict[str, JSON] | None = None

    def to_json(self) -> dict[str, JSON]:
        """The schema as a dict, without what is empty."""
        known: dict[str, JSON] = {}
        if self.type:
            known["type"] = self.type
        if self.description:
            known["description"] = self.description
        if self.properties:
            known["properties"] = {name: inner.to_json() for name, inner in self.properties.items()}
        if self.required:
            known["required"] = list(self.required)
        if self.enum:
            known["enum"] = list(self.enum)
        if self.items is not None:
            known["items"] = self.items.to_json()
        if self.default is not UNSET:
            known["default"] = self.default
        return (self.extra or {}) | known

    @classmethod
    def from_json(cls, schema: Mapping[str, JSON]) -> Schema:
        """The schema from a dict; `from_json(schema).to_json()` is the same dict.

        Raises:
            SchemaMalformed: it is no JSON object.
        """
        return _schema(json_object(schema, "the schema"))


def is_object_schema(schema: Mapping[str, JSON]) -> bool:
    """Whether what follows the schema is a JSON object; a reference into the schema itself is followed."""
    seen: set[str] = set()
    here: Any = schema
    while isinstance(here, Mapping):
        node = cast("Mapping[str, JSON]", here)
        if node.get("type") in ("object", ["object"]):
            return True
        reference = node.get("$ref")
        if not isinstance(reference, str) or reference in seen:
            return "type" not in node and "properties" in node
        seen.add(reference)
        here = _target(schema, reference)
    return False


def _target(schema: Mapping[str, JSON], reference: str) -> Any:
    """What a local reference points to; None if nothing is there."""
    if not reference.startswith("#/"):
        return None
    here: Any = schema
    for step in reference[2:].split("/"):
        if not isinstance(here, Mapping):
            return None
        name = step.replace("~1", "/").replace("~0", "~")
        here = cast("Mapping[str, Any]", here).get(name)
    return here


def _schema(plain: dict[str, JSON]) -> Schema:
    fitting: dict[str, Any] = {}
    extra: dict[str, JSON] = {}
    for key, value in plain.items():
        # An empty keyword would not be written again from its field; an empty schema of the items is one.
        if (value or key == "items") and (fit := _fit(key, value)) is not None:
            fitting[key] = fit
        elif key == "default":
            fitting[key] = value
        else:
            extra[key] = value
    return Schema(**fitting, extra=extra or None)


def _fit(key: str, value: Any) -> Any:
    """A keyword's value as the field of that name holds it; None if there is no such field or it cannot."""
    if key in ("type", "description"):
        return value if isinstance(value, str) else None
    if key == "items":
        return _schema(cast("dict[str, JSON]", value)) if isinstance(value, dict) else None
    if key == "properties" and isinstance(value, dict):
        inner = cast("dict[str, JSON]", value)
        if all(isinstance(item, dict) for item in inner.values()):
            return {name: _schema(item) for name, item in inner.items()}
    if key in ("required", "enum") and isinstance(value, list):
        members = cast("list[Any]", value)
        return tuple(members) if key == "enum" or all(isinstance(item, str) for item in members) else None
    return None
