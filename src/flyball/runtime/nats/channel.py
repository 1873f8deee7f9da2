"""NatsChannel: a place where people talk, over NATS, for whoever brings what they say and answers them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator

from flyball.core.forms.semstreams import UserMessage, UserResponse, UserSignal
from flyball.orchestrate.channels.identity import identity_of
from flyball.runtime.nats.blobs import Blobs
from flyball.runtime.nats.bus import Bus
from flyball.runtime.nats.connection import Connection
from flyball.runtime.nats.entry import BLOB
from flyball.runtime.nats.fetching import after as messages_after
from flyball.runtime.nats.fetching import header, sequence
from flyball.runtime.nats.messages.frame import not_for, read_payload, write
from flyball.runtime.nats.subjects import message_subject, user_response_subject
from flyball.runtime.nats.wire import AGENT, WIRE_BLOBS

_LOOK = 5.0
"""Seconds after which is looked for responses, in case nobody said that there are."""


class NatsChannel:
    """One channel. What is said is on the wire when `say` returns, and is taken once, however often it is.

    Args:
        bus: the wire, set up.
        channel_type: what kind of place it is (slack, web, …).
        channel_id: which of them.
    """

    def __init__(self, bus: Bus, channel_type: str, channel_id: str) -> None:
        self.channel_type = channel_type
        self.channel_id = channel_id
        self._bus = bus

    @property
    def _connection(self) -> Connection:
        return self._bus.connection

    async def say(self, said: UserMessage | UserSignal) -> None:
        """Say something.

        Raises:
            InvalidMessage: it does not say who says what, and where.
            JournalUnreachable: the server does not answer.
        """
        said.validate()
        name = said.signal_id if isinstance(said, UserSignal) else said.message_id
        where = message_subject(self.channel_type, self.channel_id)
        await self._bus.publish(where, write(said, name), f"{where}/{identity_of(said)}")

    async def responses(self, after: int = 0) -> AsyncGenerator[tuple[int, UserResponse]]:
        """What people here are answered, from a place on, for ever; each with its place, to go on after."""
        where = user_response_subject(self.channel_type, self.channel_id)
        blobs = Blobs(self._connection, 1, WIRE_BLOBS)
        stirred = asyncio.Event()

        async def stir(_: object) -> None:
            stirred.set()

        subscription = await self._connection.subscribe(where, stir)
        try:
            while True:
                stirred.clear()
                for message in await messages_after(self._connection, AGENT, where, after + 1):
                    after, blob = sequence(message), header(message, BLOB)
                    data = await blobs.get(blob, where) if blob else message.data
                    payload = read_payload(data, where).payload
                    if not isinstance(payload, UserResponse):
                        raise not_for(where, payload, "a UserResponse")
                    yield after, payload
                try:
                    async with asyncio.timeout(_LOOK):
                        await stirred.wait()
                except TimeoutError:
                    continue
        finally:
            if not self._connection.closed:
                await subscription.unsubscribe()
