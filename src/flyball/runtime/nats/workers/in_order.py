"""What is said on a channel is taken in the order in which it was said, whichever worker takes it.

A stop that overtakes what it is to stop would stop nothing. So each message waits until those before it on
its subject are taken: up to which place they are is noted beside the wire, by whoever took the last one. One
whose worker died is given to another when it has been held for long enough, and is waited for until then. No
longer: what nobody can take keeps nobody from talking.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from flyball.core.errors import FlyballError, JournalFull, JournalTooNew, JournalUnreachable
from flyball.runtime.nats.bus import Bus
from flyball.runtime.nats.deliveries import Delivery
from flyball.runtime.nats.fetching import next_on
from flyball.runtime.nats.wire import AGENT

_log = logging.getLogger("flyball.nats")
_FIRST_PAUSE, _LONGEST_PAUSE = 0.02, 0.5
_BEYOND = 10.0
"""Seconds that are waited beyond those for which a dead worker's message is held."""


class InOrder:
    """Gives each message its turn among those of its subject."""

    def __init__(self, bus: Bus, consumer: str, hold: float) -> None:
        """`consumer`: whose the messages are. `hold`: seconds for which those of a dead worker are held."""
        self._bus = bus
        self._consumer = consumer
        self._patience = hold + _BEYOND
        self._here: dict[str, dict[int, None]] = {}
        """The places of what waits or is being taken here, by its subject."""
        self._moved: dict[str, asyncio.Event] = {}
        """Set when something has come, or was taken."""
        self._known: dict[str, int] = {}
        """Up to which place we know that all was taken."""

    @asynccontextmanager
    async def turn(self, delivery: Delivery) -> AsyncGenerator[None]:
        """Wait until all that was said before on a subject is taken; what comes after waits for the block."""
        subject, place = delivery.subject, delivery.number
        here = self._here.setdefault(subject, {})
        here[place] = None
        self._stir(subject)
        try:
            await self._wait(subject, place, here)
            try:
                yield
            except FlyballError as error:
                if not _comes_again(error):  # it is put aside
                    await self._note(subject, place)
                raise
            await self._note(subject, place)
        finally:
            del here[place]
            self._stir(subject)
            if not here:
                self._here.pop(subject, None)
                self._moved.pop(subject, None)

    async def _wait(self, subject: str, place: int, here: dict[int, None]) -> None:
        until, pause = time.monotonic() + self._patience, _FIRST_PAUSE
        while True:
            moved, first = self._moved[subject], min(here) == place
            if first and await self._is_next(subject, place):
                return
            if time.monotonic() >= until:
                _log.warning("%s: what was said before is not taken: it is not waited for any more", subject)
                return
            try:
                # Of those that are here, the first one asks about others.
                async with asyncio.timeout(pause if first else until - time.monotonic()):
                    await moved.wait()
            except TimeoutError:
                pause = min(pause * 2, _LONGEST_PAUSE)

    async def _is_next(self, subject: str, place: int) -> bool:
        """Whether all before a place on a subject is taken."""
        connection = self._bus.connection
        if (known := self._known.get(subject, 0)) and await _none_between(self._bus, subject, known, place):
            return True
        known = max(await self._bus.taken_up_to(subject), known)
        if not known or not await _none_between(self._bus, subject, known, place):
            # Workers of an earlier release note nothing: what they took is acknowledged.
            info = await connection.patiently(lambda: connection.js.consumer_info(AGENT, self._consumer))
            known = max(known, info.ack_floor.stream_seq if info.ack_floor is not None else 0)
        self._known[subject] = known
        return await _none_between(self._bus, subject, known, place)

    async def _note(self, subject: str, place: int) -> None:
        self._known[subject] = place = max(place, self._known.get(subject, 0))
        await self._bus.note_taken(subject, place)

    def _stir(self, subject: str) -> None:
        moved = self._moved.get(subject)
        self._moved[subject] = asyncio.Event()
        if moved is not None:
            moved.set()


async def _none_between(bus: Bus, subject: str, known: int, place: int) -> bool:
    """Whether nothing was said on a subject after a place and before another."""
    if known >= place - 1:
        return True
    following = await next_on(bus.connection, AGENT, subject, known + 1)
    return following is None or following >= place


def _comes_again(error: FlyballError) -> bool:
    """Whether what failed by an error is given to somebody again."""
    return error.retryable or isinstance(error, JournalUnreachable | JournalFull | JournalTooNew)
