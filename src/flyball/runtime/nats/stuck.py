"""Noticing that a loop waits for work that was put aside: whoever waits for the loop would wait for ever."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, TypeVar

from flyball.core.errors import FlyballError, WorkPutAside
from flyball.orchestrate.journal import Journal
from flyball.orchestrate.machine import effect_id, fold, inference_owed
from flyball.orchestrate.machines import is_flow
from flyball.orchestrate.state import State
from flyball.runtime.nats.bus import Bus
from flyball.runtime.nats.dead import UNREADABLE, Dead, dead_letters, told
from flyball.runtime.nats.subjects import (
    dead_subjects,
    execute_subject,
    request_subject,
    response_subject,
    result_subject,
)

if TYPE_CHECKING:
    from nats.aio.msg import Msg

T = TypeVar("T")
_SIGNALS, _DEAD = "agent.signal.", "fly.dead."
_OF_WORKERS = ("agent.request.", "tool.execute.", "agent.response.", "tool.result.")
"""What subjects begin with of what model and tools workers put aside, or say."""


class Stuck:
    """Whether a loop can go on, as far as it is known."""

    def __init__(self, loop_id: str, journal: Journal) -> None:
        self._loop_id = loop_id
        self._journal = journal
        self._found: asyncio.Future[FlyballError] = asyncio.get_running_loop().create_future()

    async def notice(self, dead: Dead) -> None:
        """Something was put aside that is said to be the loop's. It counts if the loop waits for it."""
        if self._found.done() or dead.code == UNREADABLE:
            return
        try:
            held_up = await self._is_held_up_by(dead.subject)
        except FlyballError as error:
            why: FlyballError = error  # it is for who waits, who could not read the journal either
        else:
            why = self._error(dead)
            if not held_up:
                return
        if not self._found.done():
            self._found.set_result(why)

    async def _is_held_up_by(self, subject: str) -> bool:
        """Whether the loop cannot go on without what is put aside of a subject.

        A signal holds up nothing. Model and tools workers may put calls aside, and say what has to be, of
        whatever loop they name: that counts if the loop waits for it. All else comes from who keeps loops.
        """
        if subject.startswith(_SIGNALS):
            return False
        if not subject.startswith(_OF_WORKERS):
            return True
        events = await self._journal.read(self._loop_id)
        if not events or is_flow(events):
            return False
        state = fold(events, f"loop {self._loop_id}")
        if state.at == "done":
            return False
        return subject in _waited_for(state)

    async def heard(self, message: Msg) -> None:
        """See `notice`. What came from elsewhere is nothing to us: somebody has had it sent here."""
        if message.subject.startswith(_DEAD) and (dead := told(message, message.subject)) is not None:
            await self.notice(dead)

    async def unless(self, awaited: Awaitable[T]) -> T:
        """Wait for something, which may never come if the loop is stuck.

        Raises:
            WorkPutAside: it is.
        """
        task = asyncio.ensure_future(awaited)
        try:
            await asyncio.wait([task, self._found], return_when=asyncio.FIRST_COMPLETED)
            if task.done():
                return task.result()
            raise self._found.result()
        finally:
            if not task.done():
                task.cancel()
                await asyncio.wait([task])

    def _error(self, dead: Dead) -> WorkPutAside:
        return WorkPutAside(
            f"loop {self._loop_id!r} waits for {dead.shown}, which was put aside: {dead.code}: "
            f"{dead.reason}: "
            "put that right, give it out again (flyball dead --requeue), and wait for the loop again",
            loop_id=self._loop_id,
            subject=dead.shown,
            reason=dead.reason,
        )


def _waited_for(state: State) -> set[str]:
    """The subjects of what a loop has asked for and not had, and of the answers to it."""
    waited: set[str] = set()
    if (infer := inference_owed(state)) is not None:
        waited |= {request_subject(state.loop_id), response_subject(infer.id)}
    for index, call in enumerate(state.calls):
        if state.results[index] is None:
            answered = (effect_id(state, "execute", index), call.id)
            waited |= {execute_subject(call.name), *map(result_subject, answered)}
    return waited


@asynccontextmanager
async def noticing(bus: Bus, journal: Journal, loop_id: str) -> AsyncGenerator[Stuck]:
    """Notice what is put aside of a loop, and what was, until the block is left."""
    stuck, connection = Stuck(loop_id, journal), bus.connection
    subscription = await connection.subscribe(dead_subjects(loop_id), stuck.heard)
    try:
        for _, dead in await dead_letters(bus, loop_id):
            await stuck.notice(dead)
        yield stuck
    finally:
        if not connection.closed:
            await subscription.unsubscribe()
