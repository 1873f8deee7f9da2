"""The envelope of a message: SemStreams' payload for everybody, and our own form of it for ourselves."""

from __future__ import annotations

import time
from functools import cache
from typing import Any, Generic, TypeVar

import msgspec
from msgspec import Raw, Struct

from flyball.core.errors import InvalidMessage, JournalTooNew
from flyball.core.forms.semstreams import AnyPayload, Envelope, Refusal, read_envelope, write_envelope

T = TypeVar("T")
EXACT = "flyball"
"""The key beside the envelope's own."""
VERSION = 1
"""The version of what stands under it."""


class Exact(Struct, Generic[T], frozen=True):
    """What stands under our key."""

    version: int
    body: T


class _Type(Struct, frozen=True):
    domain: str
    category: str
    version: str


class _Framed(Struct, Generic[T], frozen=True):
    type: _Type
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
    kind = _Type("flyball", category, f"v{VERSION}")
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
    """
    try:
        envelope = read_envelope(data)
        envelope.validate()
    except InvalidMessage as error:
        refused = InvalidMessage(f"{error.message}")
        refused.details = {**error.details, "subject": place}
        raise refused from error
    return envelope


def not_for(place: str, payload: object, wanted: str) -> InvalidMessage:
    """The error of a message that has come to the wrong place."""
    return InvalidMessage(
        f"a {type(payload).__name__} has come, where {wanted} was expected",
        subject=place,
        reason=Refusal.BAD_PAYLOAD,
    )


def _unreadable(data: bytes, place: str, error: Exception) -> InvalidMessage | JournalTooNew:
    """Why bytes could not be read, as exactly as it can be told."""
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
