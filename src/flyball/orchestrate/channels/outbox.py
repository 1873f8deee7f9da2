"""What is told on channels, of all the loops that were begun there, wherever they were begun.

Nothing is kept for it: it is worked out from the journals. Who comes again says what they were told last, and
goes on after that. Of loops that are not over, all that is not in passing is told again, under the same ids:
nothing is missed, and who remembers ids is told nothing twice.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import AsyncGenerator
from contextlib import aclosing, suppress

from msgspec.structs import replace

from flyball.core.errors import JournalCorrupt, JournalFailure, JournalTooNew
from flyball.core.events import Stage
from flyball.core.forms.semstreams import UserResponse
from flyball.orchestrate.beginnings import Beginnings
from flyball.orchestrate.catalogue import LoopQuery
from flyball.orchestrate.channels.address import Address
from flyball.orchestrate.channels.following import RolesOf, no_roles, told_of, whom_to_tell
from flyball.orchestrate.permissions import Permission, Person
from flyball.orchestrate.service import Service

_log = logging.getLogger("flyball.channels")
_LOOK = 0.5
"""Seconds after which is looked for loops that have begun."""
_PAGE = 200
"""Loops that are asked for at once."""
_ROOM = 256
_ID = re.compile(
    r"(?P<loop>.*?)/(?P<number>[0-9]{1,12})"
    r"(?:/answer|(?P<of_several>/(?:piece|call|asked)/[0-9]+|/answer/[0-9a-f]{12}))?",
    re.DOTALL,
)
"""The ids that `Telling` makes: the loop, the event's number, and which of the things that it has led to."""
_OVER = frozenset([str(stage) for stage in Stage if stage.is_terminal])


class Outbox:
    """What is told on the channels of a service. New loops are looked for once for all who follow."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._followers: set[_Follower] = set()
        self._looking: asyncio.Task[None] | None = None
        self._starting = asyncio.Lock()
        self._stirred = asyncio.Event()

    def stir(self) -> None:
        """Look now: a loop has begun."""
        self._stirred.set()

    async def follow(
        self,
        channel: str,
        last: str = "",
        user_id: str = "",
        roles_of: RolesOf = no_roles,
        follower: Person | None = None,
    ) -> AsyncGenerator[UserResponse]:
        """What is told on a channel (`type/id`), for ever; with `user_id`, to that person alone.

        `roles_of` gives the roles of somebody who is told something, beside those that the policy gives them.
        `follower`: who follows, where it is a person; without one, whoever `user_id` names. Who may approve
        is asked about answers that wait on the channel, also in loops of others; who may not sees none.

        Begins with what is not over, and, with `last`, the id of a response, with what came after that.

        Raises:
            FlyballError: a loop cannot be followed. Who comes again with the last id misses nothing.
        """
        if follower is None and user_id:
            follower = self._service.policy.person(user_id, roles_of(user_id))
        here = _Follower(self._service, channel, user_id, roles_of, follower)
        self._followers.add(here)
        try:
            async with self._starting:  # of two who come at once, one has it begin
                if self._looking is None or self._looking.done():
                    beginnings = Beginnings(self._service.journal)
                    await beginnings.skip()
                    self._looking = asyncio.create_task(self._look(beginnings))
            await here.catch_up(last)
            while True:
                told = await here.queue.get()
                if isinstance(told, Exception):
                    raise told
                yield told
        finally:
            self._followers.discard(here)
            self._rest()
            await here.aclose()

    def _rest(self) -> None:
        """Look no longer, if nobody follows."""
        if not self._followers and self._looking is not None:
            self._looking.cancel()
            self._looking = None

    async def _look(self, beginnings: Beginnings) -> None:
        """Look for loops that begin, and have those tell of them who follow their channels."""
        try:
            while True:
                with suppress(TimeoutError):
                    async with asyncio.timeout(_LOOK):
                        await self._stirred.wait()
                self._stirred.clear()
                with suppress(JournalFailure):  # a journal that cannot be asked now is asked again
                    for loop_id in await beginnings.new():
                        await self._begun(loop_id)
                        beginnings.seen(loop_id)
        except Exception as error:
            for follower in list(self._followers):
                await follower.queue.put(error)

    async def _begun(self, loop_id: str) -> None:
        """Have all tell of a loop whose channel they follow; one that can never be read is left out.

        Raises:
            JournalFailure: the journal cannot be asked now.
        """
        try:
            address = await whom_to_tell(self._service, loop_id)
        except (JournalCorrupt, JournalTooNew) as error:
            _log.warning("loop %s is told on no channel: %s", loop_id, error)
            return
        for follower in self._followers:
            follower.begun(loop_id, address)


class _Follower:
    """Somebody who is told what is told on a channel."""

    def __init__(
        self, service: Service, channel: str, user_id: str, roles_of: RolesOf, who: Person | None
    ) -> None:
        self._roles_of = roles_of
        self._who = who
        reviews = who is not None and service.policy.permissions.allow(who, Permission.APPROVE)
        self._whose = "" if reviews else user_id
        """Whose loops are looked at: of others', who may approve is asked about answers that wait."""
        self._service = service
        self._channel = channel
        self._user_id = user_id
        self._known: set[str] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self.queue: asyncio.Queue[UserResponse | Exception] = asyncio.Queue(_ROOM)

    def begun(self, loop_id: str, address: Address | None) -> None:
        """A loop has begun, for somebody who is perhaps here."""
        if address is not None and address.channel == self._channel:
            self._follow(loop_id, address, 0)

    async def catch_up(self, last: str) -> None:
        """Tell of loops that began before, as far as it was not told."""
        after_loop, number = place_of(last)
        since = await self._at(after_loop, number) if after_loop else None
        query = LoopQuery(channel=self._channel, user_id=self._whose, roots_only=True, limit=_PAGE)
        while True:
            page = await self._service.loops(query)
            for one in page.loops:
                if one.stage not in _OVER or (since is not None and one.updated_at >= since):
                    address = await whom_to_tell(self._service, one.loop_id)
                    if address is not None:
                        self._follow(one.loop_id, address, number if one.loop_id == after_loop else 0)
            if not page.next:
                return
            query = replace(query, cursor=page.next)

    def _follow(self, loop_id: str, address: Address, after: int) -> None:
        if loop_id not in self._known and self._whose in ("", address.user_id):
            self._known.add(loop_id)
            task = asyncio.create_task(self._tell(loop_id, address, after))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _tell(self, loop_id: str, address: Address, after: int) -> None:
        try:
            told = told_of(
                self._service, address, loop_id, after, roles_of=self._roles_of, follower=self._who
            )
            async with aclosing(told):
                async for response in told:
                    if self._user_id in ("", response.user_id):
                        await self.queue.put(response)
        except Exception as error:
            await self.queue.put(error)

    async def _at(self, loop_id: str, number: int) -> float | None:
        """When an event of a loop happened, or the first one after it; None where there is no such loop."""
        events = await self._service.journal.read(loop_id)
        return events[min(max(number, 1), len(events)) - 1].at if events else None

    async def aclose(self) -> None:
        """Follow nothing any more."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def place_of(name: str) -> tuple[str, int]:
    """The loop and the number of the event that a response tells of, by its id; ("", 0) of any other text."""
    found = _ID.fullmatch(name)
    if found is None:
        return "", 0
    # What comes after a piece, after one of several prompts or calls may be of the same event.
    return found["loop"], max(int(found["number"]) - (found["of_several"] is not None), 0)
