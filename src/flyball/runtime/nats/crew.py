"""A process's workers: some of loop, model, tools, dispatch, on one connection, until told to stop."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from functools import partial
from types import TracebackType
from typing import Any, Self, TypeAlias

from flyball.core.errors import JournalUnreachable, UnknownAgent, UserError
from flyball.orchestrate.agent import Agent
from flyball.orchestrate.channels import Dispatcher
from flyball.orchestrate.permissions import Policy
from flyball.orchestrate.projections import Detail
from flyball.orchestrate.service import Service
from flyball.runtime.nats.bus import Bus
from flyball.runtime.nats.company import Company
from flyball.runtime.nats.dead import put_aside
from flyball.runtime.nats.deliveries import Delivery, Postman, Work
from flyball.runtime.nats.hiring import Hirer, Post
from flyball.runtime.nats.identity import Identity, Role
from flyball.runtime.nats.journal import NatsJournal
from flyball.runtime.nats.runtime import NatsRuntime
from flyball.runtime.nats.synced import check_synced
from flyball.runtime.nats.wire import Kind, hired_for, hired_for_tool
from flyball.runtime.nats.workers.agents import Agents
from flyball.runtime.nats.workers.dispatch import DispatchWorker
from flyball.runtime.nats.workers.loop import LoopWorker
from flyball.runtime.nats.workers.model import ModelWorker
from flyball.runtime.nats.workers.near import Near
from flyball.runtime.nats.workers.projector import Projector
from flyball.runtime.nats.workers.tools import ToolsWorker

_TOLD_AGAIN = 0.5
"""Seconds after which a task that goes on is told again to stop."""
ALL: tuple[Kind, ...] = ("loop", "model", "tools")
"""Those that carry loops on. `dispatch` is for who talks with people, too."""
KINDS: tuple[Kind, ...] = (*ALL, "dispatch")
Worker: TypeAlias = LoopWorker | ModelWorker | ToolsWorker | DispatchWorker


class Crew:
    """Works inside the block. What is under way at its end is given to others, at once."""

    def __init__(
        self,
        journal: NatsJournal,
        agents: Sequence[Agent[Any, Any]],
        serve: Sequence[Kind] = ALL,
        *,
        deps: Any = None,
        hold: float = 30.0,
        nearby: bool = True,
        room: int = 64,
        detail: Detail = "summary",
        dispatch: Mapping[str, Any] | None = None,
    ) -> None:
        """Nothing happens yet. `hold`: seconds after which a dead worker's work is given to another.

        `nearby`: what this process can do for its own loops does not go over the wire. `room`: how many tool
        calls run here at once, of each tool, and besides for loops that are kept here. `detail`: of the
        trajectories that are kept beside the journals. `dispatch`: what `Dispatcher` takes,
        and the `policy`.

        Raises:
            UserError: there is no such kind of worker, this user may not be one, or two agents have one name.
        """
        for kind in serve:
            if kind not in KINDS:
                raise UserError(f"there is no worker {kind!r}; there are {', '.join(KINDS)}")
        self._journal = journal
        check_role(journal.connection.identity, serve)
        self._bus = bus = Bus(journal.connection, journal.layout)
        self._agents = known = Agents(agents, deps)
        self._hold = hold
        home = _Home(journal)
        near = Near(
            ModelWorker(bus, known, hold=hold) if "model" in serve else None,
            ToolsWorker(bus, known, home=home, hold=hold, room=room) if "tools" in serve else None,
        )
        self._projector: Projector | None = None
        self._workers: list[Worker] = [one for one in (near.model, near.tools) if one is not None]
        if "loop" in serve:
            self._projector = projector = Projector(bus, journal, hold=hold, detail=detail)
            near = near if nearby else Near()
            self._workers.append(LoopWorker(bus, journal, known, near=near, projector=projector, hold=hold))
        if "dispatch" in serve:
            self._workers.append(self._dispatching(bus, agents, dispatch or {}, hold))
        self._company = Company()
        self._postmen: list[Postman] = []
        self._tasks: list[asyncio.Task[None]] = []

    def _dispatching(
        self, bus: Bus, agents: Sequence[Agent[Any, Any]], options: Mapping[str, Any], hold: float
    ) -> DispatchWorker:
        service = Service(agents, NatsRuntime(self._journal), policy=options.get("policy", Policy()))
        given = {name: value for name, value in options.items() if name != "policy"}
        return DispatchWorker(
            bus, self._journal, Dispatcher(service, told=bus.told_up_to, **given), hold=hold
        )

    async def __aenter__(self) -> Self:
        await check_synced(self._journal.connection)
        await self._bus.set_up()
        if self._projector is not None:
            # Before any loop is begun: it is told of all that is recorded from now on.
            await self._projector.set_up()
            if self._journal.layout.apart:
                await Hirer(self._journal.connection, self._known_posts()).listen()
            for post in self._projector.posts:
                await self._begin(post, self._projector.work).hire()
        for worker in self._workers:
            if isinstance(worker, ModelWorker | ToolsWorker):
                await worker.stoppable.listen()
            if isinstance(worker, ToolsWorker):
                await worker.detaching.listen()
            for post in (*worker.posts, *self._forwarded_to(worker)):
                self._begin(post, self._routed(worker))
        return self

    def _begin(self, post: Post, work: Work) -> Postman:
        bus, company = self._bus, self._company
        postman = Postman(
            self._journal.connection,
            post,
            work,
            partial(put_aside, bus),
            tally=bus,
            company=company,
        )
        self._postmen.append(postman)
        self._tasks.append(asyncio.create_task(postman.run(), name=f"flyball {post.name}"))
        return postman

    def _forwarded_to(self, worker: Worker) -> list[Post]:
        """The posts of what others had not the agent for."""
        if isinstance(worker, DispatchWorker):
            return []  # who names an agent that is not here is told so
        kind, room = worker.kind, worker.posts[0].room if worker.posts else 1
        where = [(name, *self._bus.wire.for_agent(kind, name)) for name in self._agents.names]
        return [
            Post(stream, hired_for(kind, name), (subject,), room, self._hold)
            for name, stream, subject in where
        ]

    def _known_posts(self) -> frozenset[str]:
        """The names of the consumers that model and tools workers with the same agents have."""
        tools = [hired_for_tool(name) for name in self._agents.tools()]
        kinds: tuple[Kind, ...] = ("model", "tools")
        return frozenset([*tools, *[hired_for(kind, name) for name in self._agents.names for kind in kinds]])

    def _routed(self, worker: Worker) -> Work:
        """A worker's work; what is for an agent that is not here is given to those who have it."""

        async def work(delivery: Delivery) -> None:
            try:
                await worker.work(delivery)
            except UnknownAgent as error:
                if delivery.forwarded or not await self._bus.forward(
                    worker.kind, str(error.details["agent"]), delivery
                ):
                    raise
            else:
                await self._bus.done_with(delivery)

        return work

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            await self._leave()
        finally:
            await let_go(self._tasks)
            if self._projector is not None:
                await self._projector.aclose()

    async def _leave(self) -> None:
        """Ask for no more, and take what is on its way, where the server cannot tell when nothing is.

        One server that we speak to itself knows at once that we hear no more. Another one of its cluster, or
        one that looks from another account, does not.
        """
        connection = self._journal.connection
        elsewhere = connection.is_of_a_cluster or connection.identity.role in (Role.MODEL, Role.TOOLS)
        if elsewhere and not connection.closed:
            await asyncio.gather(*[postman.leave() for postman in self._postmen])

    async def work(self) -> None:
        """Work until one of the workers fails, which none of them should.

        Raises:
            PermissionDenied: the server lets this user in no more.
            Exception: what it failed with.
        """
        try:
            await asyncio.gather(*self._tasks)
        except JournalUnreachable as error:
            if (refused := self._journal.connection.refused) is not None:
                raise refused from error
            raise


