"""Validation says what is wrong and where; a schema that is none is an error of its own."""

from __future__ import annotations

from typing import Any

import pytest

from flyball.constraint import validation
from flyball.constraint.validation import Violation, is_valid, is_valid_within, require_valid, validate
from flyball.core.errors import SchemaInvalid, SchemaMalformed

SCHEMA = {
    "type": "object",
    "properties": {
        "day": {"type": "string", "format": "date"},
        "n": {"type": "array", "items": {"minimum": 1}},
    },
    "required": ["day"],
}


def test_what_follows_the_schema_has_no_violations() -> None:
    assert validate(SCHEMA, {"day": "2024-02-29", "n": [1]}) == []
    assert is_valid(SCHEMA, {"day": "2024-02-29"})


def test_violations_name_the_place_and_the_keyword() -> None:
    wrong = validate(SCHEMA, {"day": "2023-02-29", "n": [1, 0]})
    assert [(each.path, each.keyword, each.schema_path) for each in wrong] == [
        ("day", "format", "#/properties/day/format"),
        ("n[1]", "minimum", "#/properties/n/items/minimum"),
    ]
    assert str(wrong[1]).startswith("n[1]: 0 is less than")
    assert str(Violation("", "type", "it is wrong")) == "it is wrong"


def test_no_more_violations_than_asked_for() -> None:
    schema = {"items": {"type": "string"}}
    assert len(validate(schema, list(range(100)))) == 20
    assert len(validate(schema, list(range(100)), most=3)) == 3


def test_a_long_message_is_cut() -> None:
    wrong = validate({"type": "integer"}, "x" * 5_000)
    assert len(wrong[0].message) == 300


def test_require_valid_raises_with_all_that_is_wrong() -> None:
    require_valid(SCHEMA, {"day": "2024-02-29"})
    with pytest.raises(SchemaInvalid) as caught:
        require_valid(SCHEMA, {"n": [0, 0, 0, 0]})
    error = caught.value
    assert error.code == "CONSTRAINT_SCHEMA_INVALID"
    assert error.details["path"] == ""
    assert len(error.details["violations"]) == 5
    assert str(error).endswith("(and 2 more)")
    assert error.record().exception().details == error.details


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "strin"},
        {"$ref": "http://example.com/x.json"},
        {"$ref": "#/$defs/none"},
        {"pattern": "("},
        {"const": object()},
    ],
    ids=["type", "remote", "nowhere", "pattern", "object"],
)
def test_what_is_no_schema_is_refused(schema: dict[str, Any]) -> None:
    with pytest.raises(SchemaMalformed):
        validate(schema, 1)


def test_older_dialects_are_read_as_what_they_are() -> None:
    schema = {"$schema": "http://json-schema.org/draft-07/schema#", "items": [{"type": "string"}]}
    assert is_valid(schema, ["x", 1])
    assert not is_valid(schema, [1])


def test_validators_are_kept_and_their_number_is_bounded() -> None:
    kept = validation._validator  # pyright: ignore[reportPrivateUsage]
    kept.cache_clear()
    for n in range(validation.KEPT + 10):
        is_valid({"minimum": n}, 1)
        is_valid({"minimum": n}, 1)
    assert kept.cache_info().currsize == validation.KEPT
    assert kept.cache_info().hits == validation.KEPT + 10


def test_a_part_is_read_within_its_document() -> None:
    document = {"properties": {"a": {"type": "integer"}, "next": {"$ref": "#"}}, "required": ["a"]}
    assert is_valid_within(document, {"$ref": "#"}, {"a": 1, "next": {"a": 2}})
    assert not is_valid_within(document, {"$ref": "#"}, {"a": 1, "next": {}})
    assert not is_valid_within(document, {"items": {"$ref": "#/properties/a"}}, ["x"])
    assert is_valid_within(document, {"anyOf": [{"$ref": "#/properties/a"}, {"type": "null"}]}, None)
    assert is_valid_within(document, part=True, value=1)
    assert not is_valid_within(document, part=False, value=1)
    with pytest.raises(SchemaMalformed):
        is_valid_within(document, {"$ref": "#/properties/b"}, 1)
