"""Schemas as Gemini takes them: in its words, and never narrower than the user's own."""

from __future__ import annotations

from typing import Annotated, Any, Literal, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field, TypeAdapter

from flyball.constraint.validation import validate
from flyball.core.errors import UserError
from flyball.engines.google.schemas import fitted
from tests.constraint.grammar.real_tools import TOOLS
from tests.constraint.grammar.schemas import documents

WORDS = frozenset((
    "$defs", "$ref", "type", "format", "description", "enum", "items", "prefixItems", "minItems", "maxItems",
    "minimum", "maximum", "anyOf", "properties", "additionalProperties", "required", "propertyOrdering",
))  # fmt: skip
"""What Google documents of JSON Schema, but for what only names things."""


def in_its_words(schema: Any, top: bool = True) -> None:
    """Nothing but what Google documents, and nothing beside a reference."""
    if not isinstance(schema, dict):
        assert isinstance(schema, bool)
        return
    node = cast("dict[str, Any]", schema)
    assert node.keys() <= WORDS, node.keys() - WORDS
    assert "$ref" not in node or node.keys() == {"$ref"}
    assert "$defs" not in node or top
    for value in node.get("enum", ()):
        assert isinstance(value, str | int | float)
        assert not isinstance(value, bool)
    for key in ("properties", "$defs"):
        for inner in node.get(key, {}).values():
            in_its_words(inner, top=False)
    for key in ("anyOf", "prefixItems"):
        for inner in node.get(key, ()):
            in_its_words(inner, top=False)
    for key in ("items", "additionalProperties"):
        if key in node:
            in_its_words(node[key], top=False)


@given(st.data())
def test_what_the_user_allows_is_allowed(data: st.DataObject) -> None:
    schema, values = data.draw(documents())
    if not isinstance(schema, dict):
        return
    sent = fitted(cast("dict[str, Any]", schema), "it")
    in_its_words(sent)
    value = data.draw(values)
    if not validate(cast("dict[str, Any]", schema), value):
        assert validate(sent, value) == []


@pytest.mark.parametrize("name", TOOLS)
def test_real_tools(name: str) -> None:
    schema, good = TOOLS[name]
    sent = fitted(schema, name)
    in_its_words(sent)
    assert sent.get("type") == "object"
    for value in good:
        assert validate(sent, value) == []


class Leaf(BaseModel):
    """A leaf."""

    size: Annotated[int, Field(gt=0, lt=9)]
    weight: Annotated[float, Field(gt=0.5)] = 1.0
    kind: Literal["oak", 3, None] = None
    name: str = Field("", pattern="^a", description="A name.")
    at: Annotated[str, Field(json_schema_extra={"format": "uuid"})] = ""


class Tree(BaseModel):
    leaf: Leaf = Field(description="The best.")
    other: Leaf
    left: Tree | None = None
    more: list[Tree] = []


def test_the_subset() -> None:
    sent = fitted(Tree.model_json_schema(), "a tree")
    leaf = {
        "description": "A leaf.",
        "type": "object",
        "required": ["size"],
        "properties": {
            "size": {"type": "integer", "minimum": 1, "maximum": 8},
            "weight": {"type": "number", "minimum": 0.5, "description": "exclusiveMinimum: 0.5"},
            "kind": {
                "anyOf": [
                    {"type": "string", "enum": ["oak"]},
                    {"type": "integer", "enum": [3]},
                    {"type": "null"},
                ]
            },
            "name": {"type": "string", "description": 'A name. (pattern: "^a")'},
            "at": {"type": "string", "description": 'format: "uuid"'},
        },
    }
    tree = {
        "type": "object",
        "required": ["leaf", "other"],
        "properties": {
            "leaf": {**leaf, "description": "The best."},
            "other": {"$ref": "#/$defs/Leaf"},
            "left": {"anyOf": [{"$ref": "#/$defs/Tree"}, {"type": "null"}]},
            "more": {"type": "array", "items": {"$ref": "#/$defs/Tree"}},
        },
    }
    assert sent == {**tree, "$defs": {"Leaf": leaf, "Tree": tree}}


class Endless(BaseModel):
    children: list[Endless]
    next: Endless | None


def test_a_circle_that_gemini_cannot_follow_is_cut() -> None:
    sent = fitted(Endless.model_json_schema(), "it")
    again = {"type": "object", "description": '$ref: "#/$defs/Endless"'}
    assert sent["properties"] == {
        "children": {"type": "array", "items": again},
        "next": {"anyOf": [again, {"type": "null"}]},
    }
    assert "$defs" not in sent
    value: dict[str, Any] = {"children": [{"children": [], "next": None}], "next": None}
    assert validate(sent, value) == []


def test_what_refers_to_the_whole() -> None:
    schema = {"type": "object", "properties": {"again": {"$ref": "#"}}}
    assert fitted(schema, "it") == schema
    needed = {**schema, "required": ["again"]}
    assert fitted(needed, "it")["properties"] == {"again": {"type": "object", "description": '$ref: "#"'}}


