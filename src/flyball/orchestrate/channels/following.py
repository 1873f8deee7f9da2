"""A loop and those under it, followed together, as one person is told of them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing

from flyball.core.events import ChildStarted, Ended
from flyball.core.forms.semstreams import UserResponse
from flyball.inference.stream import StreamEvent
from flyball.orchestrate.channels.address import Address
from flyball.orchestrate.channels.telling import Telling
from flyball.orchestrate.followed import Recorded
from flyball.orchestrate.service import Service

_ROOM = 256
"""Responses that wait until somebody takes them; a loop that says more waits for nobody."""


async def told_of(
    service: Service, address: Address, loop_id: str, after: int = 0, *, till_it_rests: bool = False
) -> AsyncGenerator[UserResponse]:
    """What somebody is told of a loop, and of those under it, as it happens, to its end.

    `after`: what events of the loop up to this number say was told before. `till_it_rests`: or until the loop
    waits for somebody.
    """
    queue: asyncio.Queue[UserResponse] = asyncio.Queue(_ROOM)
    tasks: dict[str, asyncio.Task[None]] = {}

    async def take(telling: Telling, one: Recorded | StreamEvent, known: int) -> None:
        new = True
        if isinstance(one, Recorded):
            new = one.number > known
            if isinstance(one.event, ChildStarted) and one.event.loop_id not in tasks:
                begin(one.event.loop_id, Telling(address, within=True), 0)
        for response in telling.take(one):
            if new:
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

    def begin(name: str, telling: Telling, known: int) -> asyncio.Task[None]:
        task = tasks[name] = asyncio.create_task(follow(name, telling, known), name=f"told of {name}")
        return task

    root = begin(loop_id, Telling(address), after)
    try:
        while not (root.done() and queue.empty()):
            coming = asyncio.ensure_future(queue.get())
            await asyncio.wait([coming, root], return_when=asyncio.FIRST_COMPLETED)
            if coming.done():
                yield coming.result()
            else:
                coming.cancel()
        root.result()
    finally:
        for task in tasks.values():
            task.cancel()
        await asyncio.gather(*tasks.values(), return_exceptions=True)
