"""Who waits for a loop to grow: they are told by the server when an entry was stored, each loop apart.

What is told may be lost while the connection is away. So a waiter looks for itself too, now and then.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from flyball.runtime.nats.entry import LENGTH
from flyball.runtime.nats.fetching import header
from flyball.runtime.nats.naming import LoopSubjects

if TYPE_CHECKING:
    from nats.aio.msg import Msg

    from flyball.runtime.nats.connection import Connection


class Watch:
    """One loop that somebody waits for: how long it is known to be, and a bell."""

    def __init__(self) -> None:
        self.length = 0
        self.waiters = 0
        self.subscription: asyncio.Task[Any] | None = None
        self._grown = asyncio.Event()

    async def told(self, message: Msg) -> None:
        """An entry was stored."""
        length = header(message, LENGTH)
        if length.isdecimal() and message.subject.startswith("fly.n."):
            self.learn(int(length))

    def learn(self, length: int) -> None:
        """The loop is known to have this many events."""
        if length > self.length:
            self.length = length
            self._grown.set()
            self._grown = asyncio.Event()

    async def grown(self, seconds: float | None) -> None:
        """Wait until it is known to be longer than it was, or for so long."""
        bell = self._grown
        try:
            async with asyncio.timeout(seconds):
                await bell.wait()
        except TimeoutError:
            return


class Watches:
    """The loops that are waited for in one process. A loop has one subscription, however many wait for it."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._watches: dict[str, Watch] = {}

    def learn(self, loop_id: str, length: int) -> None:
        """An append of our own made a loop this long."""
        watch = self._watches.get(loop_id)
        if watch is not None:
            watch.learn(length)

    @asynccontextmanager
    async def watching(self, loop_id: str, subjects: LoopSubjects) -> AsyncGenerator[Watch]:
        """A loop's watch; what happens from the beginning of the block on is told."""
        watch = self._watches.setdefault(loop_id, Watch())
        watch.waiters += 1
        try:
            if watch.subscription is None:
                watch.subscription = asyncio.ensure_future(self._subscribe(subjects, watch))
            # Who is cancelled here leaves it to the others who wait for it.
            await asyncio.shield(watch.subscription)
            yield watch
        finally:
            watch.waiters -= 1
            if not watch.waiters:
                del self._watches[loop_id]
                await self._unsubscribe(watch)

    async def _subscribe(self, subjects: LoopSubjects, watch: Watch) -> Any:
        subscription = await self._connection.subscribe(subjects.noticed, watch.told)
        try:
            # The server has it then: nothing is missed from there on.
            await self._connection.flush(subjects.noticed)
        except BaseException:
            await self._end(subscription)
            raise
        return subscription

    async def _unsubscribe(self, watch: Watch) -> None:
        task = watch.subscription
        assert task is not None
        task.cancel()  # nobody waits for it any more, nor for a server that is away
        await asyncio.wait([task])
        if not task.cancelled() and task.exception() is None:
            await self._end(task.result())

    async def _end(self, subscription: Any) -> None:
        if not self._connection.closed:
            await subscription.unsubscribe()
