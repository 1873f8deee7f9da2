"""Reading many messages of a stream with one question: JetStream's batched direct get.

A consumer would do the same for ten round trips, and leave something on the server to be cleaned up.
"""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct

from flyball.core.errors import JournalFailure, JournalUnreachable
from flyball.runtime.nats.entry import BEFORE, LENGTH

if TYPE_CHECKING:
    from nats.aio.msg import Msg

    from flyball.runtime.nats.connection import Connection

_BATCH = 256
_MOST_BYTES = 16 * 2**20
"""How much is sent at once, but for the last message: what is large comes in time all the same."""
_LISTED = 64
"""How many entries before it an entry names the places of."""
_ATTEMPT = 5.0
_AGAIN = 0.1
_NO_MESSAGE = 10037
_REFUSED = object()
_SEQUENCE, _PENDING, _STATUS = "Nats-Sequence", "Nats-Num-Pending", "Status"


class _NobodyAnswers(Exception):  # noqa: N818 - what is the case, for now
    """No node answers for a stream: there is no such stream, or those that have it are down, or elect."""


def sequence(message: Msg) -> int:
    """The place in its stream of a message that was read."""
    return int((message.headers or {})[_SEQUENCE])


def header(message: Msg, name: str) -> str:
    """A header of a message, or nothing."""
    return (message.headers or {}).get(name) or ""


class Tail(Struct, frozen=True):
    """The end of a loop: the place of its last entry, how many events it has there, and the entry's id.

    `entries` are the places of all its entries, the last included; None where they are many, or not known.
    """

    sequence: int = 0
    length: int = 0
    id: str = ""
    entries: tuple[int, ...] | None = ()

    def before(self) -> str:
        """What the entry after this one says of those before it; nothing where they are too many."""
        if self.entries is None or len(self.entries) > _LISTED:
            return ""
        return f"{len(self.entries)}:" + ",".join(map(str, self.entries))

    def then(self, sequence: int, length: int, name: str) -> Tail:
        """The end of the loop after one more entry."""
        listed = self.entries is not None and len(self.entries) <= _LISTED
        return Tail(sequence, length, name, (*(self.entries or ()), sequence) if listed else None)


async def tail(connection: Connection, stream: str, subjects: str) -> Tail:
    """The end of a loop, as the stream's leader has it: a copy might be behind.

    Raises:
        JournalUnreachable: the server does not answer.
        JournalFailure: it refuses.
    """
    ask = msgspec.json.encode({"last_by_subj": subjects})
    message = await connection.request(f"{connection.identity.api}.STREAM.MSG.GET.{stream}", ask)
    answer = msgspec.json.decode(message.data, type=_Got)
    if answer.error is not None:
        if answer.error.err_code == _NO_MESSAGE:
            return Tail()
        raise JournalFailure(f"NATS does not read {stream}: {answer.error.description}", stream=stream)
    assert answer.message is not None, "an answer is a message or an error"
    headers, place = _headers(answer.message.hdrs), answer.message.seq
    length, name = int(headers.get(LENGTH, 0)), headers.get("Nats-Msg-Id", "")
    return Tail(place, length, name, listed(headers.get(BEFORE, ""), place))


async def subject_at(connection: Connection, stream: str, place: int) -> str:
    """The subject of the message at a place, as the stream's leader has it; nothing if it is gone.

    Raises:
        JournalUnreachable: the server does not answer.
    """
    ask = msgspec.json.encode({"seq": place})
    message = await connection.request(f"{connection.identity.api}.STREAM.MSG.GET.{stream}", ask)
    found = msgspec.json.decode(message.data, type=_Got).message
    return "" if found is None else found.subject


async def next_on(connection: Connection, stream: str, subject: str, first: int) -> int | None:
    """The place of the first message on a subject, from a place on, as the leader has it; None without one.

    Raises:
        JournalUnreachable: the server does not answer.
    """
    ask = msgspec.json.encode({"seq": first, "next_by_subj": subject})
    message = await connection.request(f"{connection.identity.api}.STREAM.MSG.GET.{stream}", ask)
    found = msgspec.json.decode(message.data, type=_Got).message
    return None if found is None else found.seq


def listed(before: str, place: int) -> tuple[int, ...] | None:
    """The places of a loop's entries, by what the last one says, which is at `place`; None if it does not."""
    count, mark, places = before.partition(":")
    if not mark or not count.isdecimal():
        return None
    found = tuple([int(one) for one in places.split(",") if one.isdecimal()])
    return (*found, place) if len(found) == int(count) else None


