"""Events as bytes: how journals and wires write them, and how they are read back.

The format is JSON, one object an event. Reading refuses what it does not understand: a newer version as
JournalTooNew, anything else as JournalCorrupt with the place. Nothing is skipped, nothing is guessed.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import msgspec

from flyball.core.errors import JournalCorrupt, JournalTooNew, UserError
from flyball.core.events import VERSION, Event

_encoder = msgspec.json.Encoder()
encode_event = _encoder.encode
"""An event as bytes."""


class _Peek(msgspec.Struct):
    version: int = 0


@cache
def _decoder() -> msgspec.json.Decoder[Any]:
    # Built at first use: it costs milliseconds that an import should not.
    return msgspec.json.Decoder(Event)


def decode_event(data: bytes, place: str = "journal") -> Event:
    """An event from bytes.

    Raises:
        JournalTooNew: a newer flyball wrote it.
        JournalCorrupt: the bytes are no event; the message says where (`place`).
    """
    try:
        event = _decoder().decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, UserError) as error:
        # UserError: a struct that looks at itself when it is made did not like what it saw.
        _refuse_newer(_version(data), place)
        raise JournalCorrupt(f"{place}: not an event: {error}", place=place) from error
    _refuse_newer(getattr(event, "version", VERSION), place)
    return event


def _version(data: bytes) -> int:
    try:
        return msgspec.json.decode(data, type=_Peek).version
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return 0


def _refuse_newer(version: int, place: str) -> None:
    if version > VERSION:
        raise JournalTooNew(
            f"{place}: in journal format {version}, and this flyball reads up to {VERSION}: upgrade it",
            version=version,
            supported=VERSION,
        )
