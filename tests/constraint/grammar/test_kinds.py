"""Single kinds of values at their edges: what a grammar accepts, and what it does not."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from flyball.constraint.grammar import Bounds, check_grammar, schema_grammar
from flyball.constraint.grammar.formats import FORMATS
from flyball.constraint.grammar.schemas import schema_key, schema_rules
from flyball.constraint.validation import is_valid, validate
from tests.constraint.grammar.oracle import Oracle
from tests.constraint.grammar.sampling import sample

NODE: dict[str, Any] = {
    "$ref": "#/$defs/n",
    "$defs": {
        "n": {
            "type": "object",
            "properties": {
                "v": {"type": "integer"},
                "next": {"anyOf": [{"$ref": "#/$defs/n"}, {"type": "null"}]},
            },
            "required": ["v", "next"],
        }
    },
}
A_OR_B = {
    "oneOf": [
        {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]},
        {"type": "object", "properties": {"b": {"type": "integer"}}, "required": ["b"]},
    ]
}
PEOPLE = {"type": "object", "properties": {"x": {"const": 1}}, "additionalProperties": {"const": 2}}

CASES: dict[str, tuple[Any, list[str], list[str]]] = {
    "two lower bounds, two upper ones": (
        {"type": "number", "minimum": 1, "exclusiveMinimum": 1, "maximum": 2, "exclusiveMaximum": 5},
        ["1.5", "2"],
        ["1", "2.5"],
    ),
    "nothing above zero": (
        {"type": "number", "minimum": -1, "exclusiveMaximum": 0},
        ["-1", "-0.5"],
        ["0", "-0", "-0.0"],
    ),
    "a range in which nothing lies": (
        {"anyOf": [{"type": "null"}, {"type": "number", "minimum": 1, "exclusiveMaximum": 1}]},
        ["null"],
        ["1"],
    ),
    "listed values of all types": (
        {
            "type": ["array", "object", "boolean", "null", "number"],
            "enum": [[1], {"a": 1}, True, None, 1.5, "x"],
        },
        ["[1]", '{"a": 1}', "true", "null", "1.5"],
        ['"x"'],
    ),
    "listed values, the same to JSON": (
        {
            "allOf": [
                {"enum": [{"a": [1]}, [2], 1, True, 0]},
                {"enum": [{"a": [1.0]}, [2, 3], 1.0, False, "0"]},
            ]
        },
        ['{"a": [1]}', "1"],
        ["[2]", "true", "0", "false"],
    ),
    "listed values and two patterns": (
        {"enum": ["ab", "b", "a"], "allOf": [{"pattern": "a"}, {"pattern": "b"}]},
        ['"ab"'],
        ['"a"', '"b"'],
    ),
    "required, described by a pattern of values only": (
        {
            "oneOf": [
                {"type": "object", "properties": {"a": False}},
                {"type": "object", "required": ["a"], "properties": {"a": {"const": 1}}},
            ]
        },
        ["{}", '{"a": 1}'],
        ['{"a": 2}'],
    ),
    "escapes count as one character": (
        {"type": "string", "minLength": 2, "maxLength": 2},
        ['"ab"', '"\\n\\""', '"😀é"', '"\\u0001\\\\"', '"\x7f\u2028"'],
        ['"a"', '"abc"', '""', '"\\u0061b"', '"\\/b"', '"a\nb"', '"\\ud83d\\ude00"', "ab"],
    ),
    "an integer's range": (
        {"type": "integer", "minimum": -105, "maximum": 1203},
        ["-105", "-99", "-1", "0", "9", "10", "999", "1203", "1199"],
        ["-106", "-110", "-0", "00", "01", "1204", "1210", "2000", "10000", "1.0", "1e2", "+1", ""],
    ),
    "an open range of integers": (
        {"type": "integer", "exclusiveMinimum": 7, "exclusiveMaximum": 10},
        ["8", "9"],
        ["7", "10", "88"],
    ),
    "a decimal bound on an integer": (
        {"type": "integer", "minimum": 1.5, "maximum": 3.5},
        ["2", "3"],
        ["1", "4"],
    ),
    "numbers between decimals": (
        {"type": "number", "minimum": -1.25, "maximum": 0.5},
        ["-1.25", "-1.2500", "-1.249", "-1", "-0.001", "0", "0.0", "0.5", "0.50", "0.499999", "-0"],
        ["-1.2501", "-1.3", "-2", "0.51", "0.500001", "1", ".5", "0.", "00", "5e-1"],
    ),
    "numbers between open ends": (
        {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1},
        ["0.1", "0.000000000001", "0.999999999999", "0.50"],
        ["0", "0.0", "0.000", "1", "1.0", "-0.5", "1.5"],
    ),
    "numbers from a bound on": (
        {"type": "number", "exclusiveMinimum": 2.5},
        ["2.51", "3", "2.500001", "99.5", "999999999999999"],
        ["2.5", "2.50", "2", "-3", "2.4", "9999999999999999"],
    ),
    "numbers up to a bound": (
        {"type": "number", "maximum": -3},
        ["-3", "-3.0", "-3.1", "-4", "-1000.5"],
        ["-2.9", "0", "3", "-0"],
    ),
    "numbers around a large bound": (
        {"type": "number", "minimum": 9007199254740993},
        ["9007199254740993", "90071992547409929"],
        ["9007199254740992", "9007199254740993.0"],
    ),
    "hundredths": ({"type": "number", "multipleOf": 0.01}, ["1", "1.5", "-1.25"], ["1.255"]),
    "whole numbers by multiple": ({"type": "number", "multipleOf": 1}, ["1", "-20"], ["1.5", "1.0"]),
    "multiples of seven": (
        {"type": "integer", "multipleOf": 7, "minimum": -1000, "maximum": 100000},
        ["0", "7", "-994", "99995", "700"],
        ["1", "-1001", "100002", "8", "-0"],
    ),
    "multiples of a thousand": (
        {"type": "integer", "multipleOf": 1000},
        ["0", "1000", "-25000", "123456000"],
        ["100", "1001", "-0", "000"],
    ),
    "integers by a decimal multiple": (
        {"type": "integer", "multipleOf": 1.5, "minimum": 0},
        ["0", "3", "9"],
        ["1"],
    ),
    "a pattern without anchors": (
        {"type": "string", "pattern": "b[0-9]"},
        ['"b1"', '"ab1c"', '"b1b1"', '"bbb2"', '"\\n\\"b0"'],
        ['"b"', '"ba1"', '""'],
    ),
    "a pattern and a length": (
        {"type": "string", "pattern": "^[a-z]+(-[a-z]+)*$", "minLength": 3, "maxLength": 6},
        ['"abc"', '"a-b-cd"', '"abcdef"'],
        ['"ab"', '"abcdefg"', '"a--b"', '"-ab"', '"ab-"', '"a-b-c-d"'],
    ),
    "a pattern cut by a length": (
        {"type": "string", "pattern": "^#[0-9a-f]*$", "maxLength": 4},
        ['"#"', '"#abc"'],
        ['"#abcd"', '"abc"'],
    ),
    "two patterns at once": (
        {"type": "string", "allOf": [{"pattern": "^[a-z]{1,4}$"}, {"pattern": "x"}]},
        ['"x"', '"axb"', '"xxxx"'],
        ['"ab"', '"Xx"', '"abxcd"', '""'],
    ),
    "a pattern and a format": (
        {"type": "string", "format": "date", "pattern": "^2024-"},
        ['"2024-02-29"', '"2024-12-31"'],
        ['"2023-01-01"', '"2024-02-30"', '"2024-"'],
    ),
    "alternatives with anchors of their own": (
        {"type": "string", "pattern": "^a|b$"},
        ['"ax"', '"xb"', '"a"', '"b"'],
        ['"xa"', '"bx"', '"x"'],
    ),
    "quotes and backslashes in a pattern": (
        {"type": "string", "pattern": '^["\\\\]$'},
        ['"\\""', '"\\\\"'],
        ['"a"', '"""'],
    ),
    "escapes in a pattern": (
        {"type": "string", "pattern": "^\\x41\\u0042\\t[\\d\\-\\]]\\S\\D\\W$"},
        ['"AB\\t-x\\n "', '"AB\\t]é.\\\\"'],
        ['"AB\\t- x "', '"AB\\tax. "'],
    ),
    "a dot is no line's end": (
        {"type": "string", "pattern": "^.$"},
        ['"a"', '"\\t"'],
        ['"\\n"', '"\\r"', '"\u2028"'],
    ),
    "a named group, a lazy count": ({"type": "string", "pattern": "^(?<x>ab)+?$"}, ['"abab"'], ['""', '"a"']),
    "keys in the schema's order": (
        {"properties": {"b": {"const": 1}, "a": {"const": 2}, "c": {"const": 3}}, "required": ["a"]},
        ['{"a": 2}', '{"b": 1, "a": 2}', '{"a": 2, "c": 3}', '{"b": 1, "a": 2, "c": 3}'],
        ['{"b": 1}', '{"a": 2, "b": 1}', '{"a":2}', '{"a": 2,"c": 3}', "{}", '{"a": 2, }', '{ "a": 2}'],
    ),
    "only optional keys": (
        {"properties": {"a": {"const": 1}, "b": {"const": 2}, "c": {"const": 3}}},
        ["{}", '{"a": 1}', '{"b": 2}', '{"c": 3}', '{"a": 1, "c": 3}', '{"a": 1, "b": 2, "c": 3}'],
        ['{"c": 3, "a": 1}', '{, "a": 1}', '{"d": 1}', '{"a": 1, "a": 1}'],
    ),
    "other keys, none of them a listed one": (
        PEOPLE,
        ["{}", '{"x": 1}', '{"x": 1, "y": 2}', '{"xx": 2}', '{"": 2, "\\"": 2}', '{"y": 2, "z": 2}'],
        ['{"x": 2}', '{"y": 1}', '{"y": 2, "x": 1}', '{"x": 1, "x": 2}'],
    ),
    "no other keys unless they are asked for": ({"properties": {"a": {}}}, ['{"a": 1}'], ['{"b": 1}']),
    "required keys that are not described": (
        {"type": "object", "required": ["k"], "additionalProperties": {"type": "integer"}},
        ['{"k": 1}', '{"k": 1, "l": 2}'],
        ["{}", '{"l": 2}', '{"k": "x"}'],
    ),
    "one key at least": (
        {"properties": {"a": {"const": 1}, "b": {"const": 2}}, "minProperties": 1},
        ['{"a": 1}', '{"b": 2}', '{"a": 1, "b": 2}'],
        ["{}"],
    ),
    "two of three keys": (
        {
            "properties": {"a": {"const": 1}, "b": {"const": 2}, "c": {"const": 3}},
            "minProperties": 2,
            "maxProperties": 2,
        },
        ['{"a": 1, "b": 2}', '{"a": 1, "c": 3}', '{"b": 2, "c": 3}'],
        ["{}", '{"a": 1}', '{"a": 1, "b": 2, "c": 3}'],
    ),
    "few other keys": (
        {"type": "object", "additionalProperties": {"const": 1}, "minProperties": 1, "maxProperties": 2},
        ['{"a": 1}', '{"a": 1, "b": 1}'],
        ["{}", '{"a": 1, "b": 1, "c": 1}'],
    ),
    "too many required keys": (
        {
            "anyOf": [
                {"type": "null"},
                {"properties": {"a": {}, "b": {}}, "required": ["a", "b"], "maxProperties": 1},
            ]
        },
        ["null"],
        ["{}", '{"a": 1}'],
    ),
    "names of keys": (
        {"type": "object", "propertyNames": {"enum": ["a", "b"]}, "additionalProperties": {"const": 1}},
        ["{}", '{"a": 1}', '{"b": 1, "a": 1}'],
        ['{"c": 1}'],
    ),
    "no names for keys": ({"type": "object", "propertyNames": False}, ["{}"], ['{"a": 1}']),
    "any names for keys": (
        {"type": "object", "propertyNames": True, "additionalProperties": {"const": 1}},
        ['{"a": 1}'],
        ['{"a": 2}'],
    ),
    "a key that may not be": (
        {"properties": {"a": False, "b": {"const": 1}}},
        ["{}", '{"b": 1}'],
        ['{"a": 1}'],
    ),
    "a tuple": (
        {"prefixItems": [{"const": 1}, {"const": 2}], "items": {"const": 3}, "minItems": 1, "maxItems": 4},
        ["[1]", "[1, 2]", "[1, 2, 3]", "[1, 2, 3, 3]"],
        ["[]", "[2]", "[1, 3]", "[1, 2, 3, 3, 3]", "[1,2]"],
    ),
    "a tuple with an end": (
        {"prefixItems": [{"const": 1}, False], "items": False},
        ["[]", "[1]"],
        ["[1, 2]", "[2]"],
    ),
    "items that cannot be": ({"type": "array", "items": False}, ["[]"], ["[1]"]),
    "a list of a length": (
        {"type": "array", "items": {"const": 0}, "minItems": 2, "maxItems": 3},
        ["[0, 0]", "[0, 0, 0]"],
        ["[0]", "[]", "[0, 0, 0, 0]"],
    ),
    "no list at all": (
        {"anyOf": [{"type": "null"}, {"type": "array", "minItems": 2, "maxItems": 1}]},
        ["null"],
        ["[]"],
    ),
    "listed values that follow the rest": (
        {"type": "string", "enum": ["a", "bbb", 1, None], "minLength": 2},
        ['"bbb"'],
        ['"a"', "1", "null"],
    ),
    "listed values of a type": (
        {"type": ["integer", "null"], "enum": [1, 2.0, "x", None, 1.5]},
        ["1", "2.0", "null"],
        ['"x"', "1.5"],
    ),
    "a constant of any shape": (
        {"const": {"a": [1, {"b": None}], "é": True}},
        ['{"a": [1, {"b": null}], "é": true}'],
        ["{}"],
    ),
    "const and enum": ({"const": 1, "enum": [1, 2]}, ["1"], ["2"]),
    "enums merged": ({"allOf": [{"enum": [1, 2, 3]}, {"enum": [2, 3, 4]}, {"const": 3}]}, ["3"], ["2", "4"]),
    "anyOf beside other keywords": (
        {
            "type": "object",
            "properties": {"a": {"const": 1}, "b": {"const": 2}},
            "anyOf": [{"required": ["a"]}, {"required": ["b"]}],
        },
        ['{"a": 1}', '{"b": 2}', '{"a": 1, "b": 2}'],
        ["{}"],
    ),
    "anyOf twice": (
        {
            "allOf": [
                {"anyOf": [{"minimum": 5}, {"maximum": 1}]},
                {"anyOf": [{"maximum": 7}, {"type": "null"}]},
            ],
            "type": "integer",
        },
        ["5", "7", "1", "-3"],
        ["3", "8", "null"],
    ),
    "oneOf told apart by a required key": (A_OR_B, ['{"a": 1}', '{"b": 1}'], ["{}", '{"a": 1, "b": 1}']),
    "oneOf told apart by a range": (
        {"oneOf": [{"type": "integer", "maximum": 3}, {"type": "number", "exclusiveMinimum": 3}]},
        ["3", "3.5", "-1"],
        ["2.5"],
    ),
    "oneOf told apart by a length": (
        {"oneOf": [{"type": "string", "maxLength": 1}, {"type": "string", "minLength": 3, "maxLength": 3}]},
        ['""', '"a"', '"abc"'],
        ['"ab"'],
    ),
    "oneOf told apart by an item": (
        {
            "oneOf": [
                {"type": "array", "prefixItems": [{"const": c}], "minItems": 1, "maxItems": 1} for c in "ab"
            ]
        },
        ['["a"]', '["b"]'],
        ['["c"]', "[]"],
    ),
    "oneOf of lists of different length": (
        {
            "oneOf": [
                {"type": "array", "items": {"const": 1}, "maxItems": 1},
                {"type": "array", "items": {"const": 1}, "minItems": 2, "maxItems": 2},
            ]
        },
        ["[]", "[1]", "[1, 1]"],
        ["[1, 1, 1]"],
    ),
    "oneOf told apart by a key that is forbidden": (
        {
            "oneOf": [
                {"type": "object", "properties": {"a": {"const": 1}}, "additionalProperties": False},
                {"type": "object", "properties": {"a": {"const": 1}, "b": {"const": 2}}, "required": ["b"]},
            ]
        },
        ["{}", '{"a": 1}', '{"b": 2}', '{"a": 1, "b": 2}'],
        ['{"c": 1}'],
    ),
    "oneOf of references": (
        {
            "oneOf": [{"$ref": "#/$defs/a"}, {"$ref": "#/$defs/b"}, {"type": "null"}],
            "$defs": {
                "a": {"properties": {"t": {"const": "a"}}, "required": ["t"], "type": "object"},
                "b": {"properties": {"t": {"enum": ["b", "c"]}}, "required": ["t"], "type": "object"},
            },
        },
        ['{"t": "a"}', '{"t": "c"}', "null"],
        ['{"t": "d"}'],
    ),
    "oneOf with anyOf inside": (
        {
            "oneOf": [
                {"anyOf": [{"type": "string"}, {"type": "null"}]},
                {"type": ["integer", "boolean"]},
                False,
            ]
        },
        ['"x"', "null", "1", "true"],
        ["1.5"],
    ),
    "oneOf beside other keywords": (
        {"type": "integer", "minimum": 0, "oneOf": [{"maximum": 3}, {"minimum": 8}]},
        ["0", "3", "8"],
        ["-1", "5"],
    ),
    "allOf with a closed object": (
        {
            "allOf": [
                {"properties": {"a": {"const": 1}}, "additionalProperties": False},
                {"properties": {"b": {"const": 2}}},
            ]
        },
        ["{}", '{"a": 1}'],
        ['{"b": 2}', '{"a": 1, "b": 2}'],
    ),
    "allOf with a typed rest": (
        {
            "allOf": [
                {"additionalProperties": {"type": "integer"}},
                {"properties": {"b": {"minimum": 5}}, "required": ["b"]},
            ]
        },
        ['{"b": 5}', '{"b": 6, "c": -1}'],
        ['{"b": 4}', '{"b": 5.5}', '{"b": 5, "c": "x"}'],
    ),
    "allOf over tuples": (
        {
            "allOf": [
                {"prefixItems": [{"type": "integer"}], "items": {"maximum": 9}},
                {"items": {"type": "integer", "minimum": 0}, "maxItems": 3},
            ]
        },
        ["[]", "[100]", "[1, 9]"],
        ["[-1]", "[1, 10]", "[1, -1]", "[1.5]"],
    ),
    "allOf over patterns of keys": (
        {
            "type": "object",
            "allOf": [
                {"patternProperties": {"^k": {"type": "integer"}}},
                {"patternProperties": {"^k": {"minimum": 3}}},
            ],
        },
        ["{}", '{"k": 3}'],
        ['{"k": 2}', '{"k": "x"}'],
    ),
    "integers and numbers merged": (
        {"allOf": [{"type": "number"}, {"type": ["integer", "null"]}, {"multipleOf": 4}, {"multipleOf": 6}]},
        ["12", "-24"],
        ["4", "null", "1.5"],
    ),
    "several types": (
        {"type": ["integer", "number", "string"], "maxLength": 1, "maximum": 5},
        ["1.5", '"a"', "-3"],
        ['"ab"', "6", "null"],
    ),
    "a reference with keywords beside it": (
        {"$ref": "#/$defs/s", "minLength": 2, "$defs": {"s": {"type": "string", "maxLength": 3}}},
        ['"ab"', '"abc"'],
        ['"a"', '"abcd"'],
    ),
    "a reference by pointer": (
        {
            "properties": {
                "a~b": {"const": 1},
                "c": {"$ref": "#/properties/a~0b"},
                "d": {"$ref": "#/allOf/0/items"},
            },
            "allOf": [{"items": {"const": 3}}],
            "type": "object",
        },
        ['{"a~b": 1, "c": 1, "d": 3}'],
        ['{"c": 2}'],
    ),
    "recursion": (
        NODE,
        ['{"v": 1, "next": null}', '{"v": 1, "next": {"v": 2, "next": {"v": 3, "next": null}}}'],
        ['{"v": 1}', '{"v": 1, "next": {}}'],
    ),
    "any value": (True, ["1", '"x"', "null", "true", '{"a": [1.5, {}]}', "[]"], ["nul", "{1}", "[1,2]"]),
}


