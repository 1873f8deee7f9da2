"""What a stream answers to a message: the place where it is, or why it was not taken."""

from __future__ import annotations

from msgspec import Struct

WRONG_LAST = 10071
"""Another message is the last one than was expected."""


class Refusal(Struct):
    """Why a message was not taken."""

    err_code: int = 0
    description: str = ""


class Stored(Struct):
    """The answer."""

    seq: int = 0
    error: Refusal | None = None
