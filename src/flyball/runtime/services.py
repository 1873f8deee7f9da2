"""The services of tenants: a journal of its own for each, so that none can see what is another's.

    SQLite      the file of no tenant in particular; beside it, tenants/<name>/ with one for each
    NATS        a connection for each, with credentials of its own: an account there (`flyball tenants`)

A service is made when it is first asked for, and kept until all are closed.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from flyball.core.errors import FlyballError, JournalCorrupt, JournalTooNew, UnknownTenant
from flyball.core.events import Ended, FlowStarted, Started
from flyball.orchestrate.agent import Agent
from flyball.orchestrate.beginnings import Beginnings
from flyball.orchestrate.claims import is_claimed
from flyball.orchestrate.dead_letters import DeadLetter
from flyball.orchestrate.local import LocalRuntime
from flyball.orchestrate.served import served_by
from flyball.orchestrate.service import Service
from flyball.runtime.nowhere import Nowhere
from flyball.runtime.places import make_private
from flyball.runtime.sqlite import SQLiteJournal

if TYPE_CHECKING:
    from flyball.runtime.nats import NatsOptions, NatsRuntime

_log = logging.getLogger("flyball.loops")

_LOOK = 10.0
"""Seconds after which is looked again for loops that nobody drives."""
_LONGEST = 600.0
"""Seconds after which a loop is gone on with that is left again and again."""
_MOMENT = 0.1
"""Seconds for which a loop must have been nobody's."""
_AT_ONCE = 200
"""How many loops are looked at before others have their turn."""


class Tenants:
    """The services, by tenant; each is made once. The one of no tenant in particular has no name."""

    def __init__(
        self,
        open_one: Callable[[str], Awaitable[OpenService]],
        known: Callable[[], Sequence[str]] = lambda: (),
        *,
        lenient: bool = False,
    ) -> None:
        """`known` gives the tenants that have been here before, or come to another server meanwhile.

        `lenient`: that one of them cannot be served keeps nobody from the others.
        """
        self._lenient = lenient
        self._open_one = open_one
        self._known = known
        self._opening: asyncio.Task[None] | None = None
        self._open: dict[str, asyncio.Task[OpenService]] = {}

    async def __call__(self, tenant: str = "") -> Service:
        """The service of a tenant.

        Raises:
            FlyballError: its journal cannot be had.
        """
        opening = self._open.get(tenant)
        if opening is None or _is_over(opening):
            opening = self._open[tenant] = asyncio.ensure_future(self._open_one(tenant))
        if not opening.done():
            await asyncio.shield(opening)
        return opening.result().service

    async def open_known(self) -> None:
        """Open the services of those who have been here before, so that what they left is gone on with.

        And later those of tenants that have come to another server, which may leave something, too.
        """
        known = self._known()
        opened = await asyncio.gather(*[self(tenant) for tenant in known], return_exceptions=True)
        for tenant, one in zip(known, opened, strict=True):
            if isinstance(one, BaseException):
                if not self._lenient or not isinstance(one, FlyballError):
                    raise one
                _log.warning("the journal of the tenant %s cannot be had: %s", tenant, one)
        if self._opening is None:
            self._opening = asyncio.create_task(self._open_others())

    async def _open_others(self) -> None:
        while True:
            await asyncio.sleep(_LOOK)
            for tenant in self._known():
                try:
                    await self(tenant)
                except FlyballError as error:
                    _log.warning("the journal of the tenant %s cannot be had: %s", tenant, error)

    async def drain(self, seconds: float) -> None:
        """Give all that is under way so many seconds; see `Service.drain`."""
        await asyncio.gather(*[one.service.drain(seconds) for one in await self._opened()])

    async def aclose(self) -> None:
        """Stop everything, as it is recorded."""
        if self._opening is not None:
            self._opening.cancel()
            await asyncio.gather(self._opening, return_exceptions=True)
        for one in await self._opened():
            await one.aclose()
        self._open.clear()

    async def _opened(self) -> list[OpenService]:
        found = await asyncio.gather(*self._open.values(), return_exceptions=True)
        return [one for one in found if not isinstance(one, BaseException)]


def _is_over(opening: asyncio.Task[OpenService]) -> bool:
    """Whether a service could not be opened, or what it stands on was closed by others."""
    if not opening.done():
        return False
    return opening.cancelled() or opening.exception() is not None or not opening.result().is_open()


class OpenService:
    """A service, and how what it stands on is closed; `is_open` tells whether somebody else has closed it."""

    def __init__(
        self,
        service: Service,
        close: Callable[[], Awaitable[None]],
        is_open: Callable[[], bool] = lambda: True,
    ) -> None:
        self.service = service
        self.is_open = is_open
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
        recovering = asyncio.create_task(Recovery(service).run())

        async def close() -> None:
            recovering.cancel()
            await asyncio.gather(recovering, return_exceptions=True)
            await runtime.aclose()
            await opened.close()

        return OpenService(service, close)

    def known() -> list[str]:
        folders = (journal.parent / "tenants").glob("*")
        return [folder.name for folder in folders if (folder / journal.name).exists()]

    return Tenants(open_one, known)


