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
from functools import partial
from ipaddress import ip_address
from typing import Any, cast

from uvicorn import Config, Server

from flyball.adapters.http.app import Api
from flyball.adapters.http.connection import PatientProtocol
from flyball.core.errors import UserError


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
        http=cast("Any", partial(PatientProtocol, limits=api.limits)),
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=api.limits.idle_seconds,
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
