"""Schemas: built, read, found for types, and told from what is none."""

from __future__ import annotations

import contextlib
import sys
from dataclasses import dataclass
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel
from typing_extensions import TypedDict

from flyball.core.errors import SchemaMalformed
from flyball.core.schema import Schema, check_schema, is_object_schema, schema_for
from tests.strategies import json_objects, json_values, names, texts

schemas: st.SearchStrategy[Schema] = st.recursive(
    st.builds(
        Schema,
        type=st.sampled_from(["", "string", "integer", "boolean"]),
        description=texts,
        enum=st.lists(texts, max_size=2).map(tuple),
    ),
    lambda inner: st.builds(
        Schema,
        type=st.sampled_from(["object", "array"]),
        properties=st.dictionaries(names, inner, max_size=2),
        required=st.lists(names, max_size=2, unique=True).map(tuple),
        items=st.none() | inner,
        default=json_values,
        extra=st.none() | st.just({"additionalProperties": False}),
    ),
    max_leaves=4,
)
KEYWORDS = ("type", "description", "properties", "required", "enum", "items", "default")
loose_schemas = st.dictionaries(st.sampled_from([*KEYWORDS, "title", "$ref"]), json_values, max_size=5)


def test_nothing_is_written_of_what_is_empty() -> None:
    assert Schema().to_json() == {}
    assert Schema(
        type="object", properties={"city": Schema(type="string", description="Where")}
    ).to_json() == {
        "type": "object",
        "properties": {"city": {"type": "string", "description": "Where"}},
    }


def test_all_keys_of_pagantic() -> None:
    schema = Schema(
        type="object",
        description="A thing",
        properties={"tags": Schema(type="array", items=Schema(type="string", enum=("a", "b")))},
        required=("tags",),
        default={"tags": []},
    )
    assert schema.to_json() == {
        "type": "object",
        "description": "A thing",
        "properties": {"tags": {"type": "array", "items": {"type": "string", "enum": ["a", "b"]}}},
        "required": ["tags"],
        "default": {"tags": []},
    }


@given(schemas)
def test_a_schema_comes_back(schema: Schema) -> None:
    assert Schema.from_json(schema.to_json()) == schema


@given(json_objects | loose_schemas)
def test_any_object_is_written_as_it_was_read(document: dict[str, Any]) -> None:
    assert Schema.from_json(document).to_json() == document


@pytest.mark.parametrize("default", [None, 0, "", False, []])
def test_a_default_that_is_empty_is_still_one(default: Any) -> None:
    assert Schema.from_json({"default": default}).to_json() == {"default": default}


def test_unknown_keywords_are_kept_where_they_stood() -> None:
    schema = Schema.from_json({"type": "object", "properties": {"n": {"type": "integer", "minimum": 1}}})
    assert schema.properties["n"].extra == {"minimum": 1}
    assert schema.extra is None


@pytest.mark.parametrize("value", [None, [], "object", 3, {"a": object()}])
def test_what_is_no_object_is_no_schema(value: Any) -> None:
    with pytest.raises(SchemaMalformed):
        Schema.from_json(value)
    with pytest.raises(SchemaMalformed):
        check_schema(value)


def test_a_schema_without_a_bottom_is_refused() -> None:
    deep: dict[str, Any] = {}
    for _ in range(5_000):
        deep = {"items": deep}
    with pytest.raises(SchemaMalformed):
        Schema.from_json(deep)
    with pytest.raises(SchemaMalformed):
        check_schema(deep)


class Weather(BaseModel):
    city: str
    kind: Literal["sun", "rain"] = "sun"


@dataclass
class Point:
    x: float


class Options(TypedDict):
    deep: bool


class Node(BaseModel):
    children: list[Node] = []


class Own:
    @classmethod
    def __json_schema__(cls) -> dict[str, Any]:
        return {"type": "string", "format": "own"}


class OwnWrong:
    @classmethod
    def __json_schema__(cls) -> Any:
        return "string"


class OwnRaising:
    @classmethod
    def __json_schema__(cls) -> Any:
        raise OSError("not today")


class Opaque:
    pass