@pytest.mark.parametrize("name", CASES)
def test_case(name: str) -> None:
    schema, good, bad = CASES[name]
    whole: dict[str, Any] = {"allOf": [schema]} if isinstance(schema, bool) else schema
    grammar = schema_grammar(whole)
    check_grammar(grammar)
    oracle = Oracle.of_gbnf(grammar)
    for text in good:
        assert oracle.accepts(text), text
        assert validate(whole, json.loads(text)) == [], f"a case that is wrong itself: {text}"
    for text in bad:
        assert not oracle.accepts(text), text
    rules = schema_rules(schema_key(whole), Bounds())
    chance = random.Random(name)
    for _ in range(30):
        text = sample(rules, chance)
        assert validate(whole, json.loads(text)) == [], text


@pytest.mark.parametrize("name", FORMATS)
def test_strings_of_a_format_are_of_that_format(name: str) -> None:
    schema = {"type": "string", "format": name}
    rules = schema_rules(schema_key(schema), Bounds())
    chance = random.Random(name)
    for _ in range(500):
        text = sample(rules, chance)
        assert is_valid(schema, json.loads(text)), text


def test_pydantic_takes_what_formats_generate() -> None:
    from datetime import date, datetime, time
    from ipaddress import IPv4Address, IPv6Address
    from uuid import UUID

    from pydantic import TypeAdapter

    chance = random.Random(5)
    for kind in (date, datetime, time, IPv4Address, IPv6Address, UUID):
        adapter: TypeAdapter[Any] = TypeAdapter(kind)
        rules = schema_rules(schema_key(adapter.json_schema()), Bounds())
        for _ in range(200):
            adapter.validate_json(sample(rules, chance))


