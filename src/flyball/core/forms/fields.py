"""Reading a foreign JSON object key by key, and writing one with what was unknown in it."""

from __future__ import annotations

from typing import Any, cast

import msgspec

from flyball.core.encodable import MAX_DEPTH, NotEncodable, to_json
from flyball.core.errors import InvalidMessage
from flyball.core.messages import JSON

_KINDS: dict[type[Any], str] = {
    dict: "an object",
    list: "a list",
    str: "the text",
    bool: "a truth value",
    int: "a number",
    float: "a number",
    type(None): "null",
}
_CONTAINERS = (dict, list)
_LARGE = 1 << 63


def entered(document: object, where: str) -> JSON:
    """A document from outside, made sound once: what follows may trust that it is JSON.

    Raises:
        InvalidMessage: it is no JSON, or nested too deeply.
    """
    try:
        return to_json(document, where)
    except NotEncodable as error:
        raise InvalidMessage(f"no JSON: {error}", where=where) from error


def decoded(data: bytes | str, where: str) -> JSON:
    """A document from bytes.

    Raises:
        InvalidMessage: the bytes are no JSON, or nested too deeply.
    """
    try:
        value = msgspec.json.decode(data)
        return value if _is_sound(value) else entered(value, where)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise InvalidMessage(f"{where} is no JSON: {error}", where=where) from error


def _is_sound(value: JSON) -> bool:
    """Whether a decoded value needs no second look, which would cost several times what this does.

    Of all that `entered` mends or refuses, a decoder lets through deep nesting and huge numbers only.
    """
    level: list[Any] = [[value]]
    for _ in range(MAX_DEPTH):
        inner: list[Any] = []
        for container in level:
            children = cast("dict[str, Any]", container).values() if type(container) is dict else container
            for child in cast("list[Any]", children):
                if type(child) in _CONTAINERS:
                    inner.append(child)
                elif type(child) is int and not -_LARGE < child < _LARGE:
                    return False
        if not inner:
            return True
        level = inner
    return False


def malformed(where: str, wanted: str, value: object) -> InvalidMessage:
    """The error for a value of the wrong kind, with what was wanted there and what stands there."""
    return InvalidMessage(f"{where} should be {wanted}, but is {_shown(value)}", where=where)


def items(value: JSON, where: str) -> list[tuple[JSON, str]]:
    """The members of a list, each with its place; null is an empty list, as in Go.

    Raises:
        InvalidMessage: it is no list.
    """
    if value is None:
        return []
    if not isinstance(value, list):
        raise malformed(where, "a list", value)
    return [(item, f"{where}[{n}]") for n, item in enumerate(cast("list[Any]", value))]


class Fields:
    """One JSON object that is being read: each known key is taken once, the rest is what nobody knew.

    All methods raise InvalidMessage where a key holds something of another kind.
    """

    __slots__ = ("_rest", "where")

    def __init__(self, value: JSON, where: str) -> None:
        if not isinstance(value, dict):
            raise malformed(where, "an object", value)
        self._rest: dict[str, JSON] = dict(cast("dict[str, JSON]", value))
        self.where = where

    def place(self, key: str) -> str:
        """Where a key stands, for messages."""
        return f"{self.where}.{key}"

    def any(self, key: str) -> JSON:
        """Whatever is there; None where it is missing."""
        return self._rest.pop(key, None)

    def peek(self, key: str) -> JSON:
        """Whatever is there, without taking it."""
        return self._rest.get(key)

    def text(self, key: str) -> str:
        """Text; empty where it is missing."""
        value = self.any(key)
        if value is None or isinstance(value, str):
            return value or ""
        raise malformed(self.place(key), "text", value)

    def flag(self, key: str) -> bool | None:
        """True or false; None where it is missing."""
        value = self.any(key)
        if value is None or isinstance(value, bool):
            return value
        raise malformed(self.place(key), "true or false", value)

    def whole(self, key: str) -> int | None:
        """A whole number; None where it is missing."""
        value = self.any(key)
        if value is None or (isinstance(value, int) and not isinstance(value, bool)):
            return value
        raise malformed(self.place(key), "a whole number", value)

    def number(self, key: str) -> float | None:
        """A number; None where it is missing."""
        value = self.any(key)
        if value is None:
            return None
        try:
            if isinstance(value, int | float) and not isinstance(value, bool):
                return float(value)
        except OverflowError:
            pass  # said below: a number of hundreds of digits is none that anybody can count with
        raise malformed(self.place(key), "a number", value)

    def mapping(self, key: str) -> dict[str, JSON] | None:
        """An object; None where it is missing or empty."""
        value = self.any(key)
        if value is None or isinstance(value, dict):
            return cast("dict[str, JSON] | None", value) or None
        raise malformed(self.place(key), "an object", value)

    def items(self, key: str) -> list[tuple[JSON, str]]:
        """The members of a list, each with its place; none where it is missing."""
        return items(self.any(key), self.place(key))

    def rest(self) -> dict[str, JSON] | None:
        """What was not taken; None where that is nothing."""
        return self._rest or None


def written(known: dict[str, JSON], extra: dict[str, JSON] | None, keys: frozenset[str]) -> dict[str, JSON]:
    """An object as it is written: what the form knows, then the extras that pose as none of its `keys`."""
    for key, value in (extra or {}).items():
        if key not in keys:
            known.setdefault(key, value)
    return known


def filled(**known: JSON) -> dict[str, JSON]:
    """The keys whose value is not empty (nor zero, nor false): what Go calls omitempty."""
    return {key: value for key, value in known.items() if value}


def _shown(value: object) -> str:
    return f"{_KINDS.get(type(value), type(value).__name__)}: {repr(value)[:80]}"
