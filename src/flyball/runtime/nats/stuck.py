"""Noticing that a loop waits for work that was put aside: whoever waits for the loop would wait for ever."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, TypeVar

from flyball.core.errors import WorkPutAside
from flyball.runtime.nats.bus import Bus
from flyball.runtime.nats.dead import Dead, dead_letters, told
from flyball.runtime.nats.subjects import dead_subjects

if TYPE_CHECKING:
    from nats.aio.msg import Msg

T = TypeVar("T")
_SIGNALS, _DEAD = "agent.signal.", "fly.dead."


class Stuck:
    """Whether a loop can go on, as far as it is known."""

    def __init__(self, loop_id: str) -> None:
        self._loop_id = loop_id
        self._found: asyncio.Future[Dead] = asyncio.get_running_loop().create_future()

    def notice(self, dead: Dead) -> None:
        """Something of the loop was put aside. A signal holds up nothing."""
        if not dead.subject.startswith(_SIGNALS) and not self._found.done():
            self._found.set_result(dead)

    async def heard(self, message: Msg) -> None:
        """See `notice`. What came from elsewhere is nothing to us: somebody has had it sent here."""
        if message.subject.startswith(_DEAD) and (dead := told(message)) is not None:
            self.notice(dead)

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
            raise self._error(self._found.result())
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


@asynccontextmanager
async def noticing(bus: Bus, loop_id: str) -> AsyncGenerator[Stuck]:
    """Notice what is put aside of a loop, and what was, until the block is left."""
    stuck, connection = Stuck(loop_id), bus.connection
    subscription = await connection.subscribe(dead_subjects(loop_id), stuck.heard)
    try:
        for _, dead in await dead_letters(bus, loop_id):
            stuck.notice(dead)
        yield stuck
    finally:
        if not connection.closed:
            await subscription.unsubscribe()