async def at_places(connection: Connection, stream: str, places: tuple[int, ...]) -> list[Msg] | None:
    """The messages at some places of a stream; None if one is not there, or not yet where it was looked for.

    Raises:
        JournalUnreachable: the server does not answer.
        JournalFailure: it refuses.
    """
    subject = f"{connection.identity.api}.DIRECT.GET.{stream}"
    asked = [connection.request(subject, msgspec.json.encode({"seq": place})) for place in places]
    found = await asyncio.gather(*asked)
    return list(found) if all(_checked(message, stream) for message in found) else None


class _Error(Struct):
    err_code: int = 0
    description: str = ""


class _Stored(Struct):
    seq: int
    subject: str = ""
    hdrs: bytes = b""


class _Got(Struct):
    message: _Stored | None = None
    error: _Error | None = None


def _headers(data: bytes) -> dict[str, str]:
    lines = [line.partition(":") for line in data.decode("utf-8", "replace").splitlines()[1:]]
    return {name.strip(): value.strip() for name, mark, value in lines if mark}


async def after(connection: Connection, stream: str, subjects: str, first: int = 1) -> list[Msg]:
    """All messages on some subjects, from a place in the stream on, in order.

    Raises:
        JournalUnreachable: the server does not answer, or stops answering.
        JournalFailure: it refuses, or has no such stream.
    """
    found: list[Msg] = []
    until = time.monotonic() + connection.patience
    while True:
        try:
            messages, pending = await _batch(connection, stream, subjects, first)
        except (_NobodyAnswers, TimeoutError) as error:
            if time.monotonic() >= until:
                raise JournalUnreachable(
                    f"NATS stops answering while {stream} is read: is the server up?", stream=stream
                ) from None
            if isinstance(error, _NobodyAnswers):
                await _check_there(connection, stream)
                await asyncio.sleep(_AGAIN)
            continue
        found += messages
        if not messages or not pending:
            return found
        first = sequence(messages[-1]) + 1


async def _check_there(connection: Connection, stream: str) -> None:
    """Do nothing where a cluster has a stream, whether or not that can be read just now.

    Raises:
        JournalUnreachable: nobody can tell.
        JournalFailure: it has none of this name.
    """
    from nats.js.errors import NotFoundError

    try:
        await connection.patiently(lambda: connection.js.stream_info(stream))
    except NotFoundError as error:
        raise JournalFailure(f"NATS does not read {stream}: {error.description}", stream=stream) from error


async def _batch(connection: Connection, stream: str, subjects: str, first: int) -> tuple[list[Msg], int]:
    """The next messages, and how many there are after them.

    Raises:
        TimeoutError: the end did not come.
        PermissionDenied: this user may not read there.
    """
    arrived: asyncio.Queue[Any] = asyncio.Queue()
    inbox = connection.new_inbox()
    subscription = await connection.subscribe(inbox, arrived.put)
    ask = msgspec.json.encode(
        {"seq": first, "batch": _BATCH, "max_bytes": _MOST_BYTES, "next_by_subj": subjects}
    )
    messages: list[Msg] = []
    asked = f"{connection.identity.api}.DIRECT.GET.{stream}"
    try:
        with connection.on_refusal(asked, lambda: arrived.put_nowait(_REFUSED)):
            async with asyncio.timeout(_ATTEMPT):
                await connection.publish(asked, ask, reply=inbox)
                while True:
                    message: Any = await arrived.get()
                    if message is _REFUSED:
                        connection.check(asked)
                        continue
                    if header(message, _STATUS) == "503":
                        raise _NobodyAnswers
                    if header(message, _STATUS) == "204":
                        return messages, int(header(message, _PENDING) or 0)
                    if not _checked(message, stream):
                        return messages, 0
                    messages.append(message)
    finally:
        await subscription.unsubscribe()


def _checked(message: Msg, stream: str) -> bool:
    """Whether a message was found.

    Raises:
        JournalFailure: the server says something else than yes or no.
    """
    status = header(message, _STATUS)
    if not status:
        return True
    if status == "404":
        return False
    raise JournalFailure(
        f"NATS does not read {stream}: {status} {header(message, 'Description')}", stream=stream
    )
