"""A loop and those under it, followed together, as their `Audience` is told of them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from types import MappingProxyType
from typing import Any

from flyball.core.events import ChildStarted, Ended, FlowStarted, Started
from flyball.core.forms.semstreams import UserResponse
from flyball.inference.stream import StreamEvent
from flyball.orchestrate.channels.address import Address
from flyball.orchestrate.channels.audience import Audience, RolesOf, no_roles
from flyball.orchestrate.channels.telling import Telling, answer_told
from flyball.orchestrate.followed import Recorded
from flyball.orchestrate.matching import begun_as
from flyball.orchestrate.permissions import Person
from flyball.orchestrate.service import Service

_ROOM = 256
"""Responses that wait until somebody takes them; a loop that says more waits for nobody."""

_NONE: Mapping[str, int] = MappingProxyType({})


async def told_of(
    service: Service,
    address: Address,
    loop_id: str,
    after: int = 0,
    *,
    till_it_rests: bool = False,
    calls: bool = False,
    roles_of: RolesOf = no_roles,
    follower: Person | None = None,
    below: Mapping[str, int] = _NONE,
) -> AsyncGenerator[UserResponse]:
    """What somebody is told of a loop, and of those under it, as it happens, to its end.

    `after`: what events of the loop up to this number say was told before; `below`: the same of loops under
    it. `till_it_rests`: or until the loop waits for somebody. `calls`: also of each tool that the model asks
    for. `roles_of`, `follower`: see `Audience`.
    What hinders following any of them is raised: nothing is left out silently.
    """
    audience = Audience(service, address, loop_id, roles_of, follower)
    queue: asyncio.Queue[UserResponse | Exception] = asyncio.Queue(_ROOM)
    tasks: dict[str, asyncio.Task[None]] = {}

    async def take(telling: Telling, one: Recorded | StreamEvent, known: int) -> None:
        new = not isinstance(one, Recorded) or one.number > known
        told = await audience.told(telling, one, new=new)
        if isinstance(one, Recorded) and isinstance(one.event, ChildStarted):
            child = one.event.loop_id
            if child not in tasks:
                begin(child, audience.telling(within=True), below.get(child, 0))
        for response in told:
            await queue.put(response)

    async def follow(name: str, telling: Telling, known: int) -> None:
        # What is recorded by now is told without the pieces that it once came in.
        events = await service.journal.read(name)
        for number, event in enumerate(events, 1):
            await take(telling, Recorded(number, event), known)
        if (events and isinstance(events[-1], Ended)) or (name == loop_id and at_rest(telling)):
            return
        async with aclosing(service.follow(name, len(events))) as course:
            async for one in course:
                await take(telling, one, known)
                if name == loop_id and at_rest(telling):
                    return

    def at_rest(telling: Telling) -> bool:
        return till_it_rests and telling.rests

    async def followed(name: str, telling: Telling, known: int) -> None:
        try:
            await follow(name, telling, known)
        except Exception as error:
            await queue.put(error)

    def begin(name: str, telling: Telling, known: int) -> asyncio.Task[None]:
        task = tasks[name] = asyncio.create_task(followed(name, telling, known), name=f"told of {name}")
        return task

    root = begin(loop_id, audience.telling(calls=calls), after)
    coming: asyncio.Future[UserResponse | Exception] | None = None
    try:
        while not (root.done() and queue.empty() and coming is None):
            coming = coming or asyncio.ensure_future(queue.get())
            await asyncio.wait([coming, root], return_when=asyncio.FIRST_COMPLETED)
            if coming.done():
                told, coming = coming.result(), None
                if isinstance(told, Exception):
                    raise told
                if number := answer_told(told):
                    service.note_told(told.in_reply_to, told.user_id, number)
                yield told
            elif root.done():
                break  # and nothing has come
    finally:
        unfinished: list[asyncio.Future[Any]] = [*tasks.values(), *([] if coming is None else [coming])]
        for task in unfinished:
            task.cancel()
        await asyncio.gather(*unfinished, return_exceptions=True)


async def whom_to_tell(service: Service, loop_id: str) -> Address | None:
    """Whom a loop is for; None where it is for nobody, or stands under another, which is followed."""
    events = await service.journal.read(loop_id)
    first = events[0] if events else None
    if not isinstance(first, Started | FlowStarted) or first.parent_loop_id:
        return None
    return Address.of_loop((begun_as(events) if isinstance(first, Started) else first).metadata)
