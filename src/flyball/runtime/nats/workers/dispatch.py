"""The dispatch worker: takes what people say on the wire, and tells them what becomes of it.

    user.message.<channel>.<id>     a UserMessage, or a UserSignal: taken by the dispatcher, once
    user.response.<channel>.<id>    what they are answered, at once and later
    agent.answered.<loop>           a loop goes on after a result from outside

Whom a loop is for stands in its first event. So the worker is a consumer of the journals: when a loop begins,
is told something or ends, somebody tells those whom it is for, up to where it rests; if that one dies, the
message is given to another, who goes on after what was noted as told. What is told twice all the same, after
a crash, has the same id. Pieces of answers are told by whoever is at it, and joined: they are not repeated.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from flyball.core.errors import InvalidMessage
from flyball.core.forms.semstreams import (
    Category,
    Refusal,
    ResponseType,
    UserMessage,
    UserResponse,
    UserSignal,
)
from flyball.orchestrate.channels.dispatcher import Dispatcher
from flyball.orchestrate.channels.following import whom_to_tell
from flyball.orchestrate.channels.taken import refusal
from flyball.orchestrate.places import place_name
from flyball.runtime.nats.bus import Bus
from flyball.runtime.nats.deliveries import Delivery
from flyball.runtime.nats.entry import BLOB, decode_entry
from flyball.runtime.nats.hiring import Post
from flyball.runtime.nats.journal import NatsJournal
from flyball.runtime.nats.messages.frame import not_for, read_payload, write
from flyball.runtime.nats.naming import BEGIN, entries, journal_stream, token
from flyball.runtime.nats.subjects import ANSWERED, SAID, reader_subject, user_response_subject
from flyball.runtime.nats.wire import AGENT
from flyball.runtime.nats.workers.in_order import InOrder

_MESSAGE = "user.message."
_TOLD_BY = (BEGIN, "ended", "signalreceived", "reopened")
"""The kinds of entries after which a loop goes on, or is over."""
_JOINED = 0.25
"""Seconds for which the pieces of an answer are joined, before they are told."""
_LOOPS = 1000
"""Loops that one worker tells of at once."""


class DispatchWorker:
    """Takes what people say, and tells them what becomes of it."""

    kind = "dispatch"

    def __init__(
        self, bus: Bus, journal: NatsJournal, dispatcher: Dispatcher, *, hold: float = 30.0, room: int = 64
    ) -> None:
        """`hold`: seconds after which a dead worker's work is given to another."""
        self._bus = bus
        self._journal = journal
        self._dispatcher = dispatcher
        self._in_order = InOrder(bus, self.kind, hold)
        self._telling: dict[str, asyncio.Event] = {}
        """The loops that are told of here."""
        self.posts = [
            Post(AGENT, self.kind, (*SAID, f"{ANSWERED}>", reader_subject(self.kind)), room=room, hold=hold),
            *[
                Post(
                    journal_stream(number),
                    self.kind,
                    tuple([entries(number, kind, journal.layout.salt) for kind in _TOLD_BY]),
                    room=_LOOPS,
                    hold=hold,
                    only_new=True,
                )
                for number in range(journal.partitions)
            ],
        ]

    async def work(self, delivery: Delivery) -> None:
        """Do what a message asks for."""
        if delivery.subject.startswith("user."):
            async with self._in_order.turn(delivery):
                await self._take(delivery)
        elif delivery.subject.startswith(ANSWERED):
            await self._tell(delivery.data.decode(errors="replace"))
        else:
            await self._tell(await self._loop_of(delivery))

    async def _take(self, delivery: Delivery) -> None:
        """Take what somebody says. What is wrong with it they are told; only if nobody can be, it is raised.

        Raises:
            InvalidMessage: it does not say who says it, and where, or says so elsewhere.
        """
        data, subject = await self._bus.opened(delivery), delivery.subject
        try:
            said = _read(data, subject)
        except InvalidMessage as error:
            await self._publish(_refused(data, subject, error))
        else:
            taken = await self._dispatcher.take(said, at=delivery.at, again=delivery.times > 1)
            await self._publish(taken)

    # Telling

    async def _tell(self, loop_id: str) -> None:
        """Tell of a loop, from what was told before up to where it rests."""
        # Whoever is at it here sees this event, too. It is acknowledged when they are done: if this process
        # dies before that, another tells it.
        while (others := self._telling.get(loop_id)) is not None:
            await others.wait()
        self._telling[loop_id] = done = asyncio.Event()
        try:
            address = await whom_to_tell(self._dispatcher.service, loop_id)
            if address is None:
                return
            known = await self._bus.told_up_to(loop_id)
            told = self._dispatcher.tell(address, loop_id, known, till_it_rests=True)
            last = known
            async with aclosing(joined(told, _JOINED)) as responses:
                async for response in responses:
                    await self._publish(response)
                    last = max(last, _number(response, loop_id))
            if last > known:
                await self._bus.note_told(loop_id, last)
        finally:
            del self._telling[loop_id]
            done.set()

    async def _loop_of(self, delivery: Delivery) -> str:
        blob = delivery.headers.get(BLOB)
        data = await self._journal.blob(blob, delivery.shown) if blob else delivery.data
        return decode_entry(data, delivery.shown).loop_id

    async def _publish(self, response: UserResponse) -> None:
        where = user_response_subject(response.channel_type, response.channel_id)
        # Elsewhere, and for others here, there may be another of that id.
        name = f"{where}/{place_name(response.user_id)}/{response.response_id}"
        await self._bus.publish(where, write(response, response.response_id), name)


