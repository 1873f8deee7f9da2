"""JSON Schemas as Gemini takes them: its subset, and what fits into it.

Both `parametersJsonSchema` and `responseJsonSchema` take JSON Schema itself, of which Google documents what
is understood. What can be said in those words is said in them (`const`, `allOf`, `oneOf`, bounds of integers,
`$ref` beside other keywords). What cannot (`pattern`, `minLength`, …) is told in the description: the schema
that is sent then allows more, and flyball checks the answer against the user's own. Nothing that the user's
schema allows is ever forbidden.

Gemini follows a schema into itself only within a property that may be left out. Where it would have to, the
circle is cut: what comes there again is told in the description, too.
"""

from __future__ import annotations

from functools import lru_cache
from math import ceil, floor
from typing import Any, cast

import msgspec
from msgspec import Struct

from flyball.core.errors import UserError
from flyball.engines.google.references import TOP, References, without

JSONObject = dict[str, Any]

_KEPT = frozenset(("type", "description", "minItems", "maxItems", "required", "propertyOrdering"))
_HARMLESS = frozenset((
    "title", "default", "examples", "example", "$schema", "$id", "$comment", "$anchor", "$defs",
    "definitions", "deprecated", "readOnly", "writeOnly", "discriminator", "contentMediaType",
    "contentEncoding",
))  # fmt: skip
"""What may be left out: nothing that a value has to follow."""
_FORMATS = frozenset(("date-time", "date", "time"))
_NAMES = {str: "string", int: "integer", float: "number"}


def fitted(schema: JSONObject, what: str, *, strict: bool = False) -> JSONObject:
    """The schema as Gemini takes it; it is not to be changed.

    Args:
        schema: the user's own.
        what: what errors call it.
        strict: whether it must hold as it is: a keyword that Gemini has no word for is then refused.

    Raises:
        UserError: it refers to what is not in it, or must hold and cannot: details `path` and `keyword`.
    """
    return _fitted(msgspec.json.encode(schema), what, strict)


@lru_cache(maxsize=512)
def _fitted(schema: bytes, what: str, strict: bool) -> JSONObject:
    return _Fitting(msgspec.json.decode(schema), what, strict).whole()


class _Work(Struct):
    """A schema that is being fitted: what is said of it so far, and what cannot be."""

    node: JSONObject
    told: JSONObject
    lost: JSONObject
    path: str


