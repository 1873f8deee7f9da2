"""The envelope of a message: SemStreams' payload for everybody, and our own form of it for ourselves."""

from __future__ import annotations

import re
import time
from functools import cache
from typing import Any, Generic, TypeVar

import msgspec
from msgspec import Raw, Struct

from flyball.core.errors import InvalidMessage, JournalTooNew
from flyball.core.forms.semstreams import (
    AnyPayload,
    Category,
    Envelope,
    PayloadType,
    Refusal,
    read_envelope,
    write_envelope,
)

T = TypeVar("T")
EXACT = "flyball"
"""The key beside the envelope's own."""
VERSION = 1
"""The version of what stands under it."""
_PAYLOAD = PayloadType(Category.TASK)
"""The domain and the version of all payloads that are read here."""
_NUMBERED = re.compile("v([1-9][0-9]{0,8})", re.ASCII)
"""A version as it stands in an envelope's type."""


class Exact(Struct, Generic[T], frozen=True):
    """What stands under our key."""

    version: int
    body: T


class _Type(Struct, frozen=True):
    domain: str
    category: str
    version: str


class _Typed(Struct, frozen=True):
    type: _Type


class _Framed(_Typed, Generic[T], frozen=True):
    flyball: Exact[T] | None = None


@cache
def _decoder(body: Any) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(_Framed[body])


def write(payload: AnyPayload, name: str, body: Struct | None = None) -> bytes:
    """A payload in its envelope; `body` is the same in our own form, if it has one.

    Raises:
        InvalidMessage: the payload holds something that its form has no place for.
    """
    extra: dict[str, Any] | None = None if body is None else {EXACT: Exact(VERSION, body)}
    return write_envelope(payload, id=name, at=time.time(), extra=extra)


def own(category: str, name: str, body: Struct) -> bytes:
    """A message that only flyball has: SemStreams has no payload of this kind."""
    kind = _Type(EXACT, category, f"v{VERSION}")
    return msgspec.json.encode({"id": name, "type": kind, EXACT: Exact(VERSION, body)})


def read_exact(data: bytes, body: type[T], place: str) -> T | None:
    """What a message means in our own form; None where somebody else has sent it.

    Raises:
        InvalidMessage: it is no envelope. `reason` in the details is a `Refusal`.
        JournalTooNew: a newer flyball has sent it.
    """
    try:
        framed: _Framed[T] = _decoder(body).decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise _unreadable(data, place, error) from error
    if framed.flyball is None:
        return None
    if framed.flyball.version != VERSION:
        raise _other_release(place, framed.flyball.version)
    return framed.flyball.body


def read_payload(data: bytes, place: str) -> Envelope:
    """A message of somebody else's, checked.

    Raises:
        InvalidMessage: it cannot be read, or lacks something.
        JournalTooNew: its envelope is of a later version, which newer workers read.
    """
    try:
        envelope = read_envelope(data)
        envelope.validate()
    except InvalidMessage as error:
        if (newer := _newer(data, place)) is not None:
            raise newer from error
        refused = InvalidMessage(f"{error.message}")
        refused.details = {**error.details, "subject": place}
        raise refused from error
    return envelope


def check_version(data: bytes, place: str) -> None:
    """Look whether a newer flyball has sent a message, and at nothing else of it.

    Raises:
        JournalTooNew: it has.
    """
    if (newer := _newer(data, place)) is not None:
        raise newer
    try:
        exact = _decoder(Raw).decode(data).flyball
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return
    if exact is not None and isinstance(newer := _other_release(place, exact.version), JournalTooNew):
        raise newer


def not_for(place: str, payload: object, wanted: str) -> InvalidMessage:
    """The error of a message that has come to the wrong place."""
    return InvalidMessage(
        f"a {type(payload).__name__} has come, where {wanted} was expected",
        subject=place,
        reason=Refusal.BAD_PAYLOAD,
    )


def _unreadable(data: bytes, place: str, error: Exception) -> InvalidMessage | JournalTooNew:
    """Why bytes could not be read, as exactly as it can be told."""
    if (newer := _newer(data, place)) is not None:
        return newer
    try:
        exact = _decoder(Raw).decode(data).flyball
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        try:
            msgspec.json.decode(data)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return InvalidMessage(f"it is not JSON: {error}", subject=place, reason=Refusal.NOT_JSON)
        return InvalidMessage(f"no envelope: {error}", subject=place, reason=Refusal.NO_ENVELOPE)
    if exact is not None and exact.version != VERSION:
        return _other_release(place, exact.version)
    return InvalidMessage(f"not readable: {error}", subject=place, reason=Refusal.BAD_PAYLOAD)


def _other_release(place: str, version: int) -> InvalidMessage | JournalTooNew:
    """A newer one's is left to those who can read it; of an older one there is none that cannot be."""
    if version > VERSION:
        return JournalTooNew(
            f"a newer flyball has sent it (version {version}; this one reads {VERSION}): it is left to newer "
            "workers",
            subject=place,
        )
    return InvalidMessage(
        f"another release of flyball has sent it (version {version}; this one reads {VERSION}): "
        "run the same release everywhere",
        subject=place,
        reason=Refusal.OTHER_VERSION,
    )


def _newer(data: bytes, place: str) -> JournalTooNew | None:
    """The error of an envelope of a later version, whatever else stands in it; None of any other."""
    try:
        kind = msgspec.json.decode(data, type=_Typed).type
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    known = {_PAYLOAD.domain: _PAYLOAD.version, EXACT: f"v{VERSION}"}.get(kind.domain)
    if known is None or not _is_later(kind.version, known):
        return None
    return JournalTooNew(
        f"its envelope is of a newer version ({kind.version}; this flyball reads {known}): it is left to "
        "newer workers",
        subject=place,
    )


def _is_later(version: str, known: str) -> bool:
    """Whether a version comes after one that is known; what is no version comes after none."""
    said, read = _NUMBERED.fullmatch(version), _NUMBERED.fullmatch(known)
    return said is not None and read is not None and int(said[1]) > int(read[1])
