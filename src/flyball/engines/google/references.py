"""References within a schema: what they mean, and where they go round in circles."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NoReturn, cast
from urllib.parse import unquote

from flyball.core.errors import UserError

JSONObject = dict[str, Any]

TOP = "#"
_LISTS = ("anyOf", "oneOf", "allOf", "prefixItems")
_SINGLE = ("items", "additionalProperties")


def without(schema: JSONObject, key: str) -> JSONObject:
    """A schema but for one keyword."""
    return {name: value for name, value in schema.items() if name != key}


class References:
    """The definitions of a schema, by their names; `#` is the schema itself."""

    def __init__(self, root: JSONObject, what: str) -> None:
        """Look through a schema.

        Raises:
            UserError: it refers to what is not in it.
        """
        self._what = what
        self._definitions: JSONObject = {
            **root.get("definitions", {}),
            **root.get("$defs", {}),
            TOP: root,
        }
        self._edges = self._told(needed=False)
        """Which definitions refer to which."""
        self._needed = self._told(needed=True)
        """The same, but for what may be left out."""
        self.kept: set[str] = set()
        """The definitions that are referred to in what is sent."""

    def _told(self, *, needed: bool) -> dict[str, set[str]]:
        return {
            name: {self._name(ref, f"/$defs/{name}") for ref in _refs(schema, needed=needed)}
            for name, schema in self._definitions.items()
        }

    def definition(self, name: str) -> Any:
        """What a name stands for."""
        return self._definitions[name]

    def target(self, ref: Any, path: str) -> tuple[JSONObject, str]:
        """What a reference means at the end of all references, and the name of that.

        Raises:
            UserError: it is not there, or means nothing but itself.
        """
        seen: list[str] = []
        before: JSONObject = {}
        while True:
            name = self._name(ref, path)
            if name in seen:
                self._refuse(ref, path, "means nothing but itself")
            seen.append(name)
            found = self._definitions[name]
            schema = cast("JSONObject", found) if isinstance(found, dict) else {}
            own = {key: value for key, value in schema.items() if key not in ("$ref", "$defs", "definitions")}
            before = {**own, **before}
            if "$ref" not in schema:
                return before, name
            ref = schema["$ref"]

    def keep(self, ref: Any) -> str:
        """The reference as it is sent; what it means is sent with it."""
        name = self._name(ref, "")
        if name == TOP:
            return TOP
        self.kept.add(name)
        return f"#/$defs/{name.replace('~', '~0').replace('/', '~1')}"

    def cyclic(self, ref: Any) -> bool:
        """Whether what a reference means refers to itself, however."""
        start = self._name(ref, "")
        return any(self._reaches(name, start, set(), self._edges) for name in self._edges[start])

    def needs_itself(self, here: str, ref: Any) -> bool:
        """Whether a definition must have what a reference means, and that must have the definition again."""
        name = self._name(ref, "")
        return name in self._needed[here] and self._reaches(name, here, set(), self._needed)

    def _reaches(self, name: str, aim: str, seen: set[str], edges: Mapping[str, set[str]]) -> bool:
        if name == aim:
            return True
        if name in seen:
            return False
        seen.add(name)
        return any(self._reaches(other, aim, seen, edges) for other in edges[name])

    def _name(self, ref: Any, path: str) -> str:
        if ref == TOP:
            return TOP
        name = str(ref).removeprefix("#/$defs/").removeprefix("#/definitions/")
        name = unquote(name).replace("~1", "/").replace("~0", "~")
        if not str(ref).startswith(("#/$defs/", "#/definitions/")) or name not in self._definitions:
            self._refuse(ref, path, "is no definition in it")
        return name

    def _refuse(self, ref: Any, path: str, why: str) -> NoReturn:
        raise UserError(
            f"{self._what} cannot be put to Gemini: it refers to {ref!r}, which {why}",
            path=path,
            keyword="$ref",
        )


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
