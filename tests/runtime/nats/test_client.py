"""Headers are read as the client library reads them, and nothing ends the reading but the line's end."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from itertools import count

from hypothesis import given
from hypothesis import strategies as st
from nats.aio.client import Client

from flyball.runtime.nats import NatsOptions
from flyball.runtime.nats.client import FastClient
from tests.patience import PATIENCE
from tests.runtime.nats.proxy import Proxy

# pyright: reportPrivateUsage=false, reportUnknownMemberType=false

_lines = st.one_of(
    st.binary(max_size=20),
    st.tuples(st.sampled_from([b"A", b" Nats-Msg-Id ", b"B C", b"\xff", b""]), st.binary(max_size=12)).map(
        lambda pair: pair[0] + b":" + pair[1]
    ),
)


@given(st.lists(_lines, max_size=6))
def test_the_same_headers_are_found(lines: list[bytes]) -> None:
    raw = b"\r\n".join(lines)
    expected = Client._parse_header_lines(raw)
    # An empty name is no name: the library keeps it, and nobody can ask for it by a name.
    expected.pop("", None)
    assert FastClient._parse_header_lines(raw) == expected
    assert FastClient._parse_header_lines(raw) == expected  # from memory, too


async def test_a_pong_that_nobody_waits_for_any_more_is_nothing_to_anybody(nats: NatsOptions) -> None:
    client = FastClient()
    await client.connect(list(nats.servers), token=nats.token)
    impatient = asyncio.get_running_loop().create_future()
    await client._send_ping(impatient)
    impatient.cancel()
    await client.flush(5)
    await client.flush(5)
    await client.close()


async def test_a_line_that_is_not_read_any_more_is_made_anew(nats: NatsOptions) -> None:
    client, back = FastClient(), asyncio.Event()

    async def came_back() -> None:
        back.set()

    await client.connect(
        list(nats.servers), token=nats.token, reconnected_cb=came_back, reconnect_time_wait=0
    )

    async def broken(data: bytes = b"") -> None:
        raise RuntimeError("what no parser expects")

    client._ps.parse = broken
    with suppress(Exception):
        await client.flush(1)
    await asyncio.wait_for(back.wait(), PATIENCE)
    await client.flush(5)
    await client.close()


async def test_a_line_on_which_the_server_does_not_greet_is_closed(nats: NatsOptions) -> None:
    host, _, port = nats.servers[0].rpartition("//")[2].partition(":")
    proxy, lines, left = Proxy(host, int(port)), count(1), asyncio.Event()
    client, back = FastClient(), asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if next(lines) != 2:
            await proxy.serve(reader, writer)
            return
        await reader.read()  # it says nothing until the other one goes
        left.set()
        writer.close()
        await writer.wait_closed()

    async def came_back() -> None:
        back.set()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    address = f"nats://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    await client.connect(
        [address], token=nats.token, reconnected_cb=came_back, reconnect_time_wait=0, connect_timeout=2
    )
    proxy.plan("up", 1, "cut")
    with suppress(Exception):
        await client.flush(1)
    await asyncio.wait_for(back.wait(), PATIENCE)
    await asyncio.wait_for(left.wait(), PATIENCE)
    await client.flush(5)
    await client.close()
    server.close()