def test_depth_ends_recursion() -> None:
    def nested(depth: int) -> str:
        return '{"v": 1, "next": ' * depth + "null" + "}" * depth

    oracle = Oracle.of_gbnf(schema_grammar(NODE, bounds=Bounds(max_depth=3)))
    assert oracle.accepts(nested(3))
    assert not oracle.accepts(nested(4))


def test_bounds_end_what_is_open() -> None:
    small = Bounds(max_string=3, max_items=2, max_properties=1, max_key=2, max_digits=2, max_fraction=1)
    strings = Oracle.of_gbnf(schema_grammar({"type": "string"}, bounds=small))
    assert strings.accepts('"abc"')
    assert not strings.accepts('"abcd"')
    arrays = Oracle.of_gbnf(schema_grammar({"type": "array", "items": {"const": 1}}, bounds=small))
    assert arrays.accepts("[1, 1]")
    assert not arrays.accepts("[1, 1, 1]")
    maps = Oracle.of_gbnf(schema_grammar({"additionalProperties": {"const": 1}}, bounds=small))
    assert maps.accepts('{"ab": 1}')
    assert not maps.accepts('{"abc": 1}')
    assert not maps.accepts('{"a": 1, "b": 1}')
    numbers = Oracle.of_gbnf(schema_grammar({"type": "number"}, bounds=small))
    assert numbers.accepts("-99.9")
    assert not numbers.accepts("100")
    assert not numbers.accepts("1.25")


