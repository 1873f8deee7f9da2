"""Telling workers that nobody waits for them any more: a word in passing, which may be lost.

Who does not hear it works to the end, and what comes of it is dropped.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterable
from typing import TYPE_CHECKING, Any, TypeVar
from weakref import WeakSet

import msgspec

from flyball.runtime.nats.connection import Connection
from flyball.runtime.nats.naming import token
from flyball.tool.errors import CallContinues

if TYPE_CHECKING:
    from nats.aio.msg import Msg

T = TypeVar("T")
_ALL = "fly.x.*"


async def tell(connection: Connection, loop_id: str, owed: Iterable[str]) -> None:
    """Say which effects of a loop are still owed."""
    await connection.publish(f"fly.x.{token(loop_id)}", msgspec.json.encode(list(owed)))


def _continues(task: asyncio.Task[Any]) -> bool:
    return not task.cancelled() and isinstance(task.exception(), CallContinues)


class LetGo(Exception):  # noqa: N818 - what happened, and no error of anybody's
    """Nobody waits for the work any more."""


class CancelledItself(Exception):  # noqa: N818 - what happened, and no error of ours
    """The work cancelled the task that it ran in."""


class Stoppable:
    """The work of one worker that can be stopped from outside."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._working: dict[str, dict[str, asyncio.Task[Any]]] = {}
        self._told: WeakSet[asyncio.Task[Any]] = WeakSet()

    async def listen(self) -> None:
        """Hear what is owed no longer, until the connection is closed."""
        await self._connection.subscribe(_ALL, self._heard)

    async def run(self, loop_id: str, effect: str, work: Coroutine[Any, Any, T]) -> T:
        """Work on an effect, unless it is told that it is owed no longer.

        One that is being worked on here already is not begun anew: what comes of it is given to both.

        Raises:
            LetGo: it was told so.
            CallContinues: it has begun a loop, and is to be run again when that is over.
            CancelledItself: the work was cancelled, and not by us: then nobody knows of it yet.
        """
        name = token(loop_id) if loop_id else ""
        while (running := self._working.get(name, {}).get(effect)) is not None:
            await asyncio.wait([running])
            if not _continues(running):
                work.close()
                return self._result(running)
            # It waits for a loop, which may have come to its end since it has looked.
            await asyncio.sleep(0)
        task = asyncio.ensure_future(work)
        tasks = self._working.setdefault(name, {})
        tasks[effect] = task
        try:
            await asyncio.wait([task])
            return self._result(task)
        finally:
            if not task.done():
                task.cancel()
                await asyncio.wait([task])
            del tasks[effect]
            if not tasks:
                del self._working[name]

    def _result(self, task: asyncio.Task[T]) -> T:
        if not task.cancelled():
            return task.result()
        raise LetGo if task in self._told else CancelledItself

    async def _heard(self, message: Msg) -> None:
        tasks = self._working.get(message.subject.rpartition(".")[2])
        if tasks:
            owed = msgspec.json.decode(message.data, type=set[str])
            for effect, task in tasks.items():
                if effect not in owed:
                    self._told.add(task)
                    task.cancel()
