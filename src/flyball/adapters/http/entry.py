"""What whoever runs the process calls: `serve_http` until cancelled, or `serving_http` for a block's time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, Protocol

from flyball.adapters.http.api import build_api
from flyball.adapters.http.awaiting import Arriving
from flyball.adapters.http.limits import Limits
from flyball.adapters.http.logs import Log, logging_into
from flyball.adapters.http.mounts import Callers, Mount
from flyball.adapters.http.server import is_loopback, listening, serve
from flyball.adapters.http.tokens import Tokens
from flyball.core.errors import UserError
from flyball.orchestrate.service import Service


class Tenanted(Protocol):
    """The services of all tenants."""

    def __call__(self, tenant: str = "") -> Awaitable[Service]:
        """That of one."""
        ...

    async def drain(self, seconds: float) -> None:
        """Give all that is under way so many seconds."""
        ...


async def serve_http(
    services: Tenanted,
    *,
    host: str = "127.0.0.1",
    port: int = 8000,
    tokens: Path | None = None,
    limits: Mapping[str, Any] | None = None,
    grace: float = 10.0,
    log: bool = True,
    log_all: bool = False,
    mounts: Mapping[str, Mount] | None = None,
    arriving: Arriving | None = None,
    begun: Callable[[str], None] = lambda _: None,
) -> None:
    """Serve the API until cancelled.

    Args:
        services: the services of all tenants.
        host: the address to listen at.
        port: the port; any that is free, for 0.
        tokens: the file with the tokens; without it, only this machine is served.
        limits: how much is taken; see `Limits`.
        grace: seconds that what runs has at the end.
        log: whether a line is written for each request, and not only for what went wrong unforeseen.
        log_all: whether what flyball says elsewhere (`logging`) has lines in this log, and nowhere else.
        mounts: what makes other applications behind the same gate, by the beginning of their paths.
        arriving: the models that are fetched while it serves: it listens without them.
        begun: called with the address when requests are taken.

    Raises:
        UserError: it cannot listen there, or anybody could come in.
    """
    known = None if tokens is None else Tokens(tokens)
    if known is None and not is_loopback(host):
        raise UserError(
            f"{host} is not only this machine: make a token (flyball tokens add NAME), and give --tokens"
        )
    if known is not None and not known.list():
        raise UserError(
            f"there are no tokens in {known.path}: nobody could come in (flyball tokens add NAME)"
        )
    await services()
    opened = listening(host, port)
    where = opened.getsockname()
    name = f"[{where[0]}]" if ":" in where[0] else where[0]
    lines = Log(failures_only=not log)
    async with AsyncExitStack() as mounted:
        if log_all:
            mounted.enter_context(logging_into(lines))
        callers = Callers(services)
        apps = {
            path: await mounted.enter_async_context(mount(callers)) for path, mount in (mounts or {}).items()
        }
        api = build_api(
            services,
            tokens=known,
            limits=Limits(**limits) if limits else None,
            log=lines,
            mounts=apps,
            arriving=arriving,
        )

        async def drain() -> None:
            await services.drain(grace)
            await mounted.aclose()  # who waits there has been answered by now

        await serve(
            api,
            opened,
            begun=lambda: begun(f"http://{name}:{where[1]}"),
            drain=drain,
        )


class _Alone:
    """A service that is served by itself: there are no tenants."""

    def __init__(self, service: Service) -> None:
        self._service = service

    async def __call__(self, tenant: str = "") -> Service:
        if tenant:
            raise UserError(f"there is no tenant {tenant!r} here: this server has one journal for all")
        return self._service

    async def drain(self, seconds: float) -> None:
        await self._service.drain(seconds)


@asynccontextmanager
async def serving_http(
    services: Tenanted | Service, *, port: int = 0, log: bool = False, **options: Any
) -> AsyncGenerator[str]:
    """The address of a server that runs in this event loop until the block is left. For tests and notebooks.

    Options are those of `serve_http`; the port is any that is free. A single service has no tenants.

    Raises:
        UserError: it cannot listen there, or anybody could come in.
    """
    tenants = _Alone(services) if isinstance(services, Service) else services
    begun: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    serving = asyncio.ensure_future(
        serve_http(tenants, port=port, log=log, begun=begun.set_result, **options)
    )
    try:
        await asyncio.wait([serving, begun], return_when=asyncio.FIRST_COMPLETED)
        if serving.done():
            serving.result()
        yield await begun
    finally:
        serving.cancel()
        begun.cancel()
        await asyncio.gather(serving, return_exceptions=True)
