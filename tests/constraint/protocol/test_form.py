"""A schema as a form."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from pydantic import BaseModel, Field

from flyball.constraint.protocol.form import form
from tests.constraint.grammar.schemas import Pair, documents

FORMS: list[tuple[Any, str]] = [
    ({"type": "string"}, "<string>"),
    ({"type": "string", "description": "who\n  it is"}, "<string: who it is>"),
    ({"type": "string", "format": "date"}, "<date>"),
    ({"type": ["integer", "null"]}, "<integer or null>"),
    ({"const": "x"}, '<"x">'),
    ({"enum": ["a", "b", None]}, '<"a" or "b" or null>'),
    ({"type": "integer", "minimum": 1, "maximum": 5}, "<integer from 1 to 5>"),
    ({"type": "integer", "minimum": 1}, "<integer of at least 1>"),
    ({"type": "number", "maximum": 0.5}, "<number of at most 0.5>"),
    ({"type": "array", "items": {"type": "string"}}, "<list of string>"),
    ({"type": "array"}, "<list of value>"),
    ({"anyOf": [{"type": "string"}, {"type": "null"}]}, "<string or null>"),
    ({"type": "array", "items": {"properties": {"a": {}}}}, '[{"a": <value>}, ...]'),
    ({"description": "it", "anyOf": [{"const": 1}, {"type": "null"}]}, "<1 or null: it>"),
    ({"oneOf": [{"properties": {"a": {}}}, {"type": "null"}]}, '{"a": <value>} or <null>'),
    ({"$ref": "#/$defs/a~1b", "$defs": {"a/b": {"type": "null"}}, "description": "so"}, "<null: so>"),
    ({"$ref": "#/$defs/none"}, "<value>"),
    ({"$ref": "https://example.com/colour"}, "<colour>"),
    ({"allOf": [{"properties": {"a": {}}}, {"properties": {"b": {}}}]}, '{"a": <value>, "b": <value>}'),
    ({"allOf": [{"type": "string"}], "description": "it"}, "<string: it>"),
    (True, "<value>"),
]


@pytest.mark.parametrize(
    ("schema", "expected"), FORMS, ids=lambda value: value if isinstance(value, str) else ""
)
def test_what_a_form_shows(schema: Any, expected: str) -> None:
    assert form(schema) == expected


class Person(BaseModel):
    """Somebody."""

    name: str = Field(description="first name")
    children: list[Person] = []


def test_what_holds_itself_is_shown_once() -> None:
    assert form(Person.model_json_schema()) == '{"name": <string: first name>, "children": <list of Person>}'


def test_definitions_that_unfold_without_end_are_cut() -> None:
    """Ten levels of ten fields, each the next level: ten to the tenth fields."""
    levels = {
        str(level): {"properties": {str(n): {"$ref": f"#/$defs/{level + 1}"} for n in range(10)}}
        for level in range(10)
    }
    told = form({"$ref": "#/$defs/0", "$defs": levels | {"10": {"type": "null"}}})
    assert told.count(": ") == 399, "the whole is a value too"
    assert "..." in told


def test_choices_that_unfold_without_end_are_cut() -> None:
    """A hundred levels of two choices each, both the next level: they would take for ever."""
    levels: dict[str, Any] = {
        str(level): {"anyOf": [{"$ref": f"#/$defs/{level + 1}"}] * 2} for level in range(100)
    }
    assert "..." in form({"$ref": "#/$defs/0", "$defs": levels | {"100": {"type": "null"}}})


@given(documents())
def test_every_schema_has_a_form(pair: Pair) -> None:
    schema, _ = pair
    assert form(schema)
