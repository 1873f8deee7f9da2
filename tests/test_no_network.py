"""Nobody beyond this machine is reached from the suite, by whichever way in."""

from __future__ import annotations

import asyncio
import socket
from urllib.request import urlopen

import pytest

from flyball.core.errors import EngineError
from flyball.engines.wire.aio import AioTransport
from flyball.engines.wire.transport import Call


async def test_connections_elsewhere_are_refused() -> None:
    for way in (
        lambda: socket.create_connection(("192.0.2.1", 80)),
        lambda: socket.create_connection(("models.example", 443)),
        lambda: urlopen("http://models.example/"),
    ):
        with pytest.raises(OSError, match="nobody beyond this machine"):
            way()
    with pytest.raises(OSError, match="nobody beyond this machine"):
        await asyncio.open_connection("192.0.2.1", 80)


async def test_engines_are_no_exception() -> None:
    transport = AioTransport()
    with pytest.raises(EngineError, match="nobody beyond this machine"):
        async with transport.open(Call("https://models.example/v1", {})):
            pass
    await transport.aclose()


def test_this_machine_is_reached() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        socket.create_connection(server.getsockname()).close()
