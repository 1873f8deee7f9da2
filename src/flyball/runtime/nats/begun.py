"""Begun: which loops there are on a server, in the order in which they began.

JetStream lists nothing in order over several streams, and reads no stream backwards: all beginnings have to
be read once. What was read is kept (a name and a time each), and only what was stored since is asked for: a
stream only grows at its end, so nothing is missed, also where a copy answers that is behind. Loops that an
operator removed from a stream are still listed, without events.
"""

from __future__ import annotations

import asyncio
from bisect import bisect_left
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from flyball.core.errors import LoopNotFound
from flyball.runtime.nats.entry import decode_entry
from flyball.runtime.nats.fetching import after, header, sequence
from flyball.runtime.nats.naming import beginnings, journal_stream

if TYPE_CHECKING:
    from nats.aio.msg import Msg

    from flyball.runtime.nats.connection import Connection
    from flyball.runtime.nats.layout import Layout


class Begun:
    """The loops of all partitions, the newest last."""

    def __init__(
        self,
        connection: Connection,
        layout: Layout,
        entry: Callable[[Msg], Awaitable[tuple[bytes, str]]],
    ) -> None:
        """Nothing is read yet; `entry` gives a message's entry and its place."""
        self._connection = connection
        self._entry = entry
        self._salt = layout.salt
        self._read = [0] * layout.partitions
        """The place of the last beginning that was read, in each partition."""
        self._when: dict[str, str] = {}
        self._order: list[tuple[str, str]] = []
        """When each began, and its id."""
        self._reading = asyncio.Lock()

    async def newest(self, before: str, limit: int | None) -> list[str]:
        """See `Journal.loops`.

        Raises:
            LoopNotFound: there is no loop `before`.
            JournalFailure: the streams cannot be read.
        """
        async with self._reading:
            await self._learn()
        end = len(self._order)
        if before:
            if before not in self._when:
                raise LoopNotFound(f"there is no loop {before!r} on the server", loop_id=before)
            end = bisect_left(self._order, (self._when[before], before))
        first = 0 if limit is None else max(end - limit, 0)
        return [loop_id for _, loop_id in reversed(self._order[first:end])]

    async def _learn(self) -> None:
        """Read what has begun since."""
        for number, last in enumerate(self._read):
            stream = journal_stream(number)
            for message in await after(self._connection, stream, beginnings(number, self._salt), last + 1):
                data, place = await self._entry(message)
                when = _nanoseconds(header(message, "Nats-Time-Stamp"))
                self._when[decode_entry(data, place).loop_id] = when
                self._read[number] = sequence(message)
        if len(self._when) > len(self._order):
            self._order = sorted([(when, loop_id) for loop_id, when in self._when.items()])


def _nanoseconds(stamp: str) -> str:
    """A time of the server's (RFC 3339, UTC, as many digits as it needs) in a form that sorts."""
    whole, _, fraction = stamp.rstrip("Z").partition(".")
    return f"{whole}.{fraction:<09}"
