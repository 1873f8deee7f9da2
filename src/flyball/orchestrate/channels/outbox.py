"""What is told on channels, of all the loops that were begun there, wherever they were begun.

Nothing is kept for it: it is worked out from the journals. Who comes again says what they were told last, and
is told what came after that, the oldest first, in the same order each time (`follower`). What is over is told
once. Of loops that are not, all that is not in passing is told again, under the same ids: nothing is missed,
and who remembers ids is told nothing twice. What is told again, or in passing, is no place to come back to.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator
from contextlib import aclosing, suppress

from flyball.core.errors import JournalCorrupt, JournalFailure, JournalTooNew
from flyball.core.forms.semstreams import UserResponse
from flyball.orchestrate.beginnings import Beginnings
from flyball.orchestrate.channels.audience import RolesOf, no_roles
from flyball.orchestrate.channels.follower import Follower, Told, root_of
from flyball.orchestrate.channels.following import whom_to_tell
from flyball.orchestrate.permissions import Person
from flyball.orchestrate.service import Service

_log = logging.getLogger("flyball.channels")
_LOOK = 0.5
"""Seconds after which is looked for loops that have begun."""


class Outbox:
    """What is told on the channels of a service. New loops are looked for once for all who follow."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._followers: set[Follower] = set()
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
            InvalidRequest: `last` is the id of nothing that was told on the channel.
            FlyballError: a loop cannot be followed. Who comes again with the last id misses nothing.
        """
        async with aclosing(self.follow_from(channel, last, user_id, roles_of, follower)) as told:
            async for one in told:
                yield one.response

    async def follow_from(
        self,
        channel: str,
        last: str = "",
        user_id: str = "",
        roles_of: RolesOf = no_roles,
        follower: Person | None = None,
    ) -> AsyncGenerator[Told]:
        """`follow`, for who hands out places to come back to: those of what `is_place`, each after the last.

        Raises:
            InvalidRequest, FlyballError: see `follow`.
        """
        if follower is None and user_id:
            follower = self._service.policy.person(user_id, roles_of(user_id))
        here = Follower(self._service, channel, user_id, roles_of, follower)
        self._followers.add(here)
        try:
            async with self._starting:  # of two who come at once, one has it begin
                if self._looking is None or self._looking.done():
                    beginnings = Beginnings(self._service.journal)
                    await beginnings.skip()
                    self._looking = asyncio.create_task(self._look(beginnings))
            async with aclosing(here.caught_up(last)) as before:
                async for one in before:
                    yield one
            while True:
                told = await here.queue.get()
                if isinstance(told, Exception):
                    raise told
                yield here.placed(told)
        finally:
            self._followers.discard(here)
            self._rest()
            await here.aclose()

    async def check(self, channel: str, last: str) -> None:
        """See that one can come back to a channel with the id of a response.

        Raises:
            InvalidRequest: it is the id of nothing that was told there.
            JournalFailure: the journal cannot be asked now.
        """
        if last:
            await root_of(self._service, channel, last)

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
