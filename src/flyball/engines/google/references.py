"""References within a schema: what they mean, and where they go round in circles."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

from flyball.core.errors import UserError

JSONObject = dict[str, Any]

_TOP = "#"
_LISTS = ("anyOf", "oneOf", "allOf", "prefixItems")
_SINGLE = ("items", "additionalProperties")


def without(schema: JSONObject, key: str) -> JSONObject:
    """A schema but for one keyword."""
    return {name: value for name, value in schema.items() if name != key}


class References:
    """The definitions of a schema, by their names; `#` is the schema itself."""

    def __init__(self, root: JSONObject, what: str) -> None:
        self._what = what
        self._definitions: JSONObject = {
            **root.get("definitions", {}),
            **root.get("$defs", {}),
            _TOP: root,
        }
        self._edges: dict[str, set[str]] = {}
        self.kept: set[str] = set()
        """The definitions that are referred to in what is sent."""

    def definition(self, name: str) -> Any:
        """What a name stands for."""
        return self._definitions[name]

    def target(self, ref: Any, path: str) -> JSONObject:
        """What a reference means, at the end of all references.

        Raises:
            UserError: it is not there, or means itself.
        """
        seen: set[str] = set()
        before: JSONObject = {}
        while True:
            name = self._name(ref, path)
            if name in seen:
                self._circle([*seen])
            seen.add(name)
            found = self._definitions[name]
            if not isinstance(found, dict):
                return before
            schema = cast("JSONObject", found)
            if "$ref" not in schema:
                return {**without(without(schema, "$defs"), "definitions"), **before}
            before = {**without(without(without(schema, "$ref"), "$defs"), "definitions"), **before}
            ref = schema["$ref"]

    def keep(self, ref: Any) -> str:
        """The reference as it is sent; what it means is sent with it."""
        name = self._name(ref, "")
        if name == _TOP:
            return _TOP
        self.kept.add(name)
        return f"#/$defs/{name}"

    def cyclic(self, ref: Any) -> bool:
        """Whether what a reference means refers to itself, however."""
        start = self._name(ref, "")
        return any(self._reaches(name, start, set()) for name in self._all_edges(start))

    def check(self) -> None:
        """Check that no definition needs itself: a circle passes through a property that may be left out.

        Raises:
            UserError: one does; the message names the circle.
        """
        needed = {
            name: {self._name(ref, f"/$defs/{name}") for ref in _refs(schema, needed=True)}
            for name, schema in self._definitions.items()
        }
        for name in needed:
            if found := _circle_of(name, needed):
                self._circle(found)

    def _circle(self, names: list[str]) -> None:
        told = " -> ".join("the whole" if name == _TOP else name for name in [*names, names[0]])
        raise UserError(
            f"{self._what} cannot be put to Gemini: it needs itself ({told}). Gemini follows a schema "
            "into itself only within a property that may be left out: give one on the way a default",
            path=f"/$defs/{names[0]}" if names[0] != _TOP else "",
            keyword="$ref",
        )

    def _reaches(self, name: str, aim: str, seen: set[str]) -> bool:
        if name == aim:
            return True
        if name in seen:
            return False
        seen.add(name)
        return any(self._reaches(other, aim, seen) for other in self._all_edges(name))

    def _all_edges(self, name: str) -> set[str]:
        if name not in self._edges:
            found = _refs(self._definitions[name], needed=False)
            self._edges[name] = {self._name(ref, f"/$defs/{name}") for ref in found}
        return self._edges[name]

    def _name(self, ref: Any, path: str) -> str:
        if ref == _TOP:
            return _TOP
        name = str(ref).removeprefix("#/$defs/").removeprefix("#/definitions/")
        name = name.replace("~1", "/").replace("~0", "~")
        if name == ref or name not in self._definitions:
            raise UserError(
                f"{self._what} cannot be put to Gemini: it refers to {ref!r}, which is no definition in it",
                path=path,
                keyword="$ref",
            )
        return name


def _refs(schema: Any, *, needed: bool) -> Iterator[str]:
    """The references in a schema; with `needed`, those outside of properties that may be left out."""
    if not isinstance(schema, dict):
        return
    node = cast("JSONObject", schema)
    if "$ref" in node:
        yield node["$ref"]
    for key in _LISTS:
        for inner in node.get(key, ()):
            yield from _refs(inner, needed=needed)
    for key in _SINGLE:
        yield from _refs(node.get(key), needed=needed)
    required = node.get("required", ())
    for name, inner in node.get("properties", {}).items():
        if not needed or name in required:
            yield from _refs(inner, needed=needed)


def _circle_of(start: str, edges: dict[str, set[str]]) -> list[str] | None:
    paths = [[start]]
    seen = {start}
    while paths:
        path = paths.pop(0)
        for name in sorted(edges[path[-1]]):
            if name == start:
                return path
            if name not in seen:
                seen.add(name)
                paths.append([*path, name])
    return None
