"""An entry: the events of one append, as one message. So an append is all there or not at all."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import msgspec
from msgspec import Raw, Struct

from flyball.core.codec import decode_event, encode_event
from flyball.core.errors import JournalCorrupt, UserError
from flyball.core.events import Event

LENGTH = "Flyball-Length"
"""The header that says how many events the loop has with this entry."""
BEFORE = "Flyball-Before"
"""The header that says where in the stream the loop's entries before this one are, unless they are many."""
BLOB = "Flyball-Blob"
"""The header of an entry that is too large for a message: the name of what holds it."""


class Entry(Struct, frozen=True):
    """Events of a loop, numbered from `first`."""

    loop_id: str
    first: int
    events: list[Raw]


@cache
def _decoder() -> msgspec.json.Decoder[Entry]:
    return msgspec.json.Decoder(Entry)


def encode_entry(loop_id: str, first: int, events: Sequence[Event]) -> bytes:
    """Events as a message.

    Raises:
        UserError: an event holds what JSON cannot.
    """
    encoded: list[Raw] = []
    for number, event in enumerate(events, first):
        try:
            encoded.append(Raw(encode_event(event)))
        except (TypeError, ValueError, OverflowError, RecursionError, msgspec.MsgspecError) as error:
            raise UserError(
                f"event {number} of loop {loop_id!r}, a {type(event).__name__}, is not writable: {error}: "
                "make its values plain JSON first (flyball.core.encodable.to_json)",
                loop_id=loop_id,
            ) from error
    return msgspec.json.encode(Entry(loop_id, first, encoded))


def decode_entry(data: bytes, place: str) -> Entry:
    """A message as an entry. Its events are read by `events_of`.

    Raises:
        JournalCorrupt: the bytes are no entry.
    """
    try:
        return _decoder().decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise JournalCorrupt(f"{place}: not an entry of a journal: {error}", place=place) from error


def events_of(entries: Sequence[tuple[bytes, str]], loop_id: str, start: int) -> list[Event]:
    """The events of a loop's entries from number `start` on; each entry comes with its place.

    Raises:
        JournalCorrupt: bytes are no entry of this loop, or an event is missing.
        JournalTooNew: a newer flyball wrote one of them.
    """
    events: list[Event] = []
    length = 0
    for data, place in entries:
        entry = decode_entry(data, place)
        if (
            entry.loop_id != loop_id
            or (length and entry.first != length)
            or entry.first > start + len(events)
        ):
            raise JournalCorrupt(
                f"{place}: has event {entry.first} of loop {entry.loop_id!r}, where event {length} of loop "
                f"{loop_id!r} was expected",
                loop_id=loop_id,
                event=length,
            )
        length = entry.first + len(entry.events)
        skipped = max(start - entry.first, 0)
        for number, raw in enumerate(entry.events[skipped:], entry.first + skipped):
            events.append(decode_event(bytes(raw), f"{place}, event {number} of loop {loop_id!r}"))
    return events
