"""Objects of JSON that are read and written without loss: what is signed must stay as it is, to the letter.

Known keys are fields; those that nobody here knows are kept in `extra`, and are written back. Times stay the
texts that they are, because the same moment can be written in several ways and only one of them was signed.
"""

from __future__ import annotations

import json
from functools import cache
from typing import Any, ClassVar, Self, cast

import msgspec
from msgspec import NODEFAULT, Struct
from msgspec.structs import FieldInfo, fields

from flyball.core.encodable import NotEncodable, to_json
from flyball.core.errors import IdentityInvalid, InvalidMessage
from flyball.core.forms.times import seconds
from flyball.core.messages import JSON


class Kept(Struct, frozen=True, kw_only=True, repr_omit_defaults=True):
    """An object with known keys. What was read is written back exactly."""

    NAME: ClassVar[str]
    """What it is called in errors."""

    extra: dict[str, Any] = {}

    @classmethod
    def read(cls, document: object, where: str = "") -> Self:
        """The object from JSON.

        Raises:
            IdentityInvalid: it is none; the message says what stands where something else should.
        """
        where = where or cls.NAME
        try:
            plain = to_json(document, where)
        except NotEncodable as error:
            raise IdentityInvalid(f"{where} is no JSON: {error}", where=where) from error
        if not isinstance(plain, dict):
            raise IdentityInvalid(f"{where} should be an object, but is {plain!r:.100}", where=where)
        left = dict(cast("dict[str, JSON]", plain))
        known = {
            field.name: _value(field, left.pop(field.encode_name), f"{where}.{field.encode_name}")
            for field in known_fields(cls)
            if field.encode_name in left
        }
        missing = [
            field.encode_name for field in known_fields(cls) if field.required and field.name not in known
        ]
        if missing:
            raise IdentityInvalid(f"{where} has no {missing[0]!r}", where=where)
        made = cls(**known, extra=left)
        if made.write() != plain:
            raise IdentityInvalid(
                f"{where} has an empty or null value where a key should be left out", where=where
            )
        return made

    @classmethod
    def parse(cls, text: bytes | str) -> Self:
        """The object from a text of JSON, in which no key may stand twice.

        Raises:
            IdentityInvalid: it is none.
        """
        try:
            return cls.read(json.loads(text, object_pairs_hook=_once, parse_constant=_constant))
        except (ValueError, RecursionError) as error:
            raise IdentityInvalid(f"{cls.NAME} is no JSON: {error}", where=cls.NAME) from error

    def write(self) -> dict[str, JSON]:
        """The object as JSON."""
        known: dict[str, Any] = {}
        for field in known_fields(type(self)):
            value = getattr(self, field.name)
            if field.required or value != field.default:
                known[field.encode_name] = _written(value)
        return {**known, **{name: value for name, value in self.extra.items() if name not in known}}


@cache
def known_fields(kind: type[Kept]) -> tuple[FieldInfo, ...]:
    """The keys of a kind, in their order."""
    return tuple([field for field in fields(kind) if field.name != "extra"])


def moment(text: str, where: str) -> float:
    """A time in seconds since the epoch.

    Raises:
        IdentityInvalid: the text is no RFC 3339 time.
    """
    try:
        found = seconds(text, where)
    except InvalidMessage as error:
        raise IdentityInvalid(error.message, where=where) from error
    return float("-inf") if found is None else found


def _value(field: FieldInfo, value: Any, where: str) -> Any:
    inner: Any = field.type if isinstance(field.type, type) else None
    if inner is None and field.default is not NODEFAULT:
        # `Proof | None` and the like: null is refused, because it would not be written back.
        inner = next((one for one in getattr(field.type, "__args__", ()) if _is_kept(one)), None)
    if inner is not None and _is_kept(inner):
        made: Kept = inner.read(value, where)
        return made
    try:
        converted = msgspec.convert(value, cast("type[object]", field.type))
    except msgspec.ValidationError as error:
        raise IdentityInvalid(f"{where} is none: {error}", where=where) from error
    return converted


def _is_kept(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, Kept)


def _written(value: Any) -> JSON:
    if isinstance(value, Kept):
        return value.write()
    return cast("JSON", list(cast("tuple[Any, ...]", value)) if isinstance(value, tuple) else value)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        twice = next(name for name in found if [key for key, _ in pairs].count(name) > 1)
        raise ValueError(f"the key {twice!r} stands there twice")
    return found


def _constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON")