def nats_services(
    agents: Sequence[Agent[Any, Any]],
    options: NatsOptions | None,
    tenants: Mapping[str, NatsOptions] | None = None,
    **more: Any,
) -> Tenants:
    """Services whose loops workers carry on, over NATS. Each tenant has a connection of its own.

    Without `options`, tenants are served, and nobody else.
    """
    known: Mapping[str, NatsOptions] = {} if tenants is None else tenants

    async def open_one(tenant: str) -> OpenService:
        from flyball.runtime.nats import NatsRuntime

        way_in = known.get(tenant) if tenant else options
        if way_in is None and not tenant:
            runtime = LocalRuntime(Nowhere(anybody))
            return OpenService(Service(agents, runtime, **more), runtime.aclose)
        if way_in is None:
            raise UnknownTenant(
                f"the tenant {tenant!r} has no credentials here: make its account (flyball tenants add "
                f"{tenant}), and put its api.creds into the folder of --tenants",
                tenant=tenant,
            )
        runtime = await NatsRuntime.open(way_in)
        service = Service(agents, runtime, dead=NatsDeadLetters(runtime), **more)
        return OpenService(service, runtime.aclose, lambda: not runtime.connection.closed)

    async def anybody() -> None:
        """Look whether any of the tenants can be served."""
        found = await asyncio.gather(*[_ready(opened, tenant) for tenant in known], return_exceptions=True)
        failed = [one for one in found if isinstance(one, BaseException)]
        if failed and len(failed) == len(found):
            raise failed[0]

    opened = Tenants(open_one, lambda: list(known), lenient=True)
    return opened


async def _ready(tenants: Tenants, tenant: str) -> None:
    await (await tenants(tenant)).ready()


class NatsDeadLetters:
    """What was put aside on a NATS server. See `DeadLetters`."""

    def __init__(self, runtime: NatsRuntime) -> None:
        self._runtime = runtime

    async def list(self) -> Sequence[DeadLetter]:
        """See `DeadLetters.list`."""
        from flyball.runtime.nats.dead import dead_letters

        return [
            DeadLetter(number, dead.shown, dead.code, dead.reason, dead.at, dead.times)
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

    async def drop(self, number: int) -> bool:
        """See `DeadLetters.drop`."""
        from flyball.runtime.nats.dead import dead_letters, drop

        known = number in [known for known, _ in await dead_letters(self._runtime.bus)]
        if known:
            await drop(self._runtime.bus, number)
        return known


class Recovery:
    """Goes on with the loops that a service has begun and left unfinished, and nobody drives.

    `look` looks at all that has come since it last did, and at what was not over then. What somebody drives
    is not read, and what was over is never read again. One that cannot be gone on with (its agent is missing,
    its time is up) or not be read (it is damaged, or a newer flyball has written to it) stays as it is, keeps
    no other from being gone on with, and is tried and told of again, after longer and longer pauses.
    """

    def __init__(self, service: Service) -> None:
        self._service = service
        self._beginnings = Beginnings(service.journal)
        self._open: dict[str, int] = {}
        """The loops that may not be over: how often each was gone on with, or was told to be unreadable."""
        self._until: dict[str, float] = {}
        """When one may be gone on with, or told to be unreadable, again."""

    async def run(self) -> None:
        """Look at once, and again and again, whatever comes of it."""
        while True:
            try:
                await self.look()
            except Exception as error:
                told = "it is not known whether there are loops to go on with: %s"
                _log.warning(told, error, exc_info=not isinstance(error, FlyballError))
            await asyncio.sleep(_LOOK)

    async def look(self) -> list[str]:
        """Go on with what was left; the ids.

        Raises:
            JournalFailure: the journal cannot be asked.
        """
        journal, now = self._service.journal, time.monotonic()
        for loop_id in await self._beginnings.new():
            self._open.setdefault(loop_id, 0)
            self._beginnings.seen(loop_id)
        left: list[str] = []
        for number, loop_id in enumerate(list(self._open)):
            if number % _AT_ONCE == 0:
                await asyncio.sleep(0)
            if is_claimed(journal, loop_id):
                continue
            its_time = self._until.get(loop_id, 0.0) <= now
            try:
                if not await self._is_unfinished(loop_id):
                    del self._open[loop_id]
                    self._until.pop(loop_id, None)
                elif its_time:
                    left.append(loop_id)
            except (JournalCorrupt, JournalTooNew) as error:
                if its_time:
                    self._wait_longer(loop_id)
                    _log.warning("it is not known whether loop %s was left unfinished: %s", loop_id, error)
        if left:
            await asyncio.sleep(_MOMENT)  # who has just taken one over has its claim by then
        left = [loop_id for loop_id in left if not is_claimed(journal, loop_id)]
        for loop_id in left:
            await self._go_on(loop_id)
        return left

    async def _go_on(self, loop_id: str) -> None:
        self._wait_longer(loop_id)
        try:
            await self._service.resume(loop_id)
        except Exception as error:  # an agent is anybody's code: what it raises is no other loop's fault
            told = "loop %s was left unfinished, and is not gone on with: %s"
            _log.warning(told, loop_id, error, exc_info=not isinstance(error, FlyballError))

    def _wait_longer(self, loop_id: str) -> None:
        """Leave a loop alone for some time, and for longer the next time."""
        self._open[loop_id] += 1
        self._until[loop_id] = time.monotonic() + min(_LOOK * 2 ** self._open[loop_id], _LONGEST)

    async def _is_unfinished(self, loop_id: str) -> bool:
        """Whether a loop is one that a service has begun, and not over."""
        journal = self._service.journal
        length = (await journal.sizes((loop_id,)))[0]
        last = await journal.read(loop_id, max(0, length - 1))
        return bool(last) and not isinstance(last[-1], Ended) and _is_ours((await journal.read(loop_id))[0])


def _is_ours(first: Any) -> bool:
    """Whether a loop was begun by a service, and not under another loop."""
    begun = isinstance(first, Started | FlowStarted) and not first.parent_loop_id
    return begun and bool(served_by(first.metadata))