def test_the_schemas_own_limits_win_over_the_bounds() -> None:
    small = Bounds(max_string=3, max_items=2, max_digits=2)
    strings = Oracle.of_gbnf(schema_grammar({"type": "string", "maxLength": 5}, bounds=small))
    assert strings.accepts('"abcde"')
    assert Oracle.of_gbnf(schema_grammar({"type": "string", "minLength": 9}, bounds=small)).accepts(
        '"abcdefghi"'
    )
    whole = Oracle.of_gbnf(schema_grammar({"type": "integer", "minimum": 5000}, bounds=small))
    assert whole.accepts("50000")
    assert Oracle.of_gbnf(schema_grammar({"type": "integer", "maximum": -5000}, bounds=small)).accepts(
        "-6000"
    )


def test_undeclared_keys_where_they_are_wanted() -> None:
    schema = {"properties": {"a": {"const": 1}}}
    oracle = Oracle.of_gbnf(schema_grammar(schema, bounds=Bounds(undeclared=True)))
    assert oracle.accepts('{"a": 1, "b": [true]}')
    assert not oracle.accepts('{"b": 1, "a": 1}')


def test_names_of_rules_do_not_collide() -> None:
    names = [
        "root",
        "part",
        "part-1",
        "block-1",
        "char",
        "string",
        "Root",
        "ROOT",
        "é",
        "-",
        "1",
        "value",
        "key",
    ]
    inner = {"type": "array", "items": {"type": "array", "items": {"type": "string", "minLength": 1}}}
    schema = {
        "properties": {name: {**inner, "minItems": n} for n, name in enumerate(names)},
        "additionalProperties": True,
    }
    grammar = schema_grammar(schema)
    check_grammar(grammar)
    lines = [line.partition(" ")[0] for line in grammar.splitlines()]
    assert len(set(lines)) == len(lines)
    assert Oracle.of_gbnf(grammar).accepts('{"root": [["a"]], "other": 1}')
