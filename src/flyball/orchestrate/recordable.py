"""Checking, before a loop begins, that what it records can be read back.

msgspec looks at types when it decodes, not when a struct is made. A setting of the wrong type would be
written without a word, and the journal could never be read again; so it is refused before that.
"""

from __future__ import annotations

from typing import TypeVar

import msgspec

from flyball.core.errors import UserError

T = TypeVar("T", bound=msgspec.Struct)


def recordable(value: T, what: str) -> T:
    """The value, if it would be read back from a journal as it is.

    Raises:
        UserError: it would not; the message says which of its fields is wrong, and why.
    """
    try:
        again = msgspec.json.decode(msgspec.json.encode(value), type=type(value))
    except (msgspec.MsgspecError, TypeError, ValueError) as error:
        raise UserError(f"{what} cannot be recorded: {error}") from error
    if again == value:
        return value
    for name in value.__struct_fields__:
        if getattr(again, name) != getattr(value, name):
            found = getattr(value, name)
            raise UserError(f"{what} cannot be recorded: {name}={found!r} would be read back differently")
    return value
