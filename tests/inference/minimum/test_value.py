from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from ipaddress import IPv4Address
from typing import Annotated, Any, Literal
from uuid import UUID

import jsonschema_rs
import pytest
from hypothesis import given
from hypothesis import strategies as st
from inline_snapshot import snapshot
from pydantic import AnyUrl, BaseModel, Field, TypeAdapter
from typing_extensions import TypedDict

from flyball.core.errors import SchemaMalformed
from flyball.inference.minimum.value import smallest_value
from tests.inference.minimum.strategies import Schema, documents


def fits(schema: Schema, value: Any) -> bool:
    return jsonschema_rs.validator_for(schema, validate_formats=True).is_valid(value)


@given(documents())
def test_the_value_fits_and_is_the_same_each_time(schema: Schema) -> None:
    value = smallest_value(schema)
    assert fits(schema, value), value
    assert smallest_value(schema) == value


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


class Cat(BaseModel):
    kind: Literal["cat"]
    lives: int = Field(ge=1, le=9)


class Dog(BaseModel):
    kind: Literal["dog"]
    name: str


class Tree(BaseModel):
    label: str = Field(min_length=2)
    left: Tree | None
    children: list[Tree]
    note: str = "optional"


@dataclass
class Point:
    x: float
    y: float = 0.0


class Row(TypedDict):
    colour: Colour
    points: Annotated[list[Point], Field(min_length=1)]


class Everything(BaseModel):
    pet: Annotated[Cat | Dog, Field(discriminator="kind")]
    tree: Tree
    row: Row
    at: datetime
    on: date
    clock: time
    lasting: timedelta
    id: UUID
    address: IPv4Address
    url: AnyUrl
    price: Decimal
    data: bytes
    code: str = Field(pattern=r"^[A-Z]{2}-\d{4}$")
    share: float = Field(gt=0, lt=1)
    even: int = Field(gt=0, multiple_of=2)
    pair: tuple[int, str]
    some: Annotated[set[int], Field(min_length=3)]
    table: dict[str, int]
    either: int | str
    anything: Any


def test_the_types_that_users_bring() -> None:
    adapter = TypeAdapter(Everything)
    value = smallest_value(adapter.json_schema())
    adapter.validate_json(adapter.dump_json(adapter.validate_python(value)))
    assert fits(adapter.json_schema(), value)
    assert value == snapshot(
        {
            "pet": {"kind": "cat", "lives": 1},
            "tree": {"label": "aa", "left": None, "children": []},
            "row": {"colour": "red", "points": [{"x": 0}]},
            "at": "2000-01-01T00:00:00Z",
            "on": "2000-01-01",
            "clock": "00:00:00Z",
            "lasting": "PT0S",
            "id": "00000000-0000-4000-8000-000000000000",
            "address": "0.0.0.0",
            "url": "https://example.com/",
            "price": 0,
            "data": "",
            "code": "AA-0000",
            "share": 0.5,
            "even": 2,
            "pair": [0, ""],
            "some": [0, 1, 2],
            "table": {},
            "either": 0,
            "anything": None,
        }
    )


@pytest.mark.parametrize(
    "kind",
    [
        int,
        str,
        bool,
        float,
        None,
        list[int],
        dict[str, int],
        Literal["a", "b"],
        int | None,
        Tree,
        Colour,
        Row,
    ],
)
def test_plain_types(kind: Any) -> None:
    adapter: TypeAdapter[Any] = TypeAdapter(kind)
    adapter.validate_python(smallest_value(adapter.json_schema()))


