"""Reading a contract from JSON: what is wrong comes out as InvalidRequest, with the name of the field."""

from __future__ import annotations

import re
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any, TypeVar

import msgspec

from flyball.core.errors import InvalidMessage, InvalidRequest
from flyball.core.forms.fields import Fields, malformed

T = TypeVar("T")


@contextmanager
def reading() -> Generator[None]:
    """Within this block a malformed document is an InvalidRequest that names the field."""
    try:
        yield
    except InvalidMessage as error:
        where = str(error.details.get("where", ""))
        raise InvalidRequest(error.message, field=re.sub(r"^(request|response)\.", "", where)) from error


def inner(fields: Fields, key: str, read: Callable[[Fields], T]) -> T | None:
    """An object within an object; None where it is missing."""
    value = fields.any(key)
    return None if value is None else read(Fields(value, fields.place(key)))


def one_of(fields: Fields, key: str, kind: Callable[[Any], T], values: Any, default: T) -> T:
    """One of a few words; the default where it is missing or empty."""
    value = fields.any(key)
    if value is None or value == "":
        return default
    try:
        return kind(value)
    except ValueError:
        raise malformed(fields.place(key), f"one of {', '.join(values)}", value) from None


def names(fields: Fields, key: str) -> tuple[str, ...]:
    """A list of texts; empty where it is missing."""
    found: list[str] = []
    for value, where in fields.items(key):
        if not isinstance(value, str):
            raise malformed(where, "text", value)
        found.append(value)
    return tuple(found)


def typed(document: Any, kind: type[T], where: str) -> T:
    """A document as one of our own structs.

    Raises:
        InvalidMessage: it is none.
    """
    try:
        return msgspec.convert(document, kind)
    except msgspec.ValidationError as error:
        raise InvalidMessage(f"{where}: {error}", where=where) from error
