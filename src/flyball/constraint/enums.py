"""Values that are nearly members of their enumeration, put right: 'Red ' where 'red' is meant.

A member is found by what is left of a text without case, white space and punctuation, then by likeness.
Each step counts only if it finds one member: where two are meant equally well, nobody knows which.
"""

from __future__ import annotations

import re
import unicodedata
from difflib import SequenceMatcher
from typing import Any, cast

from msgspec import Struct

from flyball.constraint.grammar.merging import same_json
from flyball.constraint.validation import is_valid_within
from flyball.core.errors import EnumUnrecognized, SchemaMalformed
from flyball.core.marks import with_few_marks

LIKENESS = 0.85
"""How alike two words have to be, from 0 to 1, to be taken for the same; they also begin alike."""
_SHORTEST = 4
_DEPTH = 64
_NO_LETTER = re.compile(r"[\W_]+")

Plain = dict[str, Any]


class Change(Struct, frozen=True):
    """One value that was put right, and where."""

    path: str
    before: Any
    after: Any


class Normalised(Struct, frozen=True):
    """A value with its enumerations put right; without changes it is the value itself."""

    value: Any
    changes: tuple[Change, ...] = ()


def normalise_enums(schema: dict[str, Any], value: Any, *, likeness: float = LIKENESS) -> Normalised:
    """The value with each member of an enumeration in the schema's own spelling.

    The schema is followed through properties, items, references and alternatives; of alternatives, those
    that then hold have to agree. What no enumeration speaks of stays as it is; whether it is right is
    `validate`'s to say.

    Raises:
        EnumUnrecognized: a value is outside its enumeration and near none of its members, or near several:
        details
            `path`, `value`, `allowed`.
    """
    walk = _Walk(schema, likeness)
    found = walk.into(schema, value, "", _DEPTH)
    return Normalised(found, tuple(walk.changes))


def nearest_member(value: Any, allowed: list[Any], *, likeness: float = LIKENESS) -> list[Any]:
    """The members that a value may stand for: one if that is clear, several if not, none if it is far off."""
    spoken = _spoken(value)
    if spoken is None:
        return []
    written = [(member, text) for member in allowed if (text := _spoken(member)) is not None]
    for form in (_stripped, _lowered, _folded):
        wanted = form(spoken)
        same = [member for member, text in written if wanted and form(text) == wanted]
        if same:
            return same
    wanted = _folded(spoken)
    if len(wanted) < _SHORTEST:
        return []
    return [member for member, text in written if _alike(wanted, _folded(text), likeness)]


def _alike(one: str, other: str, likeness: float) -> bool:
    return one[:1] == other[:1] and SequenceMatcher(None, one, other, autojunk=False).ratio() >= likeness


def _spoken(value: Any) -> str | None:
    """A scalar as a model may have written it; None for what has no such form."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, str | int | float) else None


def _stripped(text: str) -> str:
    return text.strip()


def _lowered(text: str) -> str:
    return text.strip().casefold()


def _folded(text: str) -> str:
    return _NO_LETTER.sub("", unicodedata.normalize("NFKC", with_few_marks(text)).casefold())


class _Walk:
    def __init__(self, document: Plain, likeness: float) -> None:
        self.document = document
        self.likeness = likeness
        self.changes: list[Change] = []

    def into(self, schema: Any, value: Any, path: str, depth: int) -> Any:
        """The value as this part of the schema wants it."""
        if not isinstance(schema, dict) or depth == 0:
            return value
        here = cast("Plain", schema)
        if "$ref" in here:
            value = self.into(self._target(here["$ref"]), value, path, depth - 1)
        for member in here.get("allOf", []):
            value = self.into(member, value, path, depth - 1)
        if "const" in here or "enum" in here:
            value = self._member([here["const"]] if "const" in here else here["enum"], value, path)
        if isinstance(value, dict):
            value = self._object(here, cast("Plain", value), path, depth)
        elif isinstance(value, list):
            value = self._array(here, cast("list[Any]", value), path, depth)
        for keyword in ("anyOf", "oneOf"):
            if keyword in here:
                value = self._alternatives(here[keyword], value, path, depth)
        return value

    def _member(self, allowed: list[Any], value: Any, path: str) -> Any:
        if any(same_json(value, member) for member in allowed):
            return value
        near = nearest_member(value, allowed, likeness=self.likeness)
        if len(near) == 1:
            self.changes.append(Change(path, value, near[0]))
            return near[0]
        why = f"it may be {' or '.join(map(repr, near[:4]))}" if near else "none of them is near"
        raise EnumUnrecognized(
            f"{path or 'the value'} is {value!r}, which is not among {allowed[:20]!r}: {why}",
            path=path,
            value=value,
            allowed=allowed,
        )

    def _object(self, schema: Plain, value: Plain, path: str, depth: int) -> Plain:
        named, other = schema.get("properties", {}), schema.get("additionalProperties")
        result = {
            key: self.into(named.get(key, other), inner, f"{path}.{key}" if path else key, depth - 1)
            for key, inner in value.items()
        }
        return result if self.changes else value

    def _array(self, schema: Plain, value: list[Any], path: str, depth: int) -> list[Any]:
        first, rest = schema.get("prefixItems", []), schema.get("items")
        result = [
            self.into(first[n] if n < len(first) else rest, inner, f"{path}[{n}]", depth - 1)
            for n, inner in enumerate(value)
        ]
        return result if self.changes else value

    def _alternatives(self, branches: list[Any], value: Any, path: str, depth: int) -> Any:
        if any(self._holds(branch, value) for branch in branches):
            return value
        known = len(self.changes)
        unrecognised: EnumUnrecognized | None = None
        found: list[tuple[Any, list[Change]]] = []
        for branch in branches:
            try:
                candidate = self.into(branch, value, path, depth - 1)
            except EnumUnrecognized as error:
                unrecognised = error
            else:
                if self._holds(branch, candidate):
                    found.append((candidate, self.changes[known:]))
            del self.changes[known:]
        if found and all(same_json(found[0][0], other) for other, _ in found[1:]):
            self.changes += found[0][1]
            return found[0][0]
        if unrecognised is not None and _only_lists(branches):
            raise unrecognised
        return value

    def _holds(self, branch: Any, value: Any) -> bool:
        try:
            return is_valid_within(self.document, branch, value)
        except SchemaMalformed:
            return False  # it refers to something that is not there: that is validation's to say

    def _target(self, reference: Any) -> Any:
        here: Any = self.document
        if not isinstance(reference, str) or not reference.startswith("#"):
            return None
        for step in reference[2:].split("/") if len(reference) > 1 else ():
            name = step.replace("~1", "/").replace("~0", "~")
            if not isinstance(here, dict) or name not in here:
                return None
            here = cast("Plain", here)[name]
        return here


def _only_lists(branches: list[Any]) -> bool:
    """Whether every alternative is an enumeration, or null."""
    schemas = [cast("Plain", branch) for branch in branches if isinstance(branch, dict)]
    return len(schemas) == len(branches) and all(
        "enum" in schema or "const" in schema or schema.get("type") == "null" for schema in schemas
    )
