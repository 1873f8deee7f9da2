"""A loop and those under it, followed together, as one person is told of them.

Where that one may not approve an answer that waits, those are asked who may, and are there: who speak in the
conversation, and who follows. Each is sent a prompt of their own.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from typing import Any, TypeAlias

from flyball.core.events import ChildStarted, Ended, FlowStarted, SignalReceived, Started
from flyball.core.forms.semstreams import UserResponse
from flyball.inference.stream import StreamEvent
from flyball.orchestrate.channels.address import Address
from flyball.orchestrate.channels.conversations import Conversation
from flyball.orchestrate.channels.telling import Telling, answer_told
from flyball.orchestrate.followed import Recorded
from flyball.orchestrate.matching import begun_as
from flyball.orchestrate.permissions import Permission, Person
from flyball.orchestrate.service import Service

_ROOM = 256
"""Responses that wait until somebody takes them; a loop that says more waits for nobody."""

_LOOKED_BACK = 16
"""How many loops of a thread are looked at for those who speak in it."""

RolesOf: TypeAlias = Callable[[str], tuple[str, ...]]
"""The roles of a person, by their id."""


def no_roles(_: str) -> tuple[str, ...]:
    """None, whoever it is."""
    return ()


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
) -> AsyncGenerator[UserResponse]:
    """What somebody is told of a loop, and of those under it, as it happens, to its end.

    `after`: what events of the loop up to this number say was told before. `till_it_rests`: or until the loop
    waits for somebody. `calls`: also of each tool that the model asks for. `roles_of`: the roles of people,
    beside those that the service's policy gives them; who may not approve is shown no answer that waits for
    it. `follower`: who hears all of this, where that is one person, and perhaps another: if they may not
    approve, nobody is shown such an answer here; if they may, they are asked.
    What hinders following any of them is raised: nothing is left out silently.
    """

    def may(who: Person) -> bool:
        return service.policy.permissions.allow(who, Permission.APPROVE)

    shown = follower is None or may(follower)
    may_approve = shown and may(service.policy.person(address.user_id, roles_of(address.user_id)))
    queue: asyncio.Queue[UserResponse | Exception] = asyncio.Queue(_ROOM)
    tasks: dict[str, asyncio.Task[None]] = {}

    async def take(telling: Telling, one: Recorded | StreamEvent, known: int) -> None:
        new = True
        if isinstance(one, Recorded):
            new = one.number > known
            if isinstance(one.event, ChildStarted) and one.event.loop_id not in tasks:
                begin(one.event.loop_id, Telling(address, within=True, may_approve=may_approve), 0)
        told = telling.take(one)
        if not new:
            return
        if telling.to_review and shown and isinstance(one, Recorded):
            for reviewer in await reviewers():
                await queue.put(telling.review(reviewer))
        for response in told:
            await queue.put(response)

    async def reviewers() -> list[str]:
        """Who may approve, and is there: not the one for whom the loop is."""
        here = await _who_speaks(service, address, loop_id)
        names = [name for name in here if may(service.policy.person(name, roles_of(name)))]
        if follower is not None:
            names.append(follower.user_id)
        return [name for name in dict.fromkeys(names) if name not in ("", address.user_id)]

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

    root = begin(loop_id, Telling(address, calls=calls, may_approve=may_approve), after)
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


async def _who_speaks(service: Service, address: Address, loop_id: str) -> list[str]:
    """Those who said something to a loop, or in the thread that it is of; of a long one, lately."""
    loops = [loop_id]
    if address.thread_id:
        talk = Conversation(address.conversation)
        length = await talk.length(service.journal)
        loops += [talk.loop_id(number) for number in range(max(length - _LOOKED_BACK, 0) + 1, length + 1)]
    people: list[str] = []
    for one in dict.fromkeys(loops):
        for event in await service.journal.read(one):
            if isinstance(event, SignalReceived):
                people.append(event.signal.by)
            elif isinstance(event, Started | FlowStarted):
                begun_for = Address.of_loop(event.metadata)
                people += [begun_for.user_id] if begun_for is not None else []
    return people


async def whom_to_tell(service: Service, loop_id: str) -> Address | None:
    """Whom a loop is for; None where it is for nobody, or stands under another, which is followed."""
    events = await service.journal.read(loop_id)
    first = events[0] if events else None
    if not isinstance(first, Started | FlowStarted) or first.parent_loop_id:
        return None
    return Address.of_loop((begun_as(events) if isinstance(first, Started) else first).metadata)