class _Fitting:
    def __init__(self, root: JSONObject, what: str, strict: bool) -> None:
        self._root = root
        self._what = what
        self._strict = strict
        self._references = References(root, what)
        self._here = TOP
        """The definition that is being fitted."""

    def whole(self) -> JSONObject:
        root = self._root
        if "$ref" in root:
            # What stands at the top must be seen to be an object.
            target, self._here = self._references.target(root["$ref"], "")
            root = _joined(target, without(root, "$ref")) or target
        told = self._node(root, "")
        definitions: JSONObject = {}
        while left := sorted(self._references.kept - definitions.keys()):
            # Fitting one may keep references to more of them.
            for self._here in left:
                definitions[self._here] = self._node(
                    self._references.definition(self._here), f"/$defs/{self._here}"
                )
        return {**told, "$defs": definitions} if definitions else told

    def _node(self, schema: Any, path: str) -> JSONObject:
        if not isinstance(schema, dict):
            return self._told(_Work({}, {}, {} if schema is not False else {"not": {}}, path))
        node = cast("JSONObject", schema)
        if "$ref" in node:
            return self._reference(node, path)
        if "allOf" in node:
            node = self._all(node, path)
            if "$ref" in node:
                return self._reference(node, path)
        work = _Work(node, {key: value for key, value in node.items() if key in _KEPT}, {}, path)
        for key, value in node.items():
            if key not in _KEPT and key not in _HARMLESS and not key.startswith("x-"):
                self._keyword(key, value, work)
        return self._told(work)

    def _keyword(self, key: str, value: Any, work: _Work) -> None:
        node, told, here = work.node, work.told, f"{work.path}/{key}"
        match key:
            case "properties":
                told[key] = {name: self._node(inner, f"{here}/{name}") for name, inner in value.items()}
            case "anyOf" | "oneOf" if "anyOf" not in told:
                told["anyOf"] = self._nodes(value, here)
            case "prefixItems":
                told[key] = self._nodes(value, here)
            case "items" if isinstance(value, list):
                told["prefixItems"] = self._nodes(cast("list[Any]", value), here)
            case "items" if value is False:
                told["maxItems"] = min(len(node.get("prefixItems", ())), node.get("maxItems", 2**31))
            case "items":
                told[key] = self._node(value, here)
            case "additionalProperties" if "patternProperties" not in node:
                if value is not True:
                    told[key] = value if value is False else self._node(value, here)
            case "const":
                _put_values([value], work)
            case "enum":
                _put_values(value, work)
            case "format" if value in _FORMATS:
                told[key] = value
            case "minimum" | "exclusiveMinimum" | "maximum" | "exclusiveMaximum":
                _put_bound(key, value, work)
            case "nullable":
                if value is True and isinstance(node.get("type"), str):
                    told["type"] = [node["type"], "null"]
            case _:
                work.lost[key] = value

    def _nodes(self, schemas: list[Any], path: str) -> list[JSONObject]:
        return [self._node(inner, f"{path}/{at}") for at, inner in enumerate(schemas)]

    def _told(self, work: _Work) -> JSONObject:
        """What is said of a schema, and in its description what cannot be said otherwise."""
        told, lost = work.told, work.lost
        if not lost:
            return told
        if self._strict:
            keyword = next(iter(lost))
            raise UserError(
                f"{self._what} cannot be put to Gemini as it is, which `strict` wants: it has no word for "
                f"{keyword!r} at {work.path or 'the top'}",
                path=work.path,
                keyword=keyword,
            )
        words = "; ".join(f"{key}: {msgspec.json.encode(value).decode()}" for key, value in lost.items())
        before = told.get("description")
        return {**told, "description": f"{before} ({words})" if before else words}

    def _reference(self, node: JSONObject, path: str) -> JSONObject:
        """A reference stands alone: what is beside it is joined with what it refers to."""
        ref = node["$ref"]
        beside = {key: value for key, value in node.items() if key != "$ref" and key not in _HARMLESS}
        target, _ = self._references.target(ref, path)
        if self._references.needs_itself(self._here, ref):
            kind = {"type": target["type"]} if isinstance(target.get("type"), str) else {}
            return self._told(_Work({}, {**self._node(beside, path), **kind}, {"$ref": ref}, path))
        if not beside or (self._references.cyclic(ref) and not beside.keys() - {"description"}):
            return {"$ref": self._references.keep(ref)}
        joined = None if self._references.cyclic(ref) else _joined(target, beside)
        if joined is None:
            return self._told(_Work({}, self._node(beside, path), {"$ref": ref}, path))
        return self._node(joined, path)

    def _all(self, node: JSONObject, path: str) -> JSONObject:
        """What `allOf` says, as far as it can be said at once; what cannot stays."""
        joined = without(node, "allOf")
        left: list[Any] = []
        for at, inner in enumerate(node["allOf"]):
            part = self._member(inner, f"{path}/allOf/{at}")
            both = None if part is None else _joined(joined, part)
            if both is None:
                left.append(inner)
            else:
                joined = both
        if not left:
            return joined
        alone: Any = left[0] if len(left) == 1 else None
        if isinstance(alone, dict) and "$ref" in alone and not joined.keys() - _HARMLESS - {"description"}:
            return {**joined, **cast("JSONObject", alone)}
        return {**joined, "allOf": left}

    def _member(self, schema: Any, path: str) -> JSONObject | None:
        """A member of `allOf` without references; None where they go round in circles."""
        if not isinstance(schema, dict):
            return {} if schema is True else None
        part = cast("JSONObject", schema)
        if "$ref" in part:
            if self._references.cyclic(part["$ref"]):
                return None
            target, _ = self._references.target(part["$ref"], path)
            found = _joined(target, without(part, "$ref"))
            if found is None:
                return None
            part = found
        return self._all(part, path) if "allOf" in part else part


def _joined(one: JSONObject, other: JSONObject) -> JSONObject | None:
    """What follows both; None where one schema cannot say that. The second's description is nearer."""
    joined = dict(one)
    for key, value in other.items():
        known: Any = joined.get(key)
        if key not in joined or known == value or key in _HARMLESS or key == "description":
            joined[key] = value
        elif key == "required":
            joined[key] = [*known, *[name for name in value if name not in known]]
        elif key == "properties":
            both: JSONObject = {
                name: {"allOf": [known[name], inner]} for name, inner in value.items() if name in known
            }
            joined[key] = {**known, **value, **both}
        elif key in ("minimum", "exclusiveMinimum", "minItems", "minLength"):
            joined[key] = max(known, value)
        elif key in ("maximum", "exclusiveMaximum", "maxItems", "maxLength"):
            joined[key] = min(known, value)
        elif key == "additionalProperties" and True in (known, value):
            joined[key] = value if known is True else known
        else:
            return None
    return joined


def _put_bound(key: str, value: Any, work: _Work) -> None:
    low = key.endswith("inimum")
    name = "minimum" if low else "maximum"
    if isinstance(value, bool):  # so it was in JSON Schema's youth
        work.lost[key] = value
        return
    if key.startswith("exclusive"):
        if work.node.get("type") == "integer":
            value = floor(value) + 1 if low else ceil(value) - 1
        else:
            work.lost[key] = value
    work.told[name] = (max if low else min)(value, work.told.get(name, value))


def _put_values(values: list[Any], work: _Work) -> None:
    """Gemini lists texts and numbers, of one type each."""
    node, told = work.node, work.told
    choices: list[JSONObject] = []
    for kind, name in _NAMES.items():
        if found := [value for value in values if type(value) is kind]:
            choices.append({"type": name, "enum": found})
    if any(value is None for value in values):
        choices.append({"type": "null"})
    switches = {value for value in values if isinstance(value, bool)}
    if switches:
        choices.append({"type": "boolean"})
    elsewhere = any(isinstance(value, dict | list) for value in values) or "anyOf" in node or "oneOf" in node
    if elsewhere or len(switches) == 1:
        work.lost["enum"] = values
    if elsewhere:
        return
    if len(choices) == 1:
        told.update(choices[0])
    else:
        told.pop("type", None)
        told["anyOf"] = choices
