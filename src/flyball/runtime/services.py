"""The services of tenants: a journal of its own for each, so that none can see what is another's.

    SQLite      the file of no tenant in particular; beside it, tenants/<name>/ with one for each
    NATS        a connection for each: an account of its own there

A service is made when it is first asked for, and kept until all are closed.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from flyball.core.errors import FlyballError, UserError
from flyball.core.events import Ended, FlowStarted, Started
from flyball.orchestrate.agent import Agent
from flyball.orchestrate.claims import is_claimed
from flyball.orchestrate.dead_letters import DeadLetter
from flyball.orchestrate.local import LocalRuntime
from flyball.orchestrate.served import served_by
from flyball.orchestrate.service import Service
from flyball.runtime.places import make_private
from flyball.runtime.sqlite import SQLiteJournal

if TYPE_CHECKING:
    from flyball.runtime.nats import NatsOptions, NatsRuntime

_log = logging.getLogger("flyball.loops")

_LOOK = 10.0
"""Seconds after which is looked again for loops that nobody drives."""
_TRIES = 3
"""How often a loop is gone on with that is left again and again."""
_RECENT = 1_000
"""How many of the newest loops are looked at then."""
_AT_ONCE = 200
"""How many loops are looked at before others have their turn."""


class Tenants:
    """The services, by tenant; each is made once. The one of no tenant in particular has no name."""

    def __init__(self, open_one: Callable[[str], Awaitable[OpenService]], known: Sequence[str] = ()) -> None:
        """`known` are tenants that have been here before."""
        self._open_one = open_one
        self._known = known
        self._open: dict[str, asyncio.Task[OpenService]] = {}

    async def __call__(self, tenant: str = "") -> Service:
        """The service of a tenant.

        Raises:
            FlyballError: its journal cannot be had.
        """
        opening = self._open.get(tenant)
        if opening is None or (opening.done() and (opening.cancelled() or opening.exception() is not None)):
            opening = self._open[tenant] = asyncio.ensure_future(self._open_one(tenant))
        if not opening.done():
            await asyncio.shield(opening)
        return opening.result().service

    async def open_known(self) -> None:
        """Open the services of those who have been here before, so that what they left is gone on with."""
        for tenant in self._known:
            await self(tenant)

    async def drain(self, seconds: float) -> None:
        """Give all that is under way so many seconds; see `Service.drain`."""
        await asyncio.gather(*[one.service.drain(seconds) for one in await self._opened()])

    async def aclose(self) -> None:
        """Stop everything, as it is recorded."""
        for one in await self._opened():
            await one.aclose()
        self._open.clear()

    async def _opened(self) -> list[OpenService]:
        found = await asyncio.gather(*self._open.values(), return_exceptions=True)
        return [one for one in found if not isinstance(one, BaseException)]


class OpenService:
    """A service, and how what it stands on is closed."""

    def __init__(self, service: Service, close: Callable[[], Awaitable[None]]) -> None:
        self.service = service
        self._close = close

    async def aclose(self) -> None:
        """Close it, and what it stands on."""
        await self.service.aclose()
        await self._close()


def local_services(
    agents: Sequence[Agent[Any, Any]], journal: Path, *, deps: Any = None, **options: Any
) -> Tenants:
    """Services whose loops run in this process, over SQLite.

    Loops that a service has begun and left unfinished are gone on with, unless some process drives them: at
    the beginning, and now and then, since others that serve the same file may end, too.
    """

    async def open_one(tenant: str) -> OpenService:
        file = journal if not tenant else journal.parent / "tenants" / tenant / journal.name
        make_private(file)
        opened = SQLiteJournal(file)
        await opened.__aenter__()
        runtime = LocalRuntime(opened)
        service = Service(agents, runtime, deps=deps, **options)
        recovering = asyncio.create_task(_recover_always(service))

        async def close() -> None:
            recovering.cancel()
            await asyncio.gather(recovering, return_exceptions=True)
            await runtime.aclose()
            await opened.close()

        return OpenService(service, close)

    known = [
        folder.name for folder in (journal.parent / "tenants").glob("*") if (folder / journal.name).exists()
    ]
    return Tenants(open_one, known)


def nats_services(
    agents: Sequence[Agent[Any, Any]],
    options: NatsOptions,
    tenants: Mapping[str, NatsOptions] | None = None,
    **more: Any,
) -> Tenants:
    """Services whose loops workers carry on, over NATS. Each tenant has a connection of its own."""

    async def open_one(tenant: str) -> OpenService:
        from flyball.runtime.nats import NatsRuntime

        known = {"": options, **(tenants or {})}
        if tenant not in known:
            raise UserError(f"the tenant {tenant!r} has no NATS account here: name one for it")
        runtime = await NatsRuntime.open(known[tenant])
        service = Service(agents, runtime, dead=NatsDeadLetters(runtime), **more)
        return OpenService(service, runtime.aclose)

    return Tenants(open_one)


class NatsDeadLetters:
    """What was put aside on a NATS server. See `DeadLetters`."""

    def __init__(self, runtime: NatsRuntime) -> None:
        self._runtime = runtime

    async def list(self) -> Sequence[DeadLetter]:
        """See `DeadLetters.list`."""
        from flyball.runtime.nats.dead import dead_letters

        return [
            DeadLetter(number, dead.subject, dead.code, dead.reason, dead.at, dead.times)
            for number, dead in await dead_letters(self._runtime.bus)
        ]

    async def requeue(self, number: int) -> bool:
        """See `DeadLetters.requeue`."""
        from flyball.runtime.nats.dead import dead_letters, requeue

        for known, dead in await dead_letters(self._runtime.bus):
            if known == number:
                await requeue(self._runtime.bus, number, dead)
                return True
        return False


async def _recover_always(service: Service) -> None:
    """Go on with all that was left, and later with what others leave. What fails again and again is left."""
    tried, most = Counter[str](), None
    while True:
        try:
            hopeless = {loop_id for loop_id, times in tried.items() if times == _TRIES}
            tried.update(await recover(service, hopeless, most))
            most = _RECENT
        except FlyballError as error:
            _log.warning("it is not known whether there are loops to go on with: %s", error)
        await asyncio.sleep(_LOOK)


async def recover(
    service: Service, tried: Collection[str] = frozenset(), most: int | None = None
) -> list[str]:
    """Go on with the loops that a service has begun and left unfinished, and nobody drives; their ids.

    One that cannot be gone on with (its agent is not here, its time is up) stays as it is.

    Args:
        service: whose they are.
        tried: loops to leave alone.
        most: how many are looked at, the newest first; all without it.
    """
    journal, found, seen = service.journal, list[str](), 0
    before = ""
    while (most is None or seen < most) and (page := await journal.loops(before, _AT_ONCE)):
        before, seen = page[-1], seen + len(page)
        for loop_id, length in zip(page, await journal.sizes(page), strict=True):
            if loop_id in tried or is_claimed(journal, loop_id):
                continue
            last = await journal.read(loop_id, max(0, length - 1))
            if not last or isinstance(last[-1], Ended) or not _is_ours((await journal.read(loop_id))[0]):
                continue
            found.append(loop_id)
            try:
                await service.resume(loop_id)
            except FlyballError as error:
                _log.warning("loop %s was left unfinished, and is not gone on with: %s", loop_id, error)
        await asyncio.sleep(0)
    return found


def _is_ours(first: Any) -> bool:
    """Whether a loop was begun by a service, and not under another loop."""
    begun = isinstance(first, Started | FlowStarted) and not first.parent_loop_id
    return begun and bool(served_by(first.metadata))
