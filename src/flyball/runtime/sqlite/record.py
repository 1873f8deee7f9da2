"""An event as a row: its loop, its number, its bytes and their checksum.

SQLite keeps no checksums of what it stores, so each row has one, over its loop, its number and its bytes.
What is read is therefore what was written, in its place; anything else is refused as damage.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias
from zlib import crc32

import msgspec

from flyball.core.codec import decode_event, encode_event
from flyball.core.errors import JournalCorrupt, UserError
from flyball.core.events import Event

Row: TypeAlias = tuple[str, int, int, bytes]
"""What is stored: loop, number, checksum, bytes."""
Found: TypeAlias = tuple[Any, Any, Any]
"""What was found of a loop's row: number, checksum, bytes. Damage may have made anything of them."""


def rows_of(loop_id: str, events: Sequence[Event], first: int) -> list[Row]:
    """The rows for events that are numbered from `first`.

    Raises:
        UserError: the loop id is empty or no Unicode text, or an event holds what JSON cannot.
    """
    seed = seed_of(loop_id) + first
    rows: list[Row] = []
    for k, event in enumerate(events):
        try:
            body = encode_event(event)
        except (TypeError, ValueError, OverflowError, RecursionError, msgspec.MsgspecError) as error:
            raise UserError(
                f"event {first + k} of loop {loop_id!r}, a {type(event).__name__}, is not writable: {error}: "
                "make its values plain JSON first (flyball.core.encodable.to_json)",
                loop_id=loop_id,
            ) from error
        rows.append((loop_id, first + k, crc32(body, seed + k & 0xFFFFFFFF), body))
    return rows


def seed_of(loop_id: str) -> int:
    """Where the checksums of a loop's rows begin, before their numbers are added.

    Raises:
        UserError: the loop id is empty, or no Unicode text.
    """
    if not loop_id:
        raise UserError("a loop id must not be empty")
    try:
        return crc32(loop_id.encode())
    except UnicodeEncodeError as error:
        raise UserError(f"the loop id {loop_id!r} is no Unicode text: {error}") from error


def events_of(found: Iterable[Found], path: str, loop_id: str, start: int) -> list[Event]:
    """The events in rows that must be numbered from `start` without a gap.

    Raises:
        JournalCorrupt: a number is missing, or bytes are not those that were written.
        JournalTooNew: a newer flyball wrote one of them.
    """
    seed = seed_of(loop_id)
    events: list[Event] = []
    for expected, (n, crc, body) in enumerate(found, start):
        place = f"{path}: loop {loop_id!r}, event {expected}"
        if n != expected:
            raise JournalCorrupt(
                f"{place} is missing (event {n!r} comes next): restore a copy of the file",
                path=path,
                loop_id=loop_id,
                event=expected,
            )
        if type(body) is not bytes or crc32(body, seed + n & 0xFFFFFFFF) != crc:
            raise JournalCorrupt(
                f"{place} is not what was written (its checksum differs): restore a copy of the file",
                path=path,
                loop_id=loop_id,
                event=expected,
            )
        events.append(decode_event(body, place))
    return events
