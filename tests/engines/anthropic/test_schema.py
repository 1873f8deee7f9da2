"""Schemas made to fit, or refused."""

from __future__ import annotations

from enum import Enum
from typing import Annotated, Any, Literal

import jsonschema_rs
import pytest
from anthropic import transform_schema
from pydantic import BaseModel, Field, TypeAdapter

from flyball.engines.anthropic.schema import fitting_schema


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


class Wheel(BaseModel):
    """A wheel."""

    size: Annotated[int, Field(ge=1, le=30, description="In inches.")]


class Car(BaseModel):
    name: str = Field(min_length=1)
    colour: Colour = Colour.RED
    wheels: Annotated[list[Wheel], Field(min_length=4)]
    owner: str | None = None
    kind: Literal["car"] = "car"
    load: Wheel | float | bool = 1.0
    tags: list[str] = []


def _schema(kind: Any) -> dict[str, Any]:
    return TypeAdapter(kind).json_schema()


def test_what_follows_the_schema_follows_what_fits() -> None:
    car = Car(name="x", wheels=[Wheel(size=15)] * 4, load=Wheel(size=3)).model_dump(mode="json")
    fitted = fitting_schema(_schema(Car))
    assert fitted is not None
    assert jsonschema_rs.is_valid(fitted, car)
    assert not jsonschema_rs.is_valid(fitted, car | {"more": 1})
    assert not jsonschema_rs.is_valid(fitted, car | {"colour": "green"})
    # How large a thing is, the decoder does not know: it is told.
    assert fitted["$defs"]["Wheel"]["properties"]["size"] == {
        "title": "Size",
        "description": "In inches.\n\n{maximum: 30, minimum: 1}",
        "type": "integer",
    }


def test_it_keeps_to_what_the_vendors_own_transformation_keeps_to() -> None:
    """Whatever we send, the vendor's client finds nothing more to change about it."""
    for kind in (Car, Wheel, list[Car], Annotated[str, Field(json_schema_extra={"format": "date"})]):
        fitted = fitting_schema(_schema(kind))
        assert fitted is not None
        assert transform_schema(fitted) == fitted


class Node(BaseModel):
    inner: list[Node]


class Open(BaseModel):
    model_config = {"extra": "allow"}
    name: str


@pytest.mark.parametrize(
    "schema",
    [
        _schema(dict[str, int]),
        _schema(tuple[int, str]),
        _schema(Node),
        _schema(Open),
        _schema(Any),
        {"type": "object"},
        {"type": "object", "properties": {"x": True}},
        {"type": "object", "properties": {"x": {"type": "string"}}, "required": ["y"]},
        {"type": "array"},
        {"enum": [{"a": 1}]},
        {"const": [1]},
        {"type": "string", "not": {"const": "x"}},
        {"$ref": "https://example.org/schema"},
        {"$ref": "#/$defs/x", "minimum": 1, "$defs": {"x": {"type": "integer"}}},
        {"allOf": [{"type": "string"}, {"type": "string"}]},
        {"type": "object", "anyOf": [{"type": "object"}]},
        {"type": ["string", "null"], "anyOf": [{"type": "string"}]},
        {"enum": ["a"], "anyOf": [{"type": "string"}]},
        {"type": "unheard-of"},
    ],
)
def test_what_does_not_fit(schema: dict[str, Any]) -> None:
    assert fitting_schema(schema) is None


@pytest.mark.parametrize(
    ("schema", "fitted"),
    [
        ({"type": ["string", "null"]}, {"anyOf": [{"type": "string"}, {"type": "null"}]}),
        ({"oneOf": [{"type": "string"}]}, {"anyOf": [{"type": "string"}]}),
        ({"allOf": [{"type": "string"}], "description": "x"}, {"type": "string", "description": "x"}),
        ({"type": "string", "enum": ["a", None]}, {"enum": ["a", None]}),
        ({"type": "string", "format": "date"}, {"type": "string", "format": "date"}),
        ({"type": "string", "format": "color"}, {"type": "string", "description": "{format: color}"}),
        (
            {"type": "array", "items": {"type": "null"}, "minItems": 1, "maxItems": 2},
            {"type": "array", "items": {"type": "null"}, "minItems": 1, "description": "{maxItems: 2}"},
        ),
    ],
)
def test_what_is_said_otherwise(schema: dict[str, Any], fitted: dict[str, Any]) -> None:
    assert fitting_schema(schema) == fitted