def check_role(who: Identity, serve: Sequence[Kind]) -> None:
    """Do nothing where a user may be such workers, as far as its credentials say.

    Raises:
        UserError: it may not.
    """
    if who.role in (None, Role.ALL):
        return
    if other := [kind for kind in serve if kind != who.role]:
        raise UserError(
            f"{who} is no worker of the kind {', '.join(other)}: serve only {who.role}, or use credentials "
            "of the role all"
            if who.role != Role.API
            else f"{who} is no worker at all: use credentials of the role {' or '.join((*serve, Role.ALL))}"
        )


async def let_go(tasks: Sequence[asyncio.Task[None]]) -> None:
    """Cancel tasks until they have ended.

    Once may not be enough: before Python 3.12 `asyncio.wait_for`, which the client library is built on, loses
    a cancellation that comes at the moment of an answer.
    """
    left = set(tasks)
    while left:
        for task in left:
            task.cancel()
        _, left = await asyncio.wait(left, timeout=_TOLD_AGAIN)
    await asyncio.gather(*tasks, return_exceptions=True)


class _Home:
    """Where loops go that the agents' own functions begin: to the workers, like all others."""

    calls_again = True
    """See `Home.calls_again`: who waits would hold a place that the loop may need, and a message."""

    def __init__(self, journal: NatsJournal) -> None:
        self._journal = journal

    def child_options(self) -> Mapping[str, Any]:
        """See `Home.child_options`."""
        return {"runtime": NatsRuntime(self._journal)}
