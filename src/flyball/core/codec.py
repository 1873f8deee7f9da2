"""Events as bytes: how journals and wires write them, and how they are read back.

The format is JSON, one object an event. Reading refuses what it does not understand: a newer version, and a
kind of event that this flyball does not have, as JournalTooNew; anything else as JournalCorrupt with the
place. Nothing is skipped, nothing is guessed.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Any, get_args

import msgspec

from flyball.core.errors import JournalCorrupt, JournalTooNew, UserError
from flyball.core.events import VERSION, Event

_encoder = msgspec.json.Encoder()
encode_event = _encoder.encode
"""An event as bytes."""


_KIND = re.compile("[a-z][a-z0-9_]{0,63}", re.ASCII)
"""What a kind of event is called, of whatever release it is."""


class _Peek(msgspec.Struct):
    version: int = 0


class _Tagged(msgspec.Struct):
    event: str
    at: float


@cache
def _kinds() -> frozenset[str]:
    return frozenset(kind.__struct_config__.tag for kind in get_args(Event))


@cache
def _decoder() -> msgspec.json.Decoder[Any]:
    # Built at first use: it costs milliseconds that an import should not.
    return msgspec.json.Decoder(Event)


def decode_event(data: bytes, place: str = "journal") -> Event:
    """An event from bytes.

    Raises:
        JournalTooNew: a newer flyball wrote it: its version is later, or this one has no such kind of event.
        JournalCorrupt: the bytes are no event; the message says where (`place`).
    """
    try:
        event = _decoder().decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, UserError) as error:
        # UserError: a struct that looks at itself when it is made did not like what it saw.
        _refuse_newer(_version(data), place)
        _refuse_unknown(data, place)
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


def _refuse_unknown(data: bytes, place: str) -> None:
    """Refuse an event of a kind that this flyball does not have. A loop that it began itself may have one:
    workers of a newer one go on with it, and say their version only in what begins a loop, or takes it over.
    """
    try:
        kind = msgspec.json.decode(data, type=_Tagged).event
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return
    if kind not in _kinds() and _KIND.fullmatch(kind):
        raise JournalTooNew(
            f"{place}: a newer flyball wrote it: this one has no event {kind!r}: upgrade it",
            kind=kind,
            supported=VERSION,
        )
