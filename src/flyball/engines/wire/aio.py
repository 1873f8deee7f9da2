"""The transport that is on the network: aiohttp."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextvars import ContextVar
from types import TracebackType
from typing import TYPE_CHECKING, cast
from urllib.parse import urlsplit

import aiohttp
from msgspec import Struct

from flyball.core.errors import FlyballError, UserError
from flyball.engines.wire.failures import network_failure
from flyball.engines.wire.pools import Keeper, keeper
from flyball.engines.wire.transport import Call

if TYPE_CHECKING:
    from aiohttp.client_proto import ResponseHandler
    from aiohttp.tracing import Trace

_BUFFER = 256 * 1024
_USER_AGENT = "flyball"


_BROKEN = (aiohttp.ClientError, OSError, TimeoutError, ValueError)
"""What a connection that breaks raises."""
_STALE = (aiohttp.ServerDisconnectedError, aiohttp.ClientOSError, ConnectionError)
_NEVER_MADE = (aiohttp.ClientConnectorError, aiohttp.ClientProxyConnectionError)


class Timeouts(Struct, frozen=True):
    """How long a server may take, in seconds; None is for ever. How long a whole run may take is the run's.

    `connect`: to take the connection. `idle`: between two pieces of its reply, and before the first: models
    think for minutes.
    """

    connect: float | None = 10.0
    idle: float | None = 600.0

    def __post_init__(self) -> None:
        for name in self.__struct_fields__:
            value = getattr(self, name)
            if value is not None and (
                isinstance(value, bool) or not isinstance(value, int | float) or not value > 0
            ):
                raise UserError(f"{name}={value!r}: a time-out is a number of seconds above 0, or None")


_TIMEOUTS = Timeouts()


class AioTransport:
    """One pool of connections for each event loop that it is used in, closed with the loop, or by `aclose`.

    Proxies are taken from the environment (HTTPS_PROXY, NO_PROXY, …) unless one is named.
    """

    def __init__(
        self,
        *,
        timeouts: Timeouts = _TIMEOUTS,
        connections: int = 256,
        proxy: str | None = None,
        server: str = "the server",
    ) -> None:
        """Make one; nothing is opened yet.

        Args:
            timeouts: how long the server may take.
            connections: at once; calls beyond that wait for one.
            proxy: its address; where it is None, the environment decides.
            server: what errors call the other side.
        """
        self._timeouts = timeouts
        self._connections = connections
        self._proxy = proxy
        self._server = server
        self._proxies: dict[str, str | None] = {}
        self._pools: dict[asyncio.AbstractEventLoop, _Pool] = {}

    def open(self, call: Call) -> _Exchange:
        """See `Transport.open`."""
        return _Exchange(self, call)

    def __del__(self) -> None:
        for pool in list(self._pools.values()):
            pool.keeper.drop(pool.session)

    async def aclose(self) -> None:
        """See `Transport.aclose`."""
        pool = self._pools.pop(asyncio.get_running_loop(), None)
        if pool is not None:
            for exchange in list(pool.under_way):
                exchange.break_off()
            await pool.keeper.close(pool.session)

    @property
    def server(self) -> str:
        """What errors call the other side."""
        return self._server

    def proxy_for(self, url: str) -> str | None:
        """The proxy through which an address is reached."""
        if self._proxy is not None:
            return self._proxy
        if url not in self._proxies:
            # The environment is looked at once for an address: it takes as long as the rest of a call.
            self._proxies[url] = _environment_proxy(url)
        return self._proxies[url]

    async def pool(self) -> _Pool:
        """The pool of the event loop that runs."""
        loop = asyncio.get_running_loop()
        pool = self._pools.get(loop)
        if pool is None or pool.session.closed:
            # Nothing in here waits for anybody, so no second call can come in between and make another; other
            # threads, with loops of their own, can.
            for other in [one for one in list(self._pools) if one.is_closed()]:
                self._pools.pop(other, None)
            kept = await keeper()
            pool = self._pools[loop] = _Pool(kept.opened(self._session), kept, set())
        return pool

    def _session(self) -> aiohttp.ClientSession:
        timeouts = self._timeouts
        return aiohttp.ClientSession(
            connector=_Connector(limit=self._connections, keepalive_timeout=30),
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=timeouts.connect, sock_read=timeouts.idle),
            cookie_jar=aiohttp.DummyCookieJar(),
            headers={"User-Agent": _USER_AGENT},
            read_bufsize=_BUFFER,
        )


class _Pool(Struct, frozen=True):
    session: aiohttp.ClientSession
    keeper: Keeper
    under_way: set[_Exchange]


_new: ContextVar[bool] = ContextVar("new", default=False)
"""Whether the connection of the call that a task makes was made for it, and not kept from an earlier one."""


class _Connector(aiohttp.TCPConnector):
    """Connections that tell whether they are new. aiohttp's own way to tell costs a tenth of a call."""

    async def _create_connection(
        self,
        req: aiohttp.ClientRequest,
        traces: list[Trace],
        timeout: aiohttp.ClientTimeout,  # noqa: ASYNC109 - aiohttp's
    ) -> ResponseHandler:
        _new.set(True)
        return await super()._create_connection(req, traces, timeout)


