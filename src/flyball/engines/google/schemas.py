"""JSON Schemas as Gemini takes them: its subset, and what fits into it.

Both `parametersJsonSchema` and `responseJsonSchema` take JSON Schema itself, of which Google documents what
is understood. What can be said in those words is said in them (`const`, `allOf`, `oneOf`, bounds of integers,
`$ref` beside other keywords). What cannot (`pattern`, `minLength`, …) is told in the description: the schema
that is sent then allows more, and flyball checks the answer against the user's own. Nothing that the user's
schema allows is ever forbidden.

A schema may refer to itself only within a property that may be left out: Gemini unrolls it so far and no
further. One that must is refused.
"""

from __future__ import annotations

from functools import lru_cache
from math import ceil, floor
from typing import Any, NoReturn, cast

import msgspec
from msgspec import Struct

from flyball.core.errors import UserError
from flyball.engines.google.references import References, without

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
        UserError: it refers to what is not in it, or to itself where Gemini cannot follow; details `path`
            and, where one is at fault, `keyword`.
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

    def whole(self) -> JSONObject:
        self._references.check()
        root = self._root
        if "$ref" in root:
            # What stands at the top must be seen to be an object.
            target = self._references.target(root["$ref"], "")
            root = self._joined(target, without(root, "$ref"), "")
        told = self._node(root, "")
        if names := sorted(self._references.kept):
            # Fitting a definition may keep references to more of them.
            told["$defs"] = definitions = cast("JSONObject", {})
            while names:
                for name in names:
                    definitions[name] = self._node(self._references.definition(name), f"/$defs/{name}")
                names = sorted(self._references.kept - definitions.keys())
        return told

    def _node(self, schema: Any, path: str) -> JSONObject:
        if not isinstance(schema, dict):
            if schema is False:
                self._refuse(path, "false", "no value at all is allowed there")
            return {}
        node = cast("JSONObject", schema)
        if "$ref" in node:
            return self._reference(node, path)
        if "allOf" in node:
            node = self._all(node, path)
        work = _Work(node, {key: value for key, value in node.items() if key in _KEPT}, {}, path)
        for key, value in node.items():
            if key not in _KEPT and key not in _HARMLESS and not key.startswith("x-"):
                self._keyword(key, value, work)
        if work.lost:
            self._tell(work)
        return work.told

    def _keyword(self, key: str, value: Any, work: _Work) -> None:
        node, told, here = work.node, work.told, f"{work.path}/{key}"
        match key:
            case "properties":
                told[key] = {name: self._node(inner, f"{here}/{name}") for name, inner in value.items()}
            case "anyOf" | "oneOf" if "anyOf" not in told:
                told["anyOf"] = [self._node(inner, f"{here}/{at}") for at, inner in enumerate(value)]
            case "prefixItems":
                told[key] = [self._node(inner, f"{here}/{at}") for at, inner in enumerate(value)]
            case "items" if value is False:
                told["maxItems"] = min(len(node.get("prefixItems", ())), node.get("maxItems", 2**31))
            case "items":
                told[key] = self._node(value, here)
            case "additionalProperties":
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

    def _tell(self, work: _Work) -> None:
        """Say in the description what cannot be said otherwise."""
        told, lost = work.told, work.lost
        if self._strict:
            keyword = next(iter(lost))
            self._refuse(work.path, keyword, "Gemini knows no such keyword, and `strict` wants it held to")
        words = "; ".join(f"{key}: {msgspec.json.encode(value).decode()}" for key, value in lost.items())
        before = told.get("description")
        told["description"] = f"{before} ({words})" if before else words

    def _reference(self, node: JSONObject, path: str) -> JSONObject:
        """A reference stands alone: what is beside it is joined with what it refers to."""
        ref = node["$ref"]
        beside = {key: value for key, value in node.items() if key != "$ref" and key not in _HARMLESS}
        if not beside or (self._references.cyclic(ref) and not beside.keys() - {"description"}):
            return {"$ref": self._references.keep(ref)}
        if self._references.cyclic(ref):
            self._refuse(path, "$ref", f"{sorted(beside)} beside a reference into a circle cannot be said")
        return self._node(self._joined(self._references.target(ref, path), beside, path), path)

    def _all(self, node: JSONObject, path: str) -> JSONObject:
        joined = without(node, "allOf")
        for at, inner in enumerate(node["allOf"]):
            here = f"{path}/allOf/{at}"
            part: Any = inner
            if isinstance(part, dict) and "$ref" in part:
                own = cast("JSONObject", part)
                if self._references.cyclic(own["$ref"]):
                    if len(node["allOf"]) == 1 and not joined.keys() - _HARMLESS - {"description"}:
                        return own
                    self._refuse(here, "allOf", "a reference into a circle cannot be joined with others")
                part = self._joined(self._references.target(own["$ref"], here), without(own, "$ref"), here)
            if isinstance(part, dict) and "allOf" in part:
                part = self._all(cast("JSONObject", part), here)
            if not isinstance(part, dict):
                self._refuse(here, "allOf", "it is no schema")
            joined = self._joined(joined, cast("JSONObject", part), here)
        return joined

    def _joined(self, one: JSONObject, other: JSONObject, path: str) -> JSONObject:
        """What follows both. Of two descriptions the second is nearer to the point."""
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
                self._refuse(path, key, "it is said twice, and differs")
        return joined

    def _refuse(self, path: str, keyword: str, why: str) -> NoReturn:
        raise UserError(
            f"{self._what} cannot be put to Gemini: {keyword!r} at {path or 'the top'}: {why}",
            path=path,
            keyword=keyword,
        )


def _put_bound(key: str, value: Any, work: _Work) -> None:
    low = key.endswith("inimum")
    name = "minimum" if low else "maximum"
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
