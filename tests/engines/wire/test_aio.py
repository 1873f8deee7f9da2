"""The transport on the network, against real sockets: pools, breaks, silence, loops that end."""

from __future__ import annotations

import asyncio
import gc

import pytest

from flyball.core.errors import EngineError, UserError
from flyball.engines.wire.aio import AioTransport, Timeouts
from flyball.engines.wire.transport import Call
from tests.engines.loopback import Answer, Loopback, Received
from tests.patience import PATIENCE


def call(server: Loopback, path: str = "/", body: bytes = b"{}") -> Call:
    return Call(server.url + path, {"Content-Type": "application/json"}, body)


async def fetched(transport: AioTransport, one: Call) -> bytes:
    async with transport.open(one) as reply:
        return await reply.read()


async def test_a_call_and_its_reply() -> None:
    async with Loopback(lambda got: Answer(got.body, 201, {"X-Odd": "yes"})) as server:
        transport = AioTransport()
        async with transport.open(call(server, "/a", b"hello")) as reply:
            assert (reply.status, reply.headers["x-odd"], await reply.read()) == (201, "yes", b"hello")
        await transport.aclose()
    got = server.received[0]
    assert (got.method, got.path, got.headers["user-agent"]) == ("POST", "/a", "flyball")


async def test_one_connection_serves_call_after_call_and_many_serve_many() -> None:
    async with Loopback(lambda _: Answer(b"{}")) as server:
        transport = AioTransport()
        for _ in range(20):
            await fetched(transport, call(server))
        assert server.connections == 1
        await asyncio.gather(*[fetched(transport, call(server)) for _ in range(16)])
        assert server.connections <= 16
        await transport.aclose()


async def test_a_connection_that_the_server_ended_meanwhile_is_made_anew() -> None:
    async with Loopback(lambda _: Answer(b"fine", headers={"Connection": "keep-alive"})) as server:
        transport = AioTransport()
        await fetched(transport, call(server))
        await server.drop()
        assert await fetched(transport, call(server)) == b"fine"
        await transport.aclose()


async def test_what_a_new_connection_broke_off_is_not_sent_twice() -> None:
    came = 0

    async def hang_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal came
        await reader.readuntil(b"\r\n\r\n")
        came += 1
        writer.transport.abort()

    server = await asyncio.start_server(hang_up, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    transport = AioTransport()
    with pytest.raises(EngineError, match="broke"):
        await fetched(transport, Call(f"http://127.0.0.1:{port}/", {}, b"{}"))
    assert came == 1
    server.close()
    await transport.aclose()


async def test_closing_ends_what_is_under_way() -> None:
    async with Loopback(lambda _: Answer([b"x"], end="stall")) as server:
        transport = AioTransport()
        async with transport.open(call(server)) as reply:
            pieces = reply.pieces()
            assert await anext(pieces) == b"x"
            waiting = asyncio.ensure_future(anext(pieces))
            await asyncio.sleep(0)
            await transport.aclose()
            await transport.aclose()
            with pytest.raises(EngineError, match="closed here"):
                await asyncio.wait_for(waiting, PATIENCE)


async def test_a_server_that_never_answers_properly_fails() -> None:
    async with Loopback(lambda _: Answer([], end="reset")) as server:
        transport = AioTransport()
        with pytest.raises(EngineError, match="broke") as caught:
            await fetched(transport, call(server))
        assert caught.value.retryable
        await transport.aclose()


async def test_a_reply_that_breaks_has_given_what_came() -> None:
    async with Loopback(lambda _: Answer([b"one", b"two"], end="reset")) as server:
        transport, came = AioTransport(), b""
        async with transport.open(call(server)) as reply:
            pieces = reply.pieces()
            while came != b"onetwo":
                came += await anext(pieces)
            with pytest.raises(EngineError, match="broke"):
                await anext(pieces)
        await transport.aclose()


async def test_nobody_there() -> None:
    transport = AioTransport(server="vllm")
    with pytest.raises(EngineError, match=r"vllm at 127\.0\.0\.1:9 cannot be reached"):
        await fetched(transport, Call("http://127.0.0.1:9/", {}))
    await transport.aclose()


async def test_silence_is_waited_for_no_longer_than_said() -> None:
    async with Loopback(lambda _: Answer([b"x"], end="stall")) as server:
        transport = AioTransport(timeouts=Timeouts(idle=0.05))
        with pytest.raises(EngineError, match="took too long"):
            await fetched(transport, call(server))
        await transport.aclose()


async def test_cancelling_closes_the_connection() -> None:
    async with Loopback(lambda _: Answer([b"x"], end="stall")) as server:
        transport = AioTransport()
        task = asyncio.ensure_future(fetched(transport, call(server)))
        await asyncio.wait_for(server.asked.wait(), PATIENCE)
        task.cancel()
        await asyncio.wait([task])
        assert task.cancelled()
        await asyncio.wait_for(server.gone.wait(), PATIENCE)
        await transport.aclose()


async def test_leaving_early_closes_the_connection() -> None:
    async with Loopback(lambda _: Answer([b"x"], end="stall")) as server:
        transport = AioTransport()
        async with transport.open(call(server)) as reply:
            assert reply.status == 200
        await asyncio.wait_for(server.gone.wait(), PATIENCE)
        await transport.aclose()


async def test_nobody_is_followed_elsewhere() -> None:
    async with Loopback(lambda _: Answer(b"", 302, {"Location": "http://127.0.0.1:9/"})) as server:
        transport = AioTransport()
        async with transport.open(call(server)) as reply:
            assert reply.status == 302
        await transport.aclose()


def test_one_event_loop_after_another() -> None:
    async def once(transport: AioTransport) -> bytes:
        async with Loopback(lambda _: Answer(b"fine")) as server:
            return await fetched(transport, call(server))

    transport = AioTransport()
    assert [asyncio.run(once(transport)) for _ in range(3)] == [b"fine"] * 3
    del transport
    gc.collect()


async def test_a_transport_that_is_dropped_closes_its_connections() -> None:
    async with Loopback(lambda _: Answer(b"fine")) as server:
        transport = AioTransport()
        await fetched(transport, call(server))
        del transport
        gc.collect()
        await asyncio.wait_for(server.gone.wait(), PATIENCE)


async def test_a_closed_transport_may_be_used_again() -> None:
    async with Loopback(lambda _: Answer(b"fine")) as server:
        transport = AioTransport()
        await transport.aclose()
        for _ in range(2):
            assert await fetched(transport, call(server)) == b"fine"
            await transport.aclose()
        assert server.connections == 2


async def test_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    def proxy(got: Received) -> Answer:
        return Answer(got.path.encode())

    async with Loopback(proxy) as server:
        named = AioTransport(proxy=server.url)
        assert await fetched(named, Call("http://models.example/v1", {})) == b"http://models.example/v1"
        await named.aclose()
        monkeypatch.setenv("http_proxy", server.url)
        monkeypatch.setenv("no_proxy", "127.0.0.1")
        told = AioTransport()
        assert await fetched(told, Call("http://models.example/v1", {})) == b"http://models.example/v1"
        assert await fetched(told, call(server, "/near")) == b"/near"
        await told.aclose()


@pytest.mark.parametrize("value", [0, -1, "5", True])
def test_time_outs_that_cannot_be_meant(value: float) -> None:
    with pytest.raises(UserError):
        Timeouts(connect=value)
