"""Audience: who is told of a loop and of those under it, and what each of them may see.

Where the one whom a loop is for may not approve an answer that waits, those are asked who may, and are there:
who speak in the conversation, and who follows. Each is sent a prompt of their own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from flyball.core.events import FlowStarted, SignalReceived, Started
from flyball.core.forms.semstreams import UserResponse
from flyball.inference.stream import StreamEvent
from flyball.orchestrate.channels.address import Address
from flyball.orchestrate.channels.conversations import Conversation
from flyball.orchestrate.channels.telling import Telling
from flyball.orchestrate.followed import Recorded
from flyball.orchestrate.permissions import Permission, Person
from flyball.orchestrate.service import Service

_LOOKED_BACK = 16
"""How many loops of a thread are looked at for those who speak in it."""

RolesOf: TypeAlias = Callable[[str], tuple[str, ...]]
"""The roles of a person, by their id."""


def no_roles(_: str) -> tuple[str, ...]:
    """None, whoever it is."""
    return ()


class Audience:
    """Those who are told of a loop that was begun for somebody at a channel.

    `roles_of`: the roles of people, beside those that the service's policy gives them. `follower`: who hears
    all of this, where that is one person, and perhaps another: if they may not approve, nobody is shown an
    answer here that waits; if they may, they are asked.
    """

    def __init__(
        self, service: Service, address: Address, loop_id: str, roles_of: RolesOf, follower: Person | None
    ) -> None:
        self._service = service
        self._address = address
        self._loop_id = loop_id
        self._roles_of = roles_of
        self._follower = follower
        self._shown = follower is None or self._may(follower)
        self._may_approve = self._shown and self._may(self._person(address.user_id))
        self._since = 0.0
        """When the loop began: nothing under it happened before, whatever somebody's clock says."""

    def telling(self, *, within: bool = False, calls: bool = False) -> Telling:
        """What these are told of the loop, or (`within`) of one under it."""
        return Telling(
            self._address, within=within, calls=calls, may_approve=self._may_approve, since=self._since
        )

    async def told(
        self, telling: Telling, one: Recorded | StreamEvent, *, new: bool = True
    ) -> list[UserResponse]:
        """What they are told of something that has happened; nothing of what is not new.

        Raises:
            JournalCorrupt: an event does not fit.
            JournalFailure: it cannot be looked who is there.
        """
        if isinstance(one, Recorded) and one.number == 1:
            self._since = self._since or one.event.at
        told = telling.take(one)
        if not new:
            return []
        if telling.to_review and self._shown and isinstance(one, Recorded):
            told = [*[telling.review(reviewer) for reviewer in await self._reviewers()], *told]
        return told

    async def _reviewers(self) -> list[str]:
        """Who may approve, and is there: not the one for whom the loop is."""
        here = await self._who_speaks()
        names = [name for name in here if self._may(self._person(name))]
        if self._follower is not None:
            names.append(self._follower.user_id)
        return [name for name in dict.fromkeys(names) if name not in ("", self._address.user_id)]

    async def _who_speaks(self) -> list[str]:
        """Those who said something to the loop, or in the thread that it is of; of a long one, lately."""
        loops, journal = [self._loop_id], self._service.journal
        if self._address.thread_id:
            talk = Conversation(self._address.conversation)
            length = await talk.length(journal)
            loops += [talk.loop_id(one) for one in range(max(length - _LOOKED_BACK, 0) + 1, length + 1)]
        people: list[str] = []
        for one in dict.fromkeys(loops):
            for event in await journal.read(one):
                if isinstance(event, SignalReceived):
                    people.append(event.signal.by)
                elif isinstance(event, Started | FlowStarted):
                    begun_for = Address.of_loop(event.metadata)
                    people += [begun_for.user_id] if begun_for is not None else []
        return people

    def _person(self, user_id: str) -> Person:
        return self._service.policy.person(user_id, self._roles_of(user_id))

    def _may(self, who: Person) -> bool:
        return self._service.policy.permissions.allow(who, Permission.APPROVE)
