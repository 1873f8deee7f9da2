"""A process's workers: some of loop, model and tools, on one connection, until they are told to stop."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from types import TracebackType
from typing import Any, Literal, Self, TypeAlias

from flyball.core.errors import UserError
from flyball.orchestrate.agent import Agent
from flyball.runtime.nats.bus import Bus
from flyball.runtime.nats.deliveries import Postman
from flyball.runtime.nats.journal import NatsJournal
from flyball.runtime.nats.workers.agents import Agents
from flyball.runtime.nats.workers.loop import LoopWorker
from flyball.runtime.nats.workers.model import ModelWorker
from flyball.runtime.nats.workers.tools import ToolsWorker

Kind: TypeAlias = Literal["loop", "model", "tools"]
ALL: tuple[Kind, ...] = ("loop", "model", "tools")


class Crew:
    """Works inside the block. What is under way at its end is given to others, at once."""

    def __init__(
        self,
        journal: NatsJournal,
        agents: Iterable[Agent[Any, Any]],
        serve: Sequence[Kind] = ALL,
        *,
        deps: Any = None,
        hold: float = 30.0,
    ) -> None:
        """Nothing happens yet. `hold`: seconds after which a dead worker's work is given to another.

        Raises:
            UserError: there is no such kind of worker, or two agents have one name.
        """
        for kind in serve:
            if kind not in ALL:
                raise UserError(f"there is no worker {kind!r}; there are {', '.join(ALL)}")
        self._journal = journal
        self._bus = bus = Bus(journal.connection, journal.layout.replicas)
        known = Agents(agents, deps)
        made = {
            "loop": lambda: LoopWorker(bus, journal, known, hold=hold),
            "model": lambda: ModelWorker(bus, known, hold=hold),
            "tools": lambda: ToolsWorker(bus, known, hold=hold),
        }
        self._workers: list[LoopWorker | ModelWorker | ToolsWorker] = [made[kind]() for kind in serve]
        self._tasks: list[asyncio.Task[None]] = []

    async def __aenter__(self) -> Self:
        await self._bus.set_up()
        for worker in self._workers:
            if not isinstance(worker, LoopWorker):
                await worker.stoppable.listen()
            for post in worker.posts:
                postman = Postman(self._journal.connection, post, worker.work, self._bus.put_aside)
                self._tasks.append(asyncio.create_task(postman.run(), name=f"flyball {post.name}"))
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def work(self) -> None:
        """Work until one of the workers fails, which none of them should.

        Raises:
            Exception: what it failed with.
        """
        await asyncio.gather(*self._tasks)
