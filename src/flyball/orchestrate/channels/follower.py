"""Follower: somebody who is told what is told on a channel: what was before, then what happens.

caught_up   what they were not told yet of the loops that there are, the oldest first (`retelling`)
queue       what happens from then on, in these and in those that begin
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from heapq import heappop, heappush

from msgspec import Struct
from msgspec.structs import replace

from flyball.core.errors import InvalidRequest
from flyball.core.events import FlowStarted, Stage, Started
from flyball.core.forms.semstreams import UserResponse
from flyball.orchestrate.catalogue import LoopQuery
from flyball.orchestrate.channels.address import Address
from flyball.orchestrate.channels.audience import Audience, RolesOf
from flyball.orchestrate.channels.following import told_of, whom_to_tell
from flyball.orchestrate.channels.retelling import Place, Retold, comes_back_to, place_of, retold
from flyball.orchestrate.channels.telling import answer_told
from flyball.orchestrate.permissions import Permission, Person
from flyball.orchestrate.service import Service

_PAGE = 200
"""Loops that are asked for at once."""
_ROOM = 256
_DECIDED = 300.0
"""Seconds within which a loop whose outcome is decided has its end recorded: until then it is not over."""
_OVER = frozenset([str(stage) for stage in Stage if stage.is_terminal])


class Told(Struct, frozen=True):
    """Something that is told on a channel; `is_place`: who comes back after it is told what comes then."""

    response: UserResponse
    is_place: bool


class Follower:
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
        self._last: Place | None = None
        """The last place to come back to: what is told after it and is no later is none."""
        self.queue: asyncio.Queue[UserResponse | Exception] = asyncio.Queue(_ROOM)

    def begun(self, loop_id: str, address: Address | None) -> None:
        """A loop has begun, for somebody who is perhaps here."""
        if address is None or address.channel != self._channel or loop_id in self._known:
            return
        if self._whose in ("", address.user_id):
            self._known.add(loop_id)
            self._follow(loop_id, address, {})

    def placed(self, response: UserResponse) -> Told:
        """Something that is told as it happens: a place to come back to, if nothing later was told before."""
        place, last = comes_back_to(response), self._last
        if place is None or (last is not None and place < replace(last, which=0)):
            return Told(response, is_place=False)
        self._last = place
        return Told(response, is_place=True)

    # What was before

    async def caught_up(self, last: str) -> AsyncGenerator[Told]:
        """What was told of loops that began before, as far as it was not; then these are followed.

        Raises:
            InvalidRequest: `last` is the id of nothing that was told here.
            FlyballError: a loop cannot be followed.
        """
        after = self._last = await self._place(last) if last else None
        loops = await self._loops(after)
        going_on: list[tuple[str, Address, Mapping[str, int]]] = []
        heap: list[tuple[Place, UserResponse]] = []
        while loops or heap:
            # A loop is read when it is its turn: nothing is told of it that was before it began.
            while loops and (not heap or loops[0][0] <= heap[0][0].at):
                _, loop_id, was_open = loops.popleft()
                address = await whom_to_tell(self._service, loop_id)
                if address is None:
                    continue
                read = await self._retold(loop_id, address)
                if not read.over:
                    going_on.append((loop_id, address, read.known))
                for place, response in read.told:
                    is_past = not was_open if after is None else place <= after
                    if not (read.over and is_past) and self._user_id in ("", response.user_id):
                        heappush(heap, (place, response))
            if heap:
                place, response = heappop(heap)
                is_place = after is None or place > after
                self._last = place if is_place else self._last
                if number := answer_told(response):
                    self._service.note_told(response.in_reply_to, response.user_id, number)
                yield Told(response, is_place)
        for loop_id, address, known in going_on:
            self._follow(loop_id, address, known)

    async def _loops(self, after: Place | None) -> deque[tuple[float, str, bool]]:
        """The loops of which there may be something to tell, the oldest first.

        Each with when it began, and whether it is surely not over.
        """
        found: list[tuple[float, str, bool]] = []
        since = (time.time() if after is None else after.at) - _DECIDED
        query = LoopQuery(channel=self._channel, user_id=self._whose, roots_only=True, limit=_PAGE)
        while True:
            page = await self._service.loops(query)
            for one in page.loops:
                is_open = one.stage not in _OVER
                if (is_open or one.updated_at >= since) and one.loop_id not in self._known:
                    self._known.add(one.loop_id)
                    found.append((one.started_at, one.loop_id, is_open))
            if not page.next:
                return deque(sorted(found))
            query = replace(query, cursor=page.next)

    async def _place(self, last: str) -> Place:
        """The place of the response with this id.

        Raises:
            InvalidRequest: nothing that was told here has it.
        """
        loop_id, address = await root_of(self._service, self._channel, last)
        place = (await self._retold(loop_id, address)).place(last)
        if place is None:
            raise unknown(last)
        return place

    async def _retold(self, loop_id: str, address: Address) -> Retold:
        audience = Audience(self._service, address, loop_id, self._roles_of, self._who)
        return await retold(self._service.journal, audience, loop_id)

    # What happens now

    def _follow(self, loop_id: str, address: Address, known: Mapping[str, int]) -> None:
        task = asyncio.create_task(self._tell(loop_id, address, known))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _tell(self, loop_id: str, address: Address, known: Mapping[str, int]) -> None:
        try:
            told = told_of(
                self._service,
                address,
                loop_id,
                known.get(loop_id, 0),
                roles_of=self._roles_of,
                follower=self._who,
                below=known,
            )
            async with aclosing(told):
                async for response in told:
                    if self._user_id in ("", response.user_id):
                        await self.queue.put(response)
        except Exception as error:
            await self.queue.put(error)

    async def aclose(self) -> None:
        """Follow nothing any more."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def root_of(service: Service, channel: str, last: str) -> tuple[str, Address]:
    """The loop on a channel that a response with this id tells of, or of one under it; and whom it is for.

    Raises:
        InvalidRequest: there is none.
    """
    loop_id, _ = place_of(last)
    seen: set[str] = set()
    while loop_id and loop_id not in seen:
        seen.add(loop_id)
        events = await service.journal.read(loop_id)
        if not events or not isinstance(first := events[0], Started | FlowStarted):
            break
        if not first.parent_loop_id:
            address = await whom_to_tell(service, loop_id)
            if address is None or address.channel != channel:
                break
            return loop_id, address
        loop_id = first.parent_loop_id
    raise unknown(last)


def unknown(last: str) -> InvalidRequest:
    """The error for an id of which nobody knows what came after it."""
    return InvalidRequest(
        f"{last[:200]!r} is the id of no response on this channel: come back with the id of one that was "
        "told here, or with none, to begin with what is not over",
        field="Last-Event-ID",
    )
