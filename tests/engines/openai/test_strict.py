"""Strict schemas mean what the schemas meant, and are of OpenAI's subset."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from openai.lib._pydantic import _ensure_strict_json_schema  # pyright: ignore[reportPrivateUsage]
from pydantic import BaseModel, Field

from flyball.constraint.validation import validate
from flyball.engines.openai.strict import strict_schema
from tests.constraint.grammar.schemas import Pair, documents


class Inner(BaseModel):
    n: int = Field(ge=0)


class Outer(BaseModel):
    """A thing."""

    name: str
    inner: Inner
    many: list[Inner | None]
    maybe: int | None = None


def test_a_model_becomes_strict() -> None:
    fitted = strict_schema(Outer.model_json_schema())
    assert fitted is not None
    assert fitted["required"] == ["name", "inner", "many", "maybe"]
    assert fitted["$defs"]["Inner"]["additionalProperties"] is False
    assert "default" not in fitted["properties"]["maybe"]


def test_the_vendors_own_way_changes_nothing_more() -> None:
    fitted = strict_schema(Outer.model_json_schema())
    assert fitted is not None
    again: Any = _ensure_strict_json_schema(fitted, path=(), root=fitted)
    assert again == fitted


UNFIT: list[dict[str, Any]] = [
    {"type": "string"},
    {"type": "object", "additionalProperties": {"type": "integer"}},
    {"type": "object", "properties": {"a": {}}, "required": ["a"]},
    {"type": "object", "properties": {"a": {"type": "integer"}}},
    {"type": "object", "properties": {"a": {"type": "string", "format": "colour"}}, "required": ["a"]},
    {"type": "object", "properties": {"a": {"not": {}}}, "required": ["a"]},
    {"type": "object", "properties": {}, "required": ["ghost"]},
    {"type": "object", "properties": {"a": {"type": "array", "prefixItems": []}}, "required": ["a"]},
    {"anyOf": [{"type": "object", "properties": {}}, {"type": "null"}]},
]


@pytest.mark.parametrize("schema", UNFIT)
def test_what_would_mean_something_else_does_not_fit(schema: dict[str, Any]) -> None:
    assert strict_schema(schema) is None


def test_who_insists_gets_nulls() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}}
    fitted = strict_schema(schema, nulls=True)
    assert fitted is not None
    assert fitted["properties"]["a"] == {"anyOf": [{"type": "integer"}, {"type": "null"}]}
    assert fitted["required"] == ["a"]


@given(document=documents(), data=st.data())
def test_what_follows_the_strict_schema_follows_the_schema(document: Pair, data: st.DataObject) -> None:
    schema = {"type": "object", "properties": {"it": document[0]}, "required": ["it"]}
    if "$defs" in document[0]:
        schema["$defs"] = document[0]["$defs"]
    fitted = strict_schema(schema)
    assume(fitted is not None)
    assert fitted is not None
    value = {"it": data.draw(document[1])}
    if validate(fitted, value) == []:
        assert validate(schema, value) == []
