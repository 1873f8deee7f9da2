"""Values: how what a step takes and gives is written down, and read back as what it was."""

from __future__ import annotations

from functools import cache
from typing import Any

import msgspec

from flyball.core.encodable import NotEncodable, to_json
from flyball.core.errors import SchemaMalformed, StepMismatch


class Values:
    """The values of a type, as JSON and back. Of `Any` what is read back is plain JSON.

    Raises:
        SchemaMalformed: values of the type have no JSON form.
    """

    __slots__ = ("_adapter", "kind")

    def __init__(self, kind: Any = Any) -> None:
        self.kind = kind
        self._adapter = None if kind is Any else _adapter(kind)

    def encode(self, value: Any, what: str) -> Any:
        """A value as plain JSON.

        Raises:
            StepMismatch: it is not of the type, or holds what has no JSON form.
        """
        try:
            if self._adapter is not None:
                checked = self._adapter.validate_python(value)
                value = self._adapter.dump_python(checked, mode="json", warnings="error")
            return to_json(value, what)
        except NotEncodable as error:
            raise StepMismatch(f"it cannot be recorded: {error}") from error
        except (ValueError, TypeError) as error:  # pydantic's, of both kinds, and msgspec's
            raise StepMismatch(f"{what} is not of the type {_told(self.kind)}: {error}") from error

    def decode(self, plain: Any, what: str) -> Any:
        """A value from JSON.

        Raises:
            StepMismatch: it is not of the type.
        """
        if self._adapter is None:
            return plain
        try:
            return self._adapter.validate_json(msgspec.json.encode(plain))
        except ValueError as error:
            raise StepMismatch(f"{what} is not of the type {_told(self.kind)}: {error}") from error


def _adapter(kind: Any) -> Any:
    try:
        return _cached(kind)
    except TypeError:  # a type that cannot be hashed
        return _made(kind)


def _made(kind: Any) -> Any:
    from pydantic import TypeAdapter
    from pydantic.errors import PydanticUserError

    try:
        adapter: Any = TypeAdapter(kind)
        adapter.json_schema(mode="serialization")
    except (PydanticUserError, NameError) as error:
        try:
            return _Structs(kind)  # such as messages: what pydantic does not know
        except (TypeError, NameError):
            raise SchemaMalformed(
                f"a step takes or gives {_told(kind)}, which has no JSON form, and could not be recorded: "
                f"{error}"
            ) from error
    return adapter


class _Structs:
    """What msgspec writes and reads, in the manner of pydantic's adapter. What it cannot is a TypeError."""

    def __init__(self, kind: Any) -> None:
        self._kind = kind
        msgspec.json.schema(kind)  # what it could only write with somebody's help has none
        self._decoder: msgspec.json.Decoder[Any] = msgspec.json.Decoder(kind)

    def validate_python(self, value: Any) -> Any:
        return msgspec.convert(msgspec.to_builtins(value), self._kind)

    def dump_python(self, value: Any, **_: Any) -> Any:
        return msgspec.to_builtins(value)

    def validate_json(self, text: bytes) -> Any:
        return self._decoder.decode(text)


_cached = cache(_made)


def _told(kind: Any) -> str:
    return getattr(kind, "__qualname__", None) or str(kind)
