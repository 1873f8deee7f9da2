"""Schemas drawn at random, each with a strategy for values that follow it."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any, cast

from hypothesis import strategies as st

Draw = st.DrawFn
Pair = tuple[Any, st.SearchStrategy[Any]]

NAMES = st.one_of(
    st.sampled_from(
        ["name", "id", "city", "root", "part", "string", "char", "a", "ab", "abc", "x-y", "x_y", "part-1"]
    ),
    st.text(st.characters(codec="utf-8"), max_size=6),
)
TEXTS = st.text(st.characters(codec="utf-8"), max_size=12)
SCALARS = st.one_of(st.none(), st.booleans(), st.integers(-(10**12), 10**12), TEXTS)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=5,
)

PATTERNS = [
    r"^[a-z]+$",
    r"^[A-Z]{2,5}-\d{1,4}$",
    r"^(?:foo|ba[rz])*$",
    r"^\w+(?:\.\w+)*$",
    r"^[^a-z]?x{2,}$",
    r"^v\d+(\.\d+){0,2}$",
    r"^[\x20-\x7e]{3}$",
    r'^"\\\\[\t\n]$',
    r"needle",
    r"^start",
    r"end$",
    r"^a|b$",
    r"[0-9]",
]


def canonical(value: Any) -> str:
    """A value as the text that grammars write; a Decimal is written out."""
    if isinstance(value, Decimal):
        return f"{value:f}"
    if isinstance(value, dict):
        value = cast("dict[str, Any]", value)
        return "{" + ", ".join(f"{canonical(key)}: {canonical(inner)}" for key, inner in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(canonical, cast("list[Any]", value))) + "]"
    return json.dumps(value, ensure_ascii=False)


@st.composite
def documents(draw: Draw) -> Pair:
    """A whole schema, with definitions where something refers to them."""
    definitions: dict[str, Any] = {}
    schema, values = draw(pairs(definitions, draw(st.integers(0, 3))))
    if isinstance(schema, bool):
        schema = {"allOf": [schema]}
    if definitions:
        schema = {**schema, "$defs": definitions}
    if draw(st.booleans()):
        schema = {**schema, "title": "T", "description": "D", "examples": [1]}
    return schema, values


@st.composite
def pairs(draw: Draw, definitions: dict[str, Any], depth: int) -> Pair:
    kinds = [strings, patterned, formatted, integers, decimals, plain, listed]
    if depth:
        kinds = (
            kinds[:2]
            + kinds[3:6]
            + [arrays, tuples, objects, objects, maps, unions, tagged, referred, merged]
        )
    return draw(draw(st.sampled_from(kinds))(definitions, depth))


@st.composite
def strings(draw: Draw, definitions: Any, depth: int) -> Pair:
    low, extra = draw(st.integers(0, 5)), draw(st.none() | st.integers(0, 9))
    schema: dict[str, Any] = {"type": "string"}
    if low:
        schema["minLength"] = low
    if extra is not None:
        schema["maxLength"] = low + extra
    chars = st.characters(codec="utf-8")
    return schema, st.text(chars, min_size=low, max_size=low + (10 if extra is None else extra))


@st.composite
def patterned(draw: Draw, definitions: Any, depth: int) -> Pair:
    pattern = draw(st.sampled_from(PATTERNS))
    schema: dict[str, Any] = {"type": "string", "pattern": pattern}
    values = st.from_regex(pattern).filter(
        lambda text: not text.endswith("\n") and text.isascii() and len(text) < 60
    )
    if draw(st.booleans()):
        schema["maxLength"] = high = draw(st.integers(8, 24))
        values = values.filter(lambda text: len(text) <= high)
    return schema, values


@st.composite
def formatted(draw: Draw, definitions: Any, depth: int) -> Pair:
    moments = st.datetimes(timezones=st.just(None)).map(
        lambda moment: moment.isoformat(timespec="seconds") + "Z"
    )
    name, values = draw(
        st.sampled_from(
            [
                ("date", st.dates().map(str)),
                ("date-time", moments),
                ("time", st.times().map(lambda time: time.isoformat(timespec="milliseconds") + "+05:30")),
                ("uuid", st.uuids().map(str)),
                ("ipv4", st.ip_addresses(v=4).map(str)),
                ("ipv6", st.ip_addresses(v=6).map(str)),
                ("email", st.from_regex(r"\A[a-z]{1,8}\.[a-z]{1,8}@[a-z]{1,8}\.(?:com|org)\Z")),
                ("hostname", st.from_regex(r"\A[a-z]{1,8}(?:-[0-9]{1,3})?\.example\.com\Z")),
                (
                    "uri",
                    st.from_regex(r"\Ahttps?://[a-z]{1,8}\.org(?:/[a-z0-9.~]{0,8}){0,3}(?:\?q=[a-z%]{0})?\Z"),
                ),
                ("duration", st.from_regex(r"\AP[1-9]DT[0-9]{1,2}H(?:[0-9]{1,2}M)?\Z")),
            ]
        )
    )
    return {"type": "string", "format": name}, values


@st.composite
def integers(draw: Draw, definitions: Any, depth: int) -> Pair:
    low, high = sorted(draw(st.tuples(_WHOLE, _WHOLE)))
    schema: dict[str, Any] = {"type": "integer"}
    first, last = -(10**15 - 1), 10**15 - 1
    if draw(st.booleans()):
        first = low
        schema.update({"minimum": low} if draw(st.booleans()) else {"exclusiveMinimum": low - 1})
    if draw(st.booleans()):
        last = high
        schema.update({"maximum": high} if draw(st.booleans()) else {"exclusiveMaximum": high + 1})
    of = draw(st.sampled_from([1, 1, 1, 2, 3, 5, 7, 10, 100, 25]))
    if of > 1 and -(-first // of) * of <= last:
        schema["multipleOf"] = of
        return schema, st.integers(-(-first // of), last // of).map(lambda n: n * of)
    return schema, st.integers(first, last)


_WHOLE = st.one_of(st.integers(-30, 30), st.integers(-2_000, 2_000), st.integers(-(10**9), 10**9))


@st.composite
def decimals(draw: Draw, definitions: Any, depth: int) -> Pair:
    """Numbers with up to four places; bounds with up to three, given as floats or whole."""
    ends = st.one_of(st.decimals(-3, 3, places=2), st.decimals(-2_000, 2_000, places=3), _WHOLE.map(Decimal))
    low, high = sorted(draw(st.tuples(ends, ends)))
    schema: dict[str, Any] = {"type": "number"}
    first, last = Decimal(-(10**9)), Decimal(10**9)
    left_out: Decimal | None = None
    if draw(st.booleans()):
        first = low
        open_ = draw(st.booleans()) and low < high
        schema["exclusiveMinimum" if open_ else "minimum"] = _number(low)
        left_out = low if open_ else None
    if draw(st.booleans()):
        last = high
        schema["maximum"] = _number(high)
    places = draw(st.integers(3, 4))
    if draw(st.booleans()) and draw(st.booleans()):
        schema["multipleOf"], places = 0.001, 3
    return schema, st.decimals(first, last, places=places).filter(lambda value: value != left_out).map(
        lambda value: value + Decimal(0)
    )


def _number(value: Decimal) -> int | float:
    return int(value) if value == value.to_integral_value() else float(value)


@st.composite
def plain(draw: Draw, definitions: Any, depth: int) -> Pair:
    return draw(
        st.sampled_from(
            [
                ({"type": "boolean"}, st.booleans()),
                ({"type": "null"}, st.none()),
                ({"type": ["string", "null"]}, st.none() | TEXTS),
                ({"type": ["integer", "boolean"], "minimum": 0}, st.booleans() | st.integers(0, 10**6)),
                (True, VALUES),
                ({}, VALUES),
                ({"minLength": 2}, st.text(st.characters(codec="utf-8"), min_size=2, max_size=5)),
            ]
        )
    )


@st.composite
def listed(draw: Draw, definitions: Any, depth: int) -> Pair:
    values = draw(st.lists(VALUES, min_size=1, max_size=5, unique_by=canonical))
    if len(values) == 1:
        return {"const": values[0]}, st.just(values[0])
    return {"enum": values}, st.sampled_from(values)


@st.composite
def arrays(draw: Draw, definitions: Any, depth: int) -> Pair:
    inner, values = draw(pairs(definitions, depth - 1))
    low, extra = draw(st.integers(0, 2)), draw(st.integers(0, 3))
    schema = {"type": "array", "items": inner}
    if low:
        schema["minItems"] = low
    if draw(st.booleans()):
        schema["maxItems"] = low + extra
    return schema, st.lists(values, min_size=low, max_size=low + extra)


@st.composite
def tuples(draw: Draw, definitions: Any, depth: int) -> Pair:
    members = draw(st.lists(pairs(definitions, depth - 1), min_size=1, max_size=3))
    low = draw(st.integers(0, len(members)))
    schema: dict[str, Any] = {"type": "array", "prefixItems": [inner for inner, _ in members], "items": False}
    if low:
        schema["minItems"] = low
    sizes = st.integers(low, len(members))
    return schema, sizes.flatmap(lambda size: st.tuples(*(values for _, values in members[:size])).map(list))


@st.composite
def objects(draw: Draw, definitions: Any, depth: int) -> Pair:
    names = draw(st.lists(NAMES, max_size=4, unique=True))
    members = {name: draw(pairs(definitions, depth - 1)) for name in names}
    required = [name for name in names if draw(st.booleans())]
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {name: pair[0] for name, pair in members.items()},
    }
    if required:
        schema["required"] = required
    others: st.SearchStrategy[dict[str, Any]] = st.just({})
    if draw(st.booleans()):
        schema["additionalProperties"] = False
    elif draw(st.booleans()):
        schema["additionalProperties"], values = draw(pairs(definitions, 0))
        keys = NAMES.filter(lambda name: name not in names)
        others = st.dictionaries(keys, values, max_size=2)
    return schema, _objects(members, required, others)


def _objects(
    members: dict[str, Pair], required: list[str], others: st.SearchStrategy[dict[str, Any]]
) -> st.SearchStrategy[dict[str, Any]]:
    @st.composite
    def build(draw: Draw) -> dict[str, Any]:
        built = {
            name: draw(values)
            for name, (_, values) in members.items()
            if name in required or draw(st.booleans())
        }
        return built | draw(others)

    return build()


@st.composite
def maps(draw: Draw, definitions: Any, depth: int) -> Pair:
    inner, values = draw(pairs(definitions, depth - 1))
    schema: dict[str, Any] = {"type": "object", "additionalProperties": inner}
    keys: st.SearchStrategy[str] = NAMES
    low = 0
    if draw(st.booleans()):
        schema = {"type": "object", "patternProperties": {"^[a-z]+$": inner}, "additionalProperties": False}
        keys = st.text(st.sampled_from("abcxyz"), min_size=1, max_size=5)
    elif draw(st.booleans()):
        schema["propertyNames"] = {"minLength": 2, "maxLength": 5}
        keys = st.text(st.characters(codec="utf-8"), min_size=2, max_size=5)
    if draw(st.booleans()):
        low = schema["minProperties"] = 1
    return schema, st.dictionaries(keys, values, min_size=low, max_size=3)


@st.composite
def unions(draw: Draw, definitions: Any, depth: int) -> Pair:
    members = draw(st.lists(pairs(definitions, depth - 1), min_size=2, max_size=3))
    return {"anyOf": [schema for schema, _ in members]}, st.one_of(*(values for _, values in members))


@st.composite
def tagged(draw: Draw, definitions: Any, depth: int) -> Pair:
    """`oneOf` over objects that a constant tells apart."""
    tags = draw(st.lists(NAMES, min_size=2, max_size=3, unique=True))
    schemas: list[Any] = []
    values: list[st.SearchStrategy[Any]] = []
    for tag in tags:
        inner, inside = draw(pairs(definitions, depth - 1))
        schema = {
            "type": "object",
            "properties": {"kind": {"const": tag}, "body": inner},
            "required": ["kind"],
        }
        schemas.append(schema)
        values.append(_objects({"kind": ({}, st.just(tag)), "body": (inner, inside)}, ["kind"], st.just({})))
    return {"oneOf": schemas}, st.one_of(*values)


@st.composite
def referred(draw: Draw, definitions: dict[str, Any], depth: int) -> Pair:
    inner, values = draw(pairs(definitions, depth - 1))
    name = f"d{len(definitions)}"
    definitions[name] = inner
    return {"$ref": f"#/$defs/{name}", "description": "a remark"}, values


@st.composite
def merged(draw: Draw, definitions: Any, depth: int) -> Pair:
    """`allOf` whose parts each say something of the same value."""
    schema, values = draw(
        st.one_of(integers(definitions, 0), objects(definitions, depth), strings(definitions, 0))
    )
    keys = sorted(schema)
    first = {key: schema[key] for key in keys if draw(st.booleans())}
    rest = {key: schema[key] for key in keys if key not in first}
    if "additionalProperties" in schema:  # it speaks of the properties beside it
        first, rest = schema, {"type": "object"}
    return {"allOf": [first, rest]}, values