@pytest.mark.parametrize(
    ("kind", "is_object"),
    [
        (Weather, True),
        (Point, True),
        (Options, True),
        (Node, True),
        (dict[str, int], True),
        (str, False),
        (list[Weather], False),
        (Weather | Point, False),
        (Literal["a", "b"], False),
        (None, False),
    ],
)
def test_types_have_schemas(kind: Any, is_object: bool) -> None:
    schema = schema_for(kind)
    check_schema(schema)
    assert is_object_schema(schema) is is_object
    assert Schema.from_json(schema).to_json() == schema


def test_a_type_s_own_schema_comes_first() -> None:
    assert schema_for(Own) == {"type": "string", "format": "own"}


@pytest.mark.parametrize("kind", [Opaque, list[Opaque], OwnWrong, OwnRaising])
def test_a_type_without_a_schema_is_named(kind: Any) -> None:
    with pytest.raises(SchemaMalformed, match=r"Opaque|Own"):
        schema_for(kind)


@pytest.mark.parametrize(
    ("schema", "is_object"),
    [
        ({"type": "object"}, True),
        ({"properties": {}}, True),
        ({"type": ["object"]}, True),
        ({"type": ["object", "null"]}, False),
        ({}, False),
        ({"anyOf": [{"type": "object"}]}, False),
        ({"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"type": "object"}}}, True),
        ({"$ref": "#/$defs/a~1b", "$defs": {"a/b": {"type": "object"}}}, True),
        ({"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/a"}}}, False),
        ({"$ref": "#/$defs/nowhere"}, False),
        ({"$ref": "https://example.com/schema"}, False),
        ({"$ref": 3}, False),
    ],
)
def test_whether_a_schema_is_of_an_object(schema: dict[str, Any], is_object: bool) -> None:
    assert is_object_schema(schema) is is_object


BAD: list[tuple[dict[str, Any], str]] = [
    ({"type": "objekt"}, "type"),
    ({"type": 3}, "type"),
    ({"type": []}, "type"),
    ({"properties": []}, "properties"),
    ({"properties": {"a": 5}}, "properties"),
    ({"properties": {"a": {"items": {"type": "strange"}}}}, "properties"),
    ({"required": "a"}, "required"),
    ({"required": ["a", "a"]}, "required"),
    ({"required": [1]}, "required"),
    ({"enum": "a"}, "enum"),
    ({"items": 3}, "items"),
    ({"items": [3]}, "items"),
    ({"anyOf": []}, "anyOf"),
    ({"oneOf": [3]}, "oneOf"),
    ({"additionalProperties": "no"}, "additionalProperties"),
    ({"minLength": -1}, "minLength"),
    ({"maxItems": 1.5}, "maxItems"),
    ({"minimum": "1"}, "minimum"),
    ({"minimum": True}, "minimum"),
    ({"uniqueItems": 1}, "uniqueItems"),
    ({"description": 3}, "description"),
    ({"$schema": 3}, "schema"),
]


@pytest.mark.parametrize("with_meta", [True, False])
@pytest.mark.parametrize(("schema", "place"), BAD, ids=str)
def test_what_breaks_the_shape_is_found_and_placed(
    schema: dict[str, Any], place: str, with_meta: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not with_meta:
        monkeypatch.setitem(sys.modules, "jsonschema_rs", None)
    with pytest.raises(SchemaMalformed, match=place):
        check_schema(schema)


def test_the_meta_schema_finds_more() -> None:
    pytest.importorskip("jsonschema_rs")
    with pytest.raises(SchemaMalformed, match="multipleOf"):
        check_schema({"properties": {"n": {"multipleOf": 0}}})


def test_older_dialects_are_taken() -> None:
    check_schema({"$schema": "http://json-schema.org/draft-07/schema#", "items": [{"type": "string"}]})


def test_an_unknown_dialect_is_not_fetched(monkeypatch: pytest.MonkeyPatch) -> None:
    fetcher = pytest.importorskip("jsonschema_rs")

    def validate(schema: Any) -> None:
        raise AssertionError(f"asked for {schema}")

    monkeypatch.setattr(fetcher.meta, "validate", validate)
    check_schema({"$schema": "https://example.com/dialect", "type": "object"})
    with pytest.raises(AssertionError):
        check_schema({"type": "object"})


@given(json_objects | loose_schemas)
def test_any_object_is_a_schema_or_is_not(document: dict[str, Any]) -> None:
    with contextlib.suppress(SchemaMalformed):
        check_schema(document)
    assert is_object_schema(document) in (True, False)
