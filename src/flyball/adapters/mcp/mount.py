"""The server as an application behind an HTTP server: the protocol's streamable HTTP, for many tenants.

Whoever mounts it has let the request in, and keeps bodies within limits. Each tenant's service has sessions
of its own: nobody finds those of another.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable, MutableMapping
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, Protocol, TypeAlias

from mcp import MCPError
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings
from mcp_types import INTERNAL_ERROR
from starlette.responses import Response

from flyball.adapters.mcp.client import Caller
from flyball.adapters.mcp.offering import Offer
from flyball.adapters.mcp.running import Desk
from flyball.adapters.mcp.server import Context, mcp_server
from flyball.orchestrate.permissions import Permission, Person
from flyball.orchestrate.service import Service

Scope: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send: TypeAlias = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App: TypeAlias = Callable[[Scope, Receive, Send], Awaitable[None]]

_MOMENT = 1.0
"""Seconds in which answers must have been sent, at the end."""
HOW = "POST /api/loops/{loop_id}/signals, or the client of the API"


_IDLE = 300.0
"""Seconds after which a session that nobody uses is forgotten; clients begin another one by themselves."""


class Callers(Protocol):
    """Who calls, by the scope of a request."""

    async def __call__(self, scope: Scope, /) -> Service:
        """The caller's service.

        Raises:
            FlyballError: it may not have agents run.
        """
        ...

    def allows(self, scope: Scope, service: Service, right: str, /) -> bool:
        """Whether the caller may do something besides: `read` what is recorded, or `signal` runs."""
        ...

    def person(self, scope: Scope, service: Service, /) -> Person | None:
        """The person who calls, who may do what their roles allow; None of a program."""
        ...

    def name(self, scope: Scope, /) -> str:
        """Who it is known as."""
        ...


@asynccontextmanager
async def mcp_mount(callers: Callers, *, tools: bool = False, how: str = HOW) -> AsyncGenerator[App]:
    """The application, for as long as the block lasts. At its end, runs that are waited for are left alone.

    Args:
        callers: who calls, and for which service.
        tools: whether the agents' tools are offered by themselves, too.
        how: how a person approves a call who cannot be asked, with `{loop_id}` in it.
    """
    sessions = Sessions(callers, tools=tools, how=how)
    try:
        yield sessions
    finally:
        await sessions.end()


class Sessions:
    """The application: each request goes to the sessions of its caller's service."""

    def __init__(self, callers: Callers, *, tools: bool, how: str) -> None:
        self._callers = callers
        self._tools = tools
        self._how = how
        self._kept: dict[Service, asyncio.Future[StreamableHTTPSessionManager]] = {}
        self._keeping: set[asyncio.Task[None]] = set()
        self._calling: set[asyncio.Task[Any] | None] = set()
        self._over = asyncio.Event()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """ASGI.

        Raises:
            FlyballError: the caller may not have agents run.
        """
        service = await self._callers(scope)
        if scope["path"].removeprefix(scope.get("root_path", "")).strip("/"):
            await Response(status_code=404)(scope, receive, send)
            return
        manager = await asyncio.shield(self._of(service))
        calling = asyncio.current_task() if scope["method"] == "POST" else None
        if calling is not None:
            self._calling.add(calling)
        try:
            await manager.handle_request(scope, receive, send)
        finally:
            self._calling.discard(calling)

    def _of(self, service: Service) -> asyncio.Future[StreamableHTTPSessionManager]:
        kept = self._kept.get(service)
        if kept is None:
            kept = self._kept[service] = asyncio.get_running_loop().create_future()
            keeping = asyncio.create_task(self._keep(service, kept))
            self._keeping.add(keeping)
            keeping.add_done_callback(self._keeping.discard)
        return kept

    async def _keep(self, service: Service, kept: asyncio.Future[StreamableHTTPSessionManager]) -> None:
        """Have sessions for a service, until the end. They begin and end in one task, as they must."""
        offer = Offer([system.agent for system in service.systems.values()], tools=self._tools)
        caller = partial(self._caller, service)
        server = mcp_server(Desk(service, self._how, self._over.is_set), offer, caller)
        manager = StreamableHTTPSessionManager(
            server,
            # Whoever mounts this has looked at hosts, origins and lengths.
            security_settings=TransportSecuritySettings(enable_dns_rebinding_protection=False),
            max_request_body_size=sys.maxsize,
            session_idle_timeout=_IDLE,
        )
        async with manager.run():
            kept.set_result(manager)
            await self._over.wait()

    def _caller(self, service: Service, context: Context) -> Caller:
        if context.request is None:
            raise MCPError(INTERNAL_ERROR, "the request has no scope")
        scope, callers = context.request.scope, self._callers
        person = callers.person(scope, service)
        decides = person is None or service.policy.permissions.allow(person, Permission.APPROVE)
        return Caller(
            callers.allows(scope, service, "read"),
            callers.allows(scope, service, "signal") and decides,
            callers.name(scope),
            person,
        )

    async def end(self) -> None:
        """End all sessions, once those have their answers who wait for what is over by now."""
        if calling := [task for task in self._calling if task is not None]:
            await asyncio.wait(calling, timeout=_MOMENT)
        self._over.set()
        await asyncio.gather(*self._keeping, return_exceptions=True)