class _Kind(Struct, frozen=True):
    category: str


class _Speaker(Struct, frozen=True):
    channel_type: str
    channel_id: str
    user_id: str
    thread_id: str = ""
    message_id: str = ""
    signal_id: str = ""


class _Spoken(Struct, frozen=True):
    """Of what somebody said, only who says it, and where."""

    type: _Kind
    payload: _Speaker


def _read(data: bytes, subject: str) -> UserMessage | UserSignal:
    """What somebody says on a subject.

    Raises:
        InvalidMessage: it cannot be read, lacks something, or belongs on another subject.
        JournalTooNew: newer workers read it.
    """
    said = read_payload(data, subject).payload
    if not isinstance(said, UserMessage | UserSignal):
        raise not_for(subject, said, "a UserMessage or a UserSignal")
    if not _is_said_at(said, subject):
        kind, name = said.channel_type, said.channel_id
        raise InvalidMessage(
            f"a {type(said).__name__} on {subject} is of the channel "
            f"{kind[:100]!r}, {name[:100]!r}: it is answered there, and belongs on "
            "user.message.<channel_type>.<channel_id>",
            subject=subject,
        )
    return said


def _refused(data: bytes, subject: str, error: InvalidMessage) -> UserResponse:
    """What somebody is answered who said what cannot be taken.

    Raises:
        InvalidMessage: that error, where it does not say who said it, and that it was here.
    """
    said = None
    if error.details.get("reason") in (Refusal.BAD_PAYLOAD, Refusal.INVALID):
        said = _speaker_in(data)
    if said is None or not _is_said_at(said, subject):
        raise error
    try:
        return refusal(said, error)
    except InvalidMessage:
        raise error from None


def _speaker_in(data: bytes) -> UserMessage | UserSignal | None:
    """What was said without its contents, where these cannot be read; None where nobody says who they are."""
    try:
        spoken = msgspec.json.decode(data, type=_Spoken)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    who, kind = spoken.payload, spoken.type.category
    if kind == Category.USER_MESSAGE:
        return UserMessage(
            message_id=who.message_id,
            channel_type=who.channel_type,
            channel_id=who.channel_id,
            user_id=who.user_id,
            thread_id=who.thread_id,
        )
    if kind == Category.SIGNAL:
        return UserSignal(
            signal_id=who.signal_id,
            channel_type=who.channel_type,
            channel_id=who.channel_id,
            user_id=who.user_id,
        )
    return None


def _is_said_at(said: UserMessage | UserSignal, subject: str) -> bool:
    """Whether something was said on the subject of the channel that it names.

    SemStreams' subjects may have one of its two names alone.
    """
    names = [name and token(name) for name in (said.channel_type, said.channel_id)]
    words = subject.removeprefix(_MESSAGE).split(".")
    return all(names) and (words == names or (len(words) == 1 and words[0] in names))


def _number(response: UserResponse, loop_id: str) -> int:
    """The number of the event that a response tells of; 0 where it is another loop's, or a piece."""
    words = response.response_id.removeprefix(f"{loop_id}/").split("/")
    return int(words[0]) if words[0].isdecimal() and words[1:2] != ["piece"] else 0


async def joined(told: AsyncGenerator[UserResponse], seconds: float) -> AsyncGenerator[UserResponse]:
    """What is told, with the pieces of an answer that come within some seconds of each other made one."""
    pieces: list[UserResponse] = []

    def taken() -> UserResponse:
        text = "".join([piece.content for piece in pieces])
        first = replace(pieces[0], content=text)
        pieces.clear()
        return first

    async with aclosing(told):
        coming: asyncio.Future[UserResponse] | None = None
        until = 0.0
        clock = asyncio.get_running_loop().time
        try:
            while True:
                coming = coming or asyncio.ensure_future(anext(told))
                await asyncio.wait([coming], timeout=max(until - clock(), 0.0) if pieces else None)
                if not coming.done():
                    yield taken()
                    continue
                try:
                    response = coming.result()
                except StopAsyncIteration:
                    break
                finally:
                    coming = None
                if response.type == ResponseType.STREAM:
                    until = until if pieces else clock() + seconds
                    pieces.append(response)
                    continue
                if pieces:
                    yield taken()
                yield response
            if pieces:
                yield taken()
        finally:
            if coming is not None:
                coming.cancel()
                await asyncio.gather(coming, return_exceptions=True)