SMALLEST: list[tuple[Schema, Any]] = [
    ({}, None),
    ({"type": "integer"}, 0),
    ({"type": "integer", "minimum": 3}, 3),
    ({"type": "integer", "exclusiveMinimum": 3}, 4),
    ({"type": "integer", "minimum": 2.5}, 3),
    ({"type": "integer", "maximum": -3}, -3),
    ({"type": "number", "exclusiveMaximum": -3}, -4),
    ({"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1}, 0.5),
    ({"type": "number", "minimum": 0.25, "exclusiveMaximum": 1}, 0.25),
    ({"type": "number", "exclusiveMinimum": 0.25, "maximum": 0.5}, 0.5),
    ({"type": "number", "exclusiveMinimum": 0, "multipleOf": 0.1}, 0.1),
    ({"type": "integer", "exclusiveMinimum": 0, "multipleOf": 1.5}, 3),
    ({"type": "string"}, ""),
    ({"type": "string", "minLength": 3}, "aaa"),
    ({"type": "string", "format": "date"}, "2000-01-01"),
    ({"type": "string", "format": "unheard-of"}, ""),
    ({"minLength": 2}, "aa"),
    ({"enum": ["x", "y"]}, "x"),
    ({"type": "integer", "enum": ["x", True, 2]}, 2),
    ({"const": None}, None),
    ({"enum": [1, 5, 7, 8, 9], "minimum": 2, "exclusiveMinimum": 5, "maximum": 9, "multipleOf": 2}, 8),
    ({"enum": ["a", "aaaa", "bbb", "aaa"], "minLength": 2, "maxLength": 3, "pattern": "a"}, "aaa"),
    ({"enum": [3, True], "exclusiveMaximum": 3}, True),
    ({"type": ["boolean", "null"], "enum": [1, False, None]}, False),
    ({"type": ["null", "array", "object"], "enum": [1, "a", [], {}]}, []),
    ({"type": "object", "enum": [[], {}]}, {}),
    ({"type": "number", "enum": [True, 1.5]}, 1.5),
    ({"type": "null"}, None),
    ({"allOf": [{"pattern": "^a", "type": "string"}, {"pattern": "^a"}]}, "a"),
    ({"type": ["string", "null"]}, ""),
    ({"anyOf": [{"type": "integer"}, {"type": "null"}]}, 0),
    ({"anyOf": [{"type": "integer", "minimum": 5, "maximum": 4}, {"type": "null"}]}, None),
    ({"minimum": 2, "anyOf": [{"type": "integer"}, {"type": "null"}]}, 2),
    ({"allOf": [{"minimum": 2}, {"type": "integer", "minimum": 4}]}, 4),
    ({"allOf": [{"multipleOf": 4}, {"type": "integer", "multipleOf": 6, "minimum": 1}]}, 12),
    ({"allOf": [{"type": ["integer", "null"]}, {"type": ["number", "string"]}]}, 0),
    ({"allOf": [{"type": "number"}, {"type": "integer"}]}, 0),
    ({"allOf": [{"enum": [1, 2]}, {"enum": [2, 3]}]}, 2),
    ({"type": "array", "items": False}, []),
    ({"type": "array", "minItems": 2, "prefixItems": [{"const": 1}], "items": {"const": 2}}, [1, 2]),
    (
        {"type": "array", "minItems": 3, "uniqueItems": True, "items": {"enum": ["a", "b", "c"]}},
        ["a", "b", "c"],
    ),
    ({"type": "array", "minItems": 2, "uniqueItems": True, "items": {"type": "boolean"}}, [False, True]),
    ({"type": "array", "minItems": 2, "uniqueItems": True, "items": {"type": "array"}}, [[], [None]]),
    (
        {"type": "array", "minItems": 3, "uniqueItems": True, "items": {"type": "string", "maxLength": 1}},
        ["", "a", "b"],
    ),
    (
        {
            "type": "array",
            "minItems": 3,
            "uniqueItems": True,
            "items": {"type": "number", "minimum": 0.1, "maximum": 0.9},
        },
        [0.1, 0.36666666666666664, 0.3],
    ),
    (
        {
            "type": "array",
            "minItems": 3,
            "uniqueItems": True,
            "items": {"type": "integer", "minimum": -1, "maximum": 1},
        },
        [0, 1, -1],
    ),
    (
        {
            "allOf": [
                {"prefixItems": [{"minimum": 1}]},
                {"type": "array", "prefixItems": [{"type": "integer"}, {"const": 5}], "minItems": 2},
            ]
        },
        [1, 5],
    ),
    (
        {
            "allOf": [
                {"patternProperties": {"^a": {"minimum": 1}}},
                {"patternProperties": {"^a": {"type": "integer"}, "b": {}}, "required": ["a"]},
            ]
        },
        {"a": 1},
    ),
    (
        {
            "type": "array",
            "minItems": 2,
            "uniqueItems": True,
            "items": {"properties": {"k": {"const": 1}, "n": {"type": "integer"}}, "required": ["k", "n"]},
        },
        [{"k": 1, "n": 0}, {"k": 1, "n": 1}],
    ),
    ({"type": "object", "properties": {"a": {"type": "integer"}}}, {}),
    ({"required": ["a"]}, {"a": None}),
    (
        {"type": "object", "minProperties": 2, "additionalProperties": {"type": "integer"}},
        {"key1": 0, "key2": 0},
    ),
    ({"required": ["id_a"], "patternProperties": {"^id_": {"type": "integer"}}}, {"id_a": 0}),
    (
        {
            "allOf": [
                {"properties": {"a": {"minimum": 2}}},
                {"properties": {"a": {"type": "integer"}}, "required": ["a"]},
            ]
        },
        {"a": 2},
    ),
    ({"$ref": "#/$defs/a", "minimum": 3, "$defs": {"a": {"type": "integer"}}}, 3),
    ({"type": "object", "properties": {"a": {"$ref": "#"}}, "required": []}, {}),
    ({"type": "array", "prefixItems": [{"const": 7}, {"$ref": "#/prefixItems/0"}], "minItems": 2}, [7, 7]),
]


@pytest.mark.parametrize(("schema", "expected"), SMALLEST)
def test_it_is_the_smallest(schema: Schema, expected: Any) -> None:
    value = smallest_value(schema)
    assert value == expected
    assert type(value) is type(expected)
    assert fits(schema, value)


NO_VALUE: list[tuple[Any, str]] = [
    (False, r"\$ contains itself without an end, or nothing fits it"),
    ([], r"\$ is no schema but \[\]"),
    ({"type": "integer", "minimum": 2, "maximum": 1}, r"\$: nothing was found between its bounds"),
    ({"type": "string", "minLength": 2, "maxLength": 1}, "between its bounds"),
    ({"type": "string", "minLength": 10**12}, "between its bounds"),
    ({"type": "array", "minItems": 10**12}, "between its bounds"),
    ({"type": "string", "format": "date", "maxLength": 3}, "between its bounds"),
    ({"type": "string", "pattern": "^a$", "minLength": 2}, "between its bounds"),
    ({"type": "string", "pattern": "("}, "between its bounds"),
    ({"type": "widget"}, "has the type 'widget'"),
    ({"properties": {"a": {"not": {}}}, "required": ["a"]}, r"\$\.a uses 'not', which is not followed"),
    ({"type": "array", "minItems": 1, "items": False}, r"\$\[0\]"),
    ({"type": "array", "minItems": 3, "uniqueItems": True, "items": {"type": "boolean"}}, r"\$\[2\]"),
    ({"required": ["a"], "additionalProperties": False}, r"\$\.a"),
    ({"required": ["a", "b"], "maxProperties": 1}, "between its bounds"),
    ({"type": "object", "minProperties": 1, "propertyNames": {"pattern": "^x"}}, "names that follow a rule"),
    ({"$ref": "#/$defs/nobody"}, "'#/\\$defs/nobody', which leads nowhere"),
    ({"$ref": "https://example.com/schema"}, "outside the schema"),
    ({"$ref": 3}, "outside the schema"),
    ({"properties": {"a": {"$ref": "#"}}, "required": ["a"]}, r"\$\.a contains itself without an end"),
    ({"allOf": [{"type": "string"}, {"type": "integer"}]}, "nothing fits it"),
    ({"allOf": [{"const": 1}, {"const": 2}]}, "nothing fits it"),
    ({"allOf": [{"enum": [1]}, {"enum": [2]}]}, "nothing fits it"),
    ({"enum": [1], "type": "string"}, "allows only 0 values"),
    ({"enum": [1], "const": 2}, "allows only 0 values"),
    ({"allOf": [{"pattern": "^a"}, {"pattern": "b$"}], "type": "string"}, "nothing fits it"),
    ({"type": "array", "minItems": 2, "uniqueItems": True, "items": {"type": "null"}}, r"\$\[1\]"),
    (
        {
            "type": "array",
            "minItems": 2,
            "uniqueItems": True,
            "items": {"properties": {"a": {"const": 1}}, "required": ["a"]},
        },
        r"\$\[1\]",
    ),
    (
        {
            "type": "array",
            "minItems": 28,
            "uniqueItems": True,
            "items": {"type": "string", "minLength": 1, "maxLength": 1},
        },
        r"\$\[",
    ),
    (
        {
            "allOf": [
                {"properties": {"a": True}, "additionalProperties": False},
                {"properties": {"b": True}, "required": ["b"]},
            ]
        },
        r"\$\.b",
    ),
]


@pytest.mark.parametrize(("schema", "wrong"), NO_VALUE)
def test_where_there_is_no_value_it_says_where_and_why(schema: Any, wrong: str) -> None:
    with pytest.raises(SchemaMalformed, match=wrong) as caught:
        smallest_value(schema)
    assert "ScriptedEngine" in caught.value.message


values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-3, 30)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=2),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("ab"), inner, max_size=2),
    max_leaves=4,
)
KEYWORDS = [
    *["type", "enum", "const", "anyOf", "allOf", "oneOf", "$ref", "properties", "required", "minProperties"],
    *[
        "additionalProperties",
        "patternProperties",
        "items",
        "prefixItems",
        "minItems",
        "uniqueItems",
        "minimum",
    ],
    *["exclusiveMaximum", "multipleOf", "minLength", "pattern", "format", "maxLength"],
]
types = st.sampled_from(["object", "array", "string", "number", "integer", "nonsense"])


@given(st.dictionaries(st.sampled_from(KEYWORDS), values, max_size=4), st.none() | types)
def test_a_malformed_schema_is_a_typed_error_or_does_no_harm(schema: Schema, kind: str | None) -> None:
    with suppress(SchemaMalformed):
        smallest_value(schema if kind is None else schema | {"type": kind})


def test_a_schema_that_is_nested_too_deeply_is_refused() -> None:
    schema: Schema = {}
    for _ in range(5_000):
        schema = {"type": "array", "minItems": 1, "items": schema}
    with pytest.raises(SchemaMalformed, match="nested too deeply"):
        smallest_value(schema)
