"""The socket: uvicorn with the application behind it, until it is told to stop.

The end is graceful: nothing new begins, streams close (who follows comes again, and misses nothing), and
what runs has some seconds to come to its end; what has not by then is parked as it is recorded, and the next
server goes on with it.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable
from contextlib import nullcontext
from ipaddress import ip_address
from typing import Any

from httptools import HttpParserError
from uvicorn import Config, Server
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from flyball.adapters.http.app import Api
from flyball.core.errors import UserError

_HEAD = 64 * 1024
"""Bytes that a request's line and headers may have together."""
_HEAD_SECONDS = 20.0
"""Seconds in which they must have come."""
_IDLE_SECONDS = 75


class PatientProtocol(HttpToolsProtocol):
    """uvicorn's protocol, for who sends too much of a head, or sends it too slowly: they are let go of."""

    _late: asyncio.TimerHandle | None = None
    _size = 0

    def connection_made(self, transport: Any) -> None:
        """Somebody has come."""
        super().connection_made(transport)
        self._hurry()

    def connection_lost(self, exc: Exception | None) -> None:
        """It has gone."""
        self._relax()
        super().connection_lost(exc)

    def on_message_begin(self) -> None:
        """A request begins."""
        self._size = 0
        self._hurry()
        super().on_message_begin()

    def on_url(self, url: bytes) -> None:
        """Some of its line has come."""
        self._count(url)
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        """A header has come."""
        self._count(name, value)
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """All of its head has come."""
        self._relax()
        super().on_headers_complete()

    def _count(self, *parts: bytes) -> None:
        self._size += sum([len(part) + 4 for part in parts])
        if self._size > _HEAD:
            raise HttpParserError("the head is too large")

    def _hurry(self) -> None:
        self._relax()
        self._late = self.loop.call_later(_HEAD_SECONDS, self._give_up)

    def _relax(self) -> None:
        if self._late is not None:
            self._late.cancel()
            self._late = None

    def _give_up(self) -> None:
        if not self.transport.is_closing():
            self.transport.abort()


def is_loopback(host: str) -> bool:
    """Whether an address is one that only this machine reaches."""
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


def listening(host: str, port: int) -> socket.socket:
    """A socket that listens.

    Raises:
        UserError: it cannot be had; the message says why.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # Its protocol is named: only then does asyncio set TCP_NODELAY, without which answers wait for 40 ms.
    opened = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        opened.bind((host, port))
        opened.listen(2048)
    except (OSError, OverflowError) as error:
        opened.close()
        reason = getattr(error, "strerror", None) or error
        raise UserError(f"cannot listen at {host}:{port}: {reason}; choose another --port") from error
    return opened


async def serve(
    api: Api,
    opened: socket.socket,
    *,
    begun: Callable[[], None] = lambda: None,
    drain: Callable[[], Awaitable[None]],
) -> None:
    """Serve until cancelled; then end gracefully.

    Args:
        api: the application.
        opened: the socket.
        begun: called when requests are taken.
        drain: gives what runs its time to end, and parks what has not by then.
    """
    config = Config(
        api,
        http=PatientProtocol,
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_keep_alive=_IDLE_SECONDS,
        timeout_graceful_shutdown=5,
    )
    server = _Quiet(config, begun)
    running = asyncio.ensure_future(server.serve([opened]))
    try:
        await asyncio.shield(running)
    finally:
        await api.end()
        await drain()
        server.should_exit = True
        await running


class _Quiet(Server):
    """uvicorn's server, which leaves signals to whoever runs the process."""

    def __init__(self, config: Config, begun: Callable[[], None]) -> None:
        super().__init__(config)
        self._begun = begun

    def capture_signals(self) -> Any:
        """Capture none."""
        return nullcontext()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to take requests."""
        await super().startup(sockets)
        self._begun()
