"""Schemas that something fits: of every keyword that is followed, nested, with references."""

from __future__ import annotations

from typing import Any, TypeAlias

from hypothesis import strategies as st

from flyball.inference.minimum.scalar import FORMATS

Schema: TypeAlias = dict[str, Any]

scalars = st.none() | st.booleans() | st.integers(-5, 5) | st.text(max_size=3)
# Those that the oracle checks; pydantic's own have no meaning in JSON Schema.
STANDARD_FORMATS = [
    name
    for name in FORMATS
    if name in {"date-time", "date", "time", "duration", "email", "hostname", "ipv4"}
    or name in {"ipv6", "uri", "uri-reference", "iri", "uuid", "relative-json-pointer", "uri-template"}
]
PATTERNS = [
    r"^[A-Z]{2}-\d{4}$",
    r"^(?:cat|a|mouse)+$",
    r"\d",
    r"^[^a-z\s]\w*@.+\.x?$",
    r"^(a|b)\1$",
    r"^a*?b++$",
    r"x{3,5}",
    r"",
]


@st.composite
def numbers(draw: st.DrawFn) -> Schema:
    whole = draw(st.booleans())
    schema: Schema = {"type": "integer" if whole else "number"}
    low = draw(st.none() | st.integers(-40, 40) | st.sampled_from([-2.5, 0.5, 7.25]))
    if low is not None:
        schema[draw(st.sampled_from(["minimum", "exclusiveMinimum"]))] = low
    if draw(st.booleans()):
        # Wide enough for a multiple of any step below.
        schema[draw(st.sampled_from(["maximum", "exclusiveMaximum"]))] = (
            low or draw(st.integers(-40, 40))
        ) + 20
    if draw(st.booleans()):
        schema["multipleOf"] = draw(st.sampled_from([1, 3, 7, 0.5, 2.5]))
    return schema


@st.composite
def strings(draw: st.DrawFn) -> Schema:
    schema: Schema = {"type": "string"}
    match draw(st.sampled_from(["plain", "format", "pattern"])):
        case "format":
            schema["format"] = draw(st.sampled_from(STANDARD_FORMATS))
        case "pattern":
            schema["pattern"] = draw(st.sampled_from(PATTERNS))
        case _:
            least = draw(st.integers(0, 4))
            schema["minLength"] = least
            if draw(st.booleans()):
                schema["maxLength"] = least + draw(st.integers(0, 3))
    return schema


leaves: st.SearchStrategy[Schema] = st.one_of(
    numbers(),
    strings(),
    st.just({}),
    st.just({"type": "boolean"}),
    st.just({"type": ["null", "string"]}),
    st.fixed_dictionaries({"const": scalars}),
    st.fixed_dictionaries({"enum": st.lists(scalars, min_size=1, max_size=3)}),
    *[st.just({"$ref": f"#/$defs/{name}"}) for name in ("leaf", "list", "tree", "a~1b%20c")],
)


@st.composite
def arrays(draw: st.DrawFn, depth: int) -> Schema:
    schema: Schema = {"type": "array", "items": draw(schemas(depth)), "minItems": draw(st.integers(0, 3))}
    if draw(st.booleans()):
        schema["prefixItems"] = [draw(schemas(depth))]
    if draw(st.booleans()):
        schema["maxItems"] = schema["minItems"]
    return schema


@st.composite
def objects(draw: st.DrawFn, depth: int) -> Schema:
    properties = {name: draw(schemas(depth)) for name in draw(st.sets(st.sampled_from("abc")))}
    required = draw(st.sets(st.sampled_from("abcd")))
    schema: Schema = {"type": "object", "properties": properties}
    match draw(st.sampled_from(["open", "typed", "closed"])):
        case "typed":
            schema["additionalProperties"] = draw(schemas(depth))
        case "closed":
            schema["additionalProperties"] = False
            required &= set(properties)
        case _:
            pass
    most = len(properties) if schema.get("additionalProperties") is False else 4
    return schema | {"required": sorted(required), "minProperties": draw(st.integers(0, most))}


@st.composite
def combined(draw: st.DrawFn, depth: int) -> Schema:
    one, other = draw(schemas(depth)), draw(schemas(depth))
    match draw(st.sampled_from(["any", "last", "all", "one"])):
        case "any":
            return {"anyOf": [one, other]}
        case "last":
            return {"anyOf": [False, {"not": {}}, one]}
        case "all":
            return {"allOf": [one, {"title": "same"}, one]}
        case _:
            return {
                "oneOf": [
                    {"properties": {"kind": {"const": "a"}, "value": one}, "required": ["kind", "value"]},
                    {"properties": {"kind": {"const": "b"}, "value": other}, "required": ["kind", "value"]},
                ],
                "type": "object",
            }


def schemas(depth: int) -> st.SearchStrategy[Schema]:
    """Schemas nested no deeper than this."""
    if depth == 0:
        return leaves
    return st.one_of(leaves, arrays(depth - 1), objects(depth - 1), combined(depth - 1))


plain = numbers() | strings()


@st.composite
def documents(draw: st.DrawFn) -> Schema:
    """A whole schema, whose parts may refer to definitions; two of those refer to themselves."""
    tree: Schema = {
        "type": "object",
        "properties": {"value": draw(plain), "next": {"anyOf": [{"$ref": "#/$defs/tree"}, {"type": "null"}]}},
        "required": ["value", "next"],
    }
    return draw(schemas(2)) | {
        "$defs": {
            "leaf": draw(plain),
            "list": {"type": "array", "items": {"$ref": "#/$defs/list"}},
            "tree": tree,
            "a/b c": draw(plain),
        }
    }
