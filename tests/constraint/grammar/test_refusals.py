"""What no grammar can say is refused, with the path and the keyword; what says nothing is let pass."""

from __future__ import annotations

from typing import Any

import pytest

from flyball.constraint.grammar import Bounds, schema_grammar
from flyball.core.errors import GrammarUnsupported, SchemaMalformed, UserError

ITEM = {"type": "array", "items": {"type": "integer"}}
OPEN = {"type": "object", "properties": {"a": {"type": "integer"}}}

REFUSED: dict[str, tuple[Any, str]] = {
    "not": ({"not": {"type": "string"}}, "#/not"),
    "not, further in": ({"properties": {"a/b": {"items": {"not": {}}}}}, "#/properties/a~1b/items/not"),
    "not, behind a reference": ({"$ref": "#/$defs/x", "$defs": {"x": {"not": {}}}}, "#/$defs/x/not"),
    "not, in a branch": ({"anyOf": [{"type": "null"}, {"not": {}}]}, "#/anyOf/1/not"),
    "not, in allOf": ({"allOf": [{"not": {}}]}, "#/allOf/0/not"),
    "uniqueItems": ({**ITEM, "uniqueItems": True}, "#/uniqueItems"),
    "contains": ({**ITEM, "contains": {"const": 1}}, "#/contains"),
    "if": ({"if": {"type": "string"}, "then": {"minLength": 1}}, "#/if"),
    "dependentRequired": ({"type": "object", "dependentRequired": {"a": ["b"]}}, "#/dependentRequired"),
    "dependentSchemas": ({"type": "object", "dependentSchemas": {"a": {}}}, "#/dependentSchemas"),
    "dependencies": ({"type": "object", "dependencies": {"a": ["b"]}}, "#/dependencies"),
    "unevaluatedProperties": ({"type": "object", "unevaluatedProperties": False}, "#/unevaluatedProperties"),
    "unevaluatedItems": ({"type": "array", "unevaluatedItems": False}, "#/unevaluatedItems"),
    "an older dialect's items": (
        {"$schema": "http://json-schema.org/draft-07/schema#", "type": "array", "items": [{}]},
        "#/items",
    ),
    "additionalItems": ({"type": "array", "additionalItems": False}, "#/additionalItems"),
    "dynamic reference": ({"$dynamicRef": "#x"}, "#/$dynamicRef"),
    "remote reference": ({"$ref": "https://example.com/x.json"}, "#/$ref"),
    "reference to nowhere": ({"$ref": "#/$defs/x"}, "#/$ref"),
    "reference past a list": ({"$ref": "#/anyOf/7", "anyOf": [{}]}, "#/$ref"),
    "a schema of its own": ({"properties": {"a": {"$id": "urn:x", "type": "null"}}}, "#/properties/a/$id"),
    "overlapping oneOf": ({"oneOf": [{"type": "integer"}, {"type": "number"}]}, "#/oneOf"),
    "oneOf of open objects": ({"oneOf": [OPEN, OPEN]}, "#/oneOf"),
    "oneOf of strings": ({"oneOf": [{"type": "string"}, {"type": "string", "pattern": "x"}]}, "#/oneOf"),
    "oneOf of lists": ({"oneOf": [ITEM, {"type": "array", "items": {"type": "string"}}]}, "#/oneOf"),
    "oneOf of the same value": ({"oneOf": [{"enum": [1, 2]}, {"enum": [2.0, 3]}]}, "#/oneOf"),
    "oneOf of ranges that meet": ({"type": "integer", "oneOf": [{"maximum": 3}, {"minimum": 3}]}, "#/oneOf"),
    "oneOf of lengths that meet": (
        {"type": "string", "oneOf": [{"maxLength": 3}, {"minLength": 3}]},
        "#/oneOf",
    ),
    "oneOf of keys that may both be there": (
        {
            "type": "object",
            "oneOf": [{"required": ["a"]}, {"required": ["b"]}],
            "additionalProperties": {"const": 1},
        },
        "#/oneOf",
    ),
    "oneOf of booleans": ({"oneOf": [{"type": "boolean"}, {"type": ["boolean", "null"]}]}, "#/oneOf"),
    "look-ahead": ({"type": "string", "pattern": "^(?=a)b$"}, "#/pattern"),
    "look-behind": ({"type": "string", "pattern": "(?<=a)b"}, "#/pattern"),
    "back reference": ({"type": "string", "pattern": "(a)\\1"}, "#/pattern"),
    "word boundary": ({"type": "string", "pattern": "\\bx"}, "#/pattern"),
    "character property": ({"type": "string", "pattern": "\\p{L}"}, "#/pattern"),
    "an anchor inside": ({"type": "string", "pattern": "a(^b)"}, "#/pattern"),
    "an anchor at a group's end": ({"type": "string", "pattern": "(a$)"}, "#/pattern"),
    "a bare brace": ({"type": "string", "pattern": "a{x}"}, "#/pattern"),
    "a set within a set": ({"type": "string", "pattern": "[[a]]"}, "#/pattern"),
    "a regex": ({"type": "string", "format": "regex"}, "#/format"),
    "two formats": ({"allOf": [{"format": "date"}, {"format": "uuid"}]}, "#/format"),
    "a pattern of a great length": (
        {"type": "string", "pattern": "^(ab|cd)+$", "minLength": 400, "maxLength": 401},
        "#/maxLength",
    ),
    "two patterns without an end": ({"allOf": [{"pattern": "^a*b"}, {"pattern": "b$"}]}, "#/pattern"),
    "multipleOf an odd decimal": ({"type": "number", "multipleOf": 0.3}, "#/multipleOf"),
    "multipleOf a large prime": ({"type": "integer", "multipleOf": 7919}, "#/multipleOf"),
    "two decimals' multiples": ({"allOf": [{"multipleOf": 0.1}, {"multipleOf": 0.01}]}, "#/multipleOf"),
    "two patterns for keys": (
        {"type": "object", "patternProperties": {"a": {}, "b": {}}},
        "#/patternProperties",
    ),
    "a pattern and other keys": (
        {"type": "object", "patternProperties": {"a": {}}, "additionalProperties": {"type": "null"}},
        "#/patternProperties",
    ),
    "a pattern that a property matches": (
        {"type": "object", "patternProperties": {"^a": {}}, "properties": {"ab": {}}},
        "#/patternProperties",
    ),
    "a pattern for keys that is none": ({"patternProperties": {"\\b": {}}}, "#/patternProperties"),
    "patterns for keys, merged": (
        {"allOf": [{"patternProperties": {"^a": {}}}, {"properties": {"ab": {}}}]},
        "#/patternProperties",
    ),
    "a required key by pattern": ({"patternProperties": {"^a": {}}, "required": ["ab"]}, "#/required"),
    "names of listed properties": (
        {"properties": {"a": {}}, "propertyNames": {"maxLength": 3}, "additionalProperties": True},
        "#/propertyNames",
    ),
    "names of required keys": ({"required": ["a"], "propertyNames": {"maxLength": 3}}, "#/propertyNames"),
    "many keys that are not named": ({"type": "object", "minProperties": 2}, "#/minProperties"),
    "a contradiction": ({"type": "integer", "minimum": 3, "maximum": 2}, "#/type"),
    "false": ({"allOf": [False]}, "#/type"),
    "an endless list": ({"properties": {"next": {"$ref": "#"}}, "required": ["next"]}, "#/type"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused_with_its_path(name: str) -> None:
    schema, path = REFUSED[name]
    with pytest.raises(GrammarUnsupported) as caught:
        schema_grammar(schema)
    error = caught.value
    assert error.details["path"] == path
    assert error.details["keyword"] == path.rpartition("/")[2]
    assert error.code == "CONSTRAINT_GRAMMAR_UNSUPPORTED"
    assert not error.retryable
    assert path in str(error)


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "string", "if": {"minLength": 3}},
        {"type": "array", "items": {"const": 1}, "uniqueItems": False},
        {"type": "array", "items": {"type": "integer"}, "uniqueItems": True, "maxItems": 1},
        {"type": "string", "contentEncoding": "base64", "x-order": 3, "nullable": True, "format": "binary"},
        {"$id": "urn:x", "type": "null"},
        {
            "oneOf": [{"type": "string"}, {"type": "integer"}, {"type": "null"}],
            "discriminator": {"propertyName": "x"},
        },
    ],
    ids=["if alone", "not unique", "one item", "remarks", "id of the whole", "oneOf of types"],
)
def test_let_pass(schema: dict[str, Any]) -> None:
    assert schema_grammar(schema).startswith("root ::= ")


@pytest.mark.parametrize(
    "schema",
    [{"type": "strin"}, {"enum": 1}, {"const": object()}, {"minLength": -1}],
    ids=["type", "enum", "const", "minLength"],
)
def test_what_is_no_schema_is_an_error_of_its_own(schema: dict[str, Any]) -> None:
    with pytest.raises(SchemaMalformed):
        schema_grammar(schema)


@pytest.mark.parametrize("keyword", ["anyOf", "oneOf"])
def test_a_schema_that_branches_too_often_is_refused(keyword: str) -> None:
    parts = [
        {keyword: [{"required": [f"a{n}"]}, {"required": [f"b{n}"]}, {"required": [f"c{n}"]}]}
        for n in range(12)
    ]
    with pytest.raises(GrammarUnsupported, match="branches too often"):
        schema_grammar({"type": "object", "properties": {}, "additionalProperties": False, "allOf": parts})


@pytest.mark.parametrize("name", ["max_string", "max_items", "max_depth", "max_digits"])
def test_bounds_have_to_be_positive(name: str) -> None:
    with pytest.raises(UserError, match=name):
        Bounds(**{name: 0})  # pyright: ignore[reportArgumentType] - `undeclared` is not among the names