def test_what_must_hold_is_refused_where_it_cannot() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "string", "pattern": "x"}}}
    assert fitted(schema, "it")["properties"]["a"]["description"] == 'pattern: "x"'
    with pytest.raises(UserError, match="'pattern' at /properties/a") as caught:
        fitted(schema, "the parameters of 'f'", strict=True)
    assert caught.value.details["keyword"] == "pattern"
    assert caught.value.details["path"] == "/properties/a"


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "#/$defs/none"},
        {"properties": {"a": {"$ref": "https://example.org/schema"}}},
        {"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}},
    ],
)
def test_references_that_lead_nowhere(schema: dict[str, Any]) -> None:
    with pytest.raises(UserError, match="refers to"):
        fitted(schema, "it")


_WORDS: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"const": "a"}, {"type": "string", "enum": ["a"]}),
    ({"type": "string", "nullable": True}, {"type": ["string", "null"]}),
    ({"enum": [True, False]}, {"type": "boolean"}),
    ({"const": True}, {"type": "boolean", "description": "enum: [true]"}),
    ({"enum": [{"a": 1}]}, {"description": 'enum: [{"a":1}]'}),
    ({"type": "string", "format": "date"}, {"type": "string", "format": "date"}),
    ({"oneOf": [{"type": "string"}, True]}, {"anyOf": [{"type": "string"}, {}]}),
    ({"allOf": [{"minimum": 1}, {"minimum": 2, "maximum": 5}]}, {"minimum": 2, "maximum": 5}),
    (
        {"type": "null", "allOf": [{"type": "array"}]},
        {"type": "null", "description": 'allOf: [{"type":"array"}]'},
    ),
    ({"items": [{"type": "string"}]}, {"prefixItems": [{"type": "string"}]}),
    ({"prefixItems": [{}], "items": False}, {"prefixItems": [{}], "maxItems": 1}),
    (
        {"patternProperties": {"^a": {}}, "additionalProperties": False},
        {"description": 'patternProperties: {"^a":{}}; additionalProperties: false'},
    ),
    ({"additionalProperties": True, "title": "T", "x-order": 1}, {}),
    ({"properties": {"a": False}}, {"properties": {"a": {"description": "not: {}"}}}),
    ({"minimum": 1, "exclusiveMinimum": True}, {"minimum": 1, "description": "exclusiveMinimum: true"}),
]  # fmt: skip


@pytest.mark.parametrize(("schema", "sent"), _WORDS)
def test_words(schema: dict[str, Any], sent: dict[str, Any]) -> None:
    assert fitted(schema, "it") == sent


LOOP = {"type": "object", "properties": {"next": {"$ref": "#/$defs/Loop"}}}
NAMED = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
_DEFINED: list[tuple[dict[str, Any], dict[str, Any]]] = [
    # What stands beside a reference, or in one `allOf` with it, is joined with what it means.
    ({"$ref": "#/$defs/Named", "minItems": 1}, {**NAMED, "minItems": 1}),
    (
        {"allOf": [{"$ref": "#/$defs/Named"}, {"properties": {"age": {"minimum": 1}}, "required": ["age"]}]},
        {
            **NAMED,
            "properties": {"name": {"type": "string"}, "age": {"minimum": 1}},
            "required": ["name", "age"],
        },
    ),
    (
        {"allOf": [{"$ref": "#/$defs/Named"}, {"properties": {"name": {"enum": ["a"]}}}]},
        {**NAMED, "properties": {"name": {"type": "string", "enum": ["a"]}}},
    ),
    ({"allOf": [{"allOf": [{"maxItems": 4}, {"maxItems": 2}]}, True]}, {"maxItems": 2}),
    (
        {"additionalProperties": True, "allOf": [{"additionalProperties": False}]},
        {"additionalProperties": False},
    ),
    ({"allOf": [{"$ref": "#/$defs/Loop"}], "description": "Again."}, {"$ref": "#/$defs/Loop"}),
    # What cannot be joined is told.
    ({"$ref": "#/$defs/Named", "type": "null"}, {"type": "null", "description": '$ref: "#/$defs/Named"'}),
    (
        {"allOf": [{"$ref": "#/$defs/Named", "type": "null"}]},
        {"type": "null", "description": '$ref: "#/$defs/Named"'},
    ),
    ({"$ref": "#/$defs/Loop", "maxItems": 1}, {"maxItems": 1, "description": '$ref: "#/$defs/Loop"'}),
    (
        {"allOf": [{"$ref": "#/$defs/Loop"}, {"minItems": 1}]},
        {"minItems": 1, "description": 'allOf: [{"$ref":"#/$defs/Loop"}]'},
    ),
    ({"allOf": [False]}, {"description": "allOf: [false]"}),
]


@pytest.mark.parametrize(("schema", "sent"), _DEFINED)
def test_references_beside_other_words(schema: dict[str, Any], sent: dict[str, Any]) -> None:
    definitions = {"Loop": LOOP, "Named": NAMED}
    whole = fitted({"properties": {"a": schema}, "$defs": definitions}, "it")
    assert whole["properties"]["a"] == sent
    in_its_words(whole)


def test_a_union_that_a_tag_tells_apart() -> None:
    class Cat(BaseModel):
        kind: Literal["cat"]

    class Dog(BaseModel):
        kind: Literal["dog"]

    schema = TypeAdapter(Annotated[Cat | Dog, Field(discriminator="kind")]).json_schema()
    sent = fitted(schema, "a pet")
    in_its_words(sent)
    assert sent["anyOf"] == [{"$ref": "#/$defs/Cat"}, {"$ref": "#/$defs/Dog"}]
