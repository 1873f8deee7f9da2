"""Streamable HTTP: the SDK's transport over a client that adds headers, bounds answers, keeps faults apart.

A connection that cannot be made, or breaks, would end the SDK's whole session, and all calls with it. Here it
is an answer to the one request that it was for, which says so.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import httpx2
from mcp.client.streamable_http import streamable_http_client
from mcp_types import CONNECTION_CLOSED

from flyball.core.errors import UserError
from flyball.tool.mcp.exchange import EXCHANGE, Exchange
from flyball.tool.mcp.place import Service, check_headers

if TYPE_CHECKING:
    from mcp.client._transport import TransportStreams

MAX_MESSAGE = 16 * 1024 * 1024
"""Bytes of one message of a server; a larger one is refused."""
_TO_CONNECT = 30.0
_TO_LEAVE = 2.0
_NEVER_SENT = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout, httpx2.UnsupportedProtocol)


class Refused(httpx2.StreamError):
    """A body that cannot be read to its end; the SDK makes it the failure of the request that it answers."""

    def __init__(self, message: str) -> None:
        super().__init__(message)


class Client(httpx2.AsyncClient):
    """A client of one service."""

    def __init__(self, service: Service) -> None:
        # How long an answer may take is the call's to say: its time-out cancels it.
        super().__init__(timeout=httpx2.Timeout(_TO_CONNECT, read=None))
        self._service = service

    async def send(self, request: httpx2.Request, **how: Any) -> httpx2.Response:
        """Send a request with its headers. Never raises what the network does: that is an answer, too."""
        exchange = EXCHANGE.get()
        noted = exchange if request.method == "POST" else None
        try:
            request.headers.update(check_headers(self._service.headers))
        except UserError as error:
            if noted is not None:
                noted.fault, noted.unsent = error.message, True
            return _broken(request, error.message)
        if exchange is not None:
            request.headers.update(exchange.headers)
        if request.method == "DELETE":
            request.extensions = {**request.extensions, "timeout": httpx2.Timeout(_TO_LEAVE).as_dict()}
        try:
            response = await super().send(request, **how)
        except httpx2.TransportError as error:
            fault = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
            if noted is not None:
                noted.fault, noted.unsent = fault, isinstance(error, _NEVER_SENT)
            return _broken(request, fault)
        if noted is not None:
            noted.status, noted.fault, noted.unsent = response.status_code, "", False
        is_json = response.headers.get("content-type", "").lower().startswith("application/json")
        response.stream = _Body(response.stream, noted, MAX_MESSAGE if is_json else None)
        return response


class _Body(httpx2.AsyncByteStream):
    """A body that is noted to have broken off where it does, and is bounded where it is one message."""

    def __init__(self, inner: Any, noted: Exchange | None, limit: int | None) -> None:
        self._inner = inner
        self._noted = noted
        self._limit = limit

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = 0
        try:
            async for chunk in self._inner:
                size += len(chunk)
                if self._limit is not None and size > self._limit:
                    raise Refused(f"the answer has more than {self._limit:,} bytes")
                yield chunk
        except httpx2.TransportError as error:
            self._note(f"the answer broke off: {type(error).__name__}")
            raise Refused(str(error)) from error
        if self._limit is None:
            # Who has found an answer among the events stops before their end.
            self._note("the answer broke off")

    def _note(self, fault: str) -> None:
        if self._noted is not None:
            self._noted.fault = fault

    async def aclose(self) -> None:
        """Let go of the connection."""
        await self._inner.aclose()


def _broken(request: httpx2.Request, fault: str) -> httpx2.Response:
    error = {"code": CONNECTION_CLOSED, "message": fault}
    return httpx2.Response(503, json={"jsonrpc": "2.0", "id": None, "error": error}, request=request)


@asynccontextmanager
async def over_http(service: Service) -> AsyncGenerator[TransportStreams]:
    """The streams of a connection to a service; at the end its session is given up, and the client closed."""
    async with (
        Client(service) as client,
        streamable_http_client(service.url, http_client=client, max_sse_event_size=MAX_MESSAGE) as streams,
    ):
        yield streams
