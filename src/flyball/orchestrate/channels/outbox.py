"""What is told on channels, of all the loops that were begun there, wherever they were begun.

Nothing is kept for it: it is worked out from the journals. Who comes again says what they were told last, and
goes on after that. Of loops that are not over, all that is not in passing is told again, under the same ids:
nothing is missed, and who remembers ids is told nothing twice.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing, suppress

from msgspec.structs import replace

from flyball.core.errors import FlyballError, LoopNotFound
from flyball.core.events import FlowStarted, Stage, Started
from flyball.core.forms.semstreams import UserResponse
from flyball.orchestrate.catalogue import LoopQuery
from flyball.orchestrate.channels.address import Address
from flyball.orchestrate.channels.following import told_of
from flyball.orchestrate.service import Service

_LOOK = 0.5
"""Seconds after which is looked for loops that have begun."""
_AT_ONCE = 50
"""Loops that are asked for at once."""
_PAGES = 5
"""Pages of the catalogue in which loops are looked for that began before somebody came."""
_ROOM = 256
_OVER = frozenset([str(stage) for stage in Stage if stage.is_terminal])


class Outbox:
    """What is told on the channels of a service. New loops are looked for once for all who follow."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._followers: set[_Follower] = set()
        self._looking: asyncio.Task[None] | None = None
        self._stirred = asyncio.Event()
        self._newest = ""

    def stir(self) -> None:
        """Look now: a loop has begun."""
        self._stirred.set()

    async def follow(self, channel: str, last: str = "", user_id: str = "") -> AsyncGenerator[UserResponse]:
        """What is told on a channel (`type/id`), for ever; with `user_id`, to that person alone.

        Begins with what is not over, and, with `last`, the id of a response, with what came after that.
        """
        follower = _Follower(self._service, channel, user_id)
        if not self._followers:
            self._newest = next(iter(await self._service.journal.loops("", 1)), "")
        self._followers.add(follower)
        if self._looking is None:
            self._looking = asyncio.create_task(self._look())
        try:
            await follower.catch_up(last)
            while True:
                yield await follower.queue.get()
        finally:
            self._followers.discard(follower)
            self._rest()
            await follower.aclose()

    def _rest(self) -> None:
        """Look no longer, if nobody follows."""
        if not self._followers and self._looking is not None:
            self._looking.cancel()
            self._looking = None

    async def _look(self) -> None:
        """Look for loops that begin, and have those tell of them who follow their channels."""
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(_LOOK):
                    await self._stirred.wait()
            self._stirred.clear()
            with suppress(FlyballError):  # a journal that cannot be asked now is asked again
                for loop_id in await self._new():
                    address = await _address(self._service, loop_id)
                    for follower in self._followers:
                        follower.begun(loop_id, address)

    async def _new(self) -> list[str]:
        """The loops that have come since this was last asked, the oldest first."""
        journal, found, before = self._service.journal, list[str](), ""
        while page := await journal.loops(before, _AT_ONCE):
            before = page[-1]
            known = page.index(self._newest) if self._newest in page else None
            found += page[:known]
            if known is not None:
                break
        if found:
            self._newest = found[0]
        return found[::-1]


class _Follower:
    """Somebody who is told what is told on a channel."""

    def __init__(self, service: Service, channel: str, user_id: str) -> None:
        self._service = service
        self._channel = channel
        self._user_id = user_id
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self.queue: asyncio.Queue[UserResponse] = asyncio.Queue(_ROOM)

    def begun(self, loop_id: str, address: Address | None) -> None:
        """A loop has begun, for somebody who is perhaps here."""
        if address is not None and f"{address.channel_type}/{address.channel_id}" == self._channel:
            self._follow(loop_id, address, 0)

    async def catch_up(self, last: str) -> None:
        """Tell of loops that began before, as far as it was not told."""
        after_loop, number = place_of(last)
        since = await self._begun_at(after_loop) if after_loop else None
        query = LoopQuery(channel=self._channel, user_id=self._user_id, roots_only=True, limit=200)
        for _ in range(_PAGES):
            page = await self._service.loops(query)
            for one in page.loops:
                if one.stage not in _OVER or (since is not None and one.started_at >= since):
                    address = await _address(self._service, one.loop_id)
                    if address is not None:
                        self._follow(one.loop_id, address, number if one.loop_id == after_loop else 0)
            if not page.next:
                return
            query = replace(query, cursor=page.next)

    def _follow(self, loop_id: str, address: Address, after: int) -> None:
        if loop_id not in self._tasks and self._user_id in ("", address.user_id):
            self._tasks[loop_id] = asyncio.create_task(self._tell(loop_id, address, after))

    async def _tell(self, loop_id: str, address: Address, after: int) -> None:
        async with aclosing(told_of(self._service, address, loop_id, after)) as told:
            async for response in told:
                await self.queue.put(response)

    async def _begun_at(self, loop_id: str) -> float | None:
        try:
            return (await self._service.summary(loop_id)).started_at
        except LoopNotFound:
            return None

    async def aclose(self) -> None:
        """Follow nothing any more."""
        for task in self._tasks.values():
            task.cancel()
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)


def place_of(name: str) -> tuple[str, int]:
    """The loop and the number of the event that a response tells of, by its id; ("", 0) of any other text."""
    loop_id, _, number = name.rpartition("/")
    for kind in ("/piece", "/call"):
        if loop_id.endswith(kind):
            loop_id, _, number = loop_id.removesuffix(kind).rpartition("/")
            # What comes after a piece, and after one of several prompts, may be of the same event.
            return (loop_id, max(int(number) - 1, 0)) if number.isdecimal() else ("", 0)
    return (loop_id, int(number)) if number.isdecimal() else ("", 0)


async def _address(service: Service, loop_id: str) -> Address | None:
    """Whom a loop is for; None where it is for nobody, or stands under another."""
    events = await service.journal.read(loop_id)
    first = events[0] if events else None
    if not isinstance(first, Started | FlowStarted) or first.parent_loop_id:
        return None
    return Address.of_loop(first.metadata)