class _Exchange:
    __slots__ = ("_call", "_pool", "_response", "_transport")

    def __init__(self, transport: AioTransport, call: Call) -> None:
        self._transport = transport
        self._call = call
        self._pool: _Pool | None = None
        self._response: aiohttp.ClientResponse | None = None

    async def __aenter__(self) -> _Reply:
        try:
            try:
                self._response = await self._sent()
            except _STALE as error:
                if isinstance(error, _NEVER_MADE) or _new.get():
                    # On a new connection the server may have begun to work, and to count: whether it is asked
                    # again is not for us to say.
                    raise
                # A connection that was kept for the next call, and that the server had ended meanwhile: what
                # nobody has begun to answer is sent once more.
                self._response = await self._sent()
        except BaseException as error:
            self._left()
            if isinstance(error, _BROKEN):
                raise self.failure(error) from error
            raise
        return _Reply(self._response, self)

    async def _sent(self) -> aiohttp.ClientResponse:
        transport, call = self._transport, self._call
        _new.set(False)
        pool = self._pool = await transport.pool()
        pool.under_way.add(self)
        return await pool.session.request(
            call.method,
            call.url,
            data=call.body,
            headers=call.headers,
            allow_redirects=False,
            proxy=transport.proxy_for(call.url),
        )

    def break_off(self) -> None:
        """Let who reads the reply know that no more will come: closing the connection alone does not."""
        if self._response is not None:
            self._response.content.set_exception(aiohttp.ClientConnectionError("it was closed here"))

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._left()
        response = self._response
        if response is not None:
            # A body that was read to its end has given its connection back already; any other is not worth
            # to be read, and closing tells the server that nobody listens.
            response.close()

    def _left(self) -> None:
        if self._pool is not None:
            self._pool.under_way.discard(self)

    def failure(self, error: BaseException) -> FlyballError:
        return network_failure(error, self._transport.server, self._call.url)


class _Reply:
    __slots__ = ("_exchange", "_response", "headers", "status")

    def __init__(self, response: aiohttp.ClientResponse, exchange: _Exchange) -> None:
        self._response = response
        self._exchange = exchange
        self.status: int = response.status
        self.headers = cast("Mapping[str, str]", response.headers)

    async def read(self) -> bytes:
        try:
            return await self._response.read()
        except _BROKEN as error:
            raise self._exchange.failure(error) from error

    async def pieces(self) -> AsyncIterator[bytes]:
        try:
            async for piece in self._response.content.iter_any():
                yield piece
        except _BROKEN as error:
            raise self._exchange.failure(error) from error


def _environment_proxy(url: str) -> str | None:
    from urllib.request import getproxies, proxy_bypass

    parts = urlsplit(url)
    proxies = getproxies()
    found = proxies.get(parts.scheme) or proxies.get("all")
    return None if not found or proxy_bypass(parts.hostname or "") else found
