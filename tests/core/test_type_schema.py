"""Schemas of types: what a type says of itself holds wherever it stands. (Others: test_schema.)"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from types import GenericAlias
from typing import Any

import pytest
from pydantic import BaseModel, create_model

from flyball.core.errors import SchemaMalformed
from flyball.core.schema import check_schema, is_object_schema
from flyball.core.type_schema import own_schema, schema_for

MINE: dict[str, Any] = {"type": "object", "properties": {"name": {"enum": ["a", "b"]}}}


class Model(BaseModel):
    name: str

    @classmethod
    def __json_schema__(cls) -> dict[str, Any]:
        return MINE


@dataclass
class Data:
    name: str

    @classmethod
    def __json_schema__(cls) -> dict[str, Any]:
        return MINE


class Colour(Enum):
    RED = "red"

    @classmethod
    def __json_schema__(cls) -> dict[str, Any]:
        return {"enum": ["red"], "description": "A colour."}


class Anything(BaseModel):
    @classmethod
    def __json_schema__(cls) -> dict[str, Any]:
        return {}


class Broken(BaseModel):
    @classmethod
    def __json_schema__(cls) -> dict[str, Any]:
        raise KeyError("no such thing")


class Circular(BaseModel):
    @classmethod
    def __json_schema__(cls) -> dict[str, Any]:
        return {"type": "array", "items": {"$ref": "#"}}


class Node(BaseModel):
    """Holds others."""

    children: list[Node] = []


class Pair(BaseModel):
    left: Node
    right: Node


@pytest.mark.parametrize("kind", [Model, Data, Colour, Anything])
def test_what_a_type_says_of_itself_holds_inside_others(kind: Any) -> None:
    own = kind.__json_schema__()
    assert schema_for(kind) == own

    many: Any = GenericAlias(list, kind)
    outer = create_model("Outer", one=(kind, ...), many=(many, ...))
    for whole in (outer, list[outer], dict[str, outer], outer | None):
        schema: Any = schema_for(whole)
        check_schema(schema)
        found = schema["$defs"][kind.__name__]
        assert {key: value for key, value in found.items() if key != "title"} == own


def test_who_says_nothing_of_itself() -> None:
    assert own_schema(Node) is None
    assert own_schema(int) is None


@pytest.mark.parametrize("kind", [Broken, list[Broken], Broken | None])
def test_a_type_that_fails_to_say_is_named(kind: Any) -> None:
    with pytest.raises(SchemaMalformed, match="Broken"):
        schema_for(kind)


def test_what_refers_to_itself_stands_alone() -> None:
    assert schema_for(Circular) == Circular.__json_schema__()
    with pytest.raises(SchemaMalformed, match=r"Circular.*'#'"):
        schema_for(list[Circular])


def test_a_type_that_holds_itself_is_seen_to_be_an_object() -> None:
    schema = schema_for(Node)
    check_schema(schema)
    assert is_object_schema(schema)
    assert (schema["type"], schema["description"]) == ("object", "Holds others.")
    assert set(schema["properties"]) == {"children"}  # pyright: ignore[reportArgumentType]
    assert schema_for(Pair)["type"] == "object"
