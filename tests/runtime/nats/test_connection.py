"""One connection, whatever is given up or ended on it."""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import Generator
from contextlib import contextmanager
from types import FrameType

import pytest
from msgspec.structs import replace
from nats.aio.msg import Msg

from flyball.core.errors import JournalFailure, JournalUnreachable, UserError
from flyball.runtime.nats import NatsJournal, NatsOptions
from flyball.runtime.nats.bus import Bus
from flyball.runtime.nats.connection import connect
from flyball.runtime.nats.deliveries import Delivery, Postman
from flyball.runtime.nats.fetching import after
from flyball.runtime.nats.hiring import Post
from tests.patience import PATIENCE


async def test_who_gives_up_waiting_for_the_server_does_not_make_the_line_deaf(nats: NatsOptions) -> None:
    connection = await connect(nats)
    try:
        flushing = asyncio.ensure_future(connection.flush())
        await asyncio.sleep(0)
        flushing.cancel()
        await asyncio.wait([flushing])
        async with asyncio.timeout(PATIENCE):
            await connection.request("$JS.API.INFO", b"")
    finally:
        await connection.aclose()


async def test_that_nobody_listens_is_heard_also_where_the_machine_is_busy(nats: NatsOptions) -> None:
    connection = await connect(nats)
    try:
        asyncio.get_running_loop().call_soon(time.sleep, 0.2)  # nothing else is done here meanwhile
        assert not await connection.is_heard("fly.d.nobody")
    finally:
        await connection.aclose()


@pytest.mark.parametrize(
    "said",
    [
        b'{"type":"?","error":{"code":503,"err_code":10008,"description":"temporarily unavailable"}}',
        b'{"error":{"code":409,"err_code":10158,"description":"duplicate message id is in process"},"seq":0}',
        b'{"error":{"code":400,"err_code":10164,"description":"wrong last sequence"},"seq":0}',
        b'{"error":{"code":503,"description":"raft: not leader"},"stream":"S","seq":0}',
    ],
    ids=["no majority", "on its way", "another is on its way", "lost its lead"],
)
async def test_that_there_is_no_answer_yet_is_no_answer(nats: NatsOptions, said: bytes) -> None:
    connection = await connect(nats)
    answers = [said, b'{"stream":"S","seq":7}']

    async def answer(message: Msg) -> None:
        await connection.publish(message.reply, answers.pop(0))

    try:
        await connection.subscribe("fly.tested", answer)
        async with asyncio.timeout(PATIENCE):
            message = await connection.request("fly.tested", b"")
        assert (message.data, answers) == (b'{"stream":"S","seq":7}', [])
    finally:
        await connection.aclose()


@pytest.mark.parametrize(
    "said",
    [
        b'{"error":{"code":400,"err_code":10071,"description":"wrong last sequence: 3"},"seq":0}',
        b'{"error":{"code":503,"err_code":10023,"description":"insufficient resources"},"seq":0}',
        b'{"error":"a word of our own"}',
    ],
    ids=["refused", "full", "not JetStream's"],
)
async def test_any_other_answer_is_one(nats: NatsOptions, said: bytes) -> None:
    connection = await connect(nats)

    async def answer(message: Msg) -> None:
        await connection.publish(message.reply, said)

    try:
        await connection.subscribe("fly.tested", answer)
        async with asyncio.timeout(PATIENCE):
            assert (await connection.request("fly.tested", b"")).data == said
    finally:
        await connection.aclose()


async def test_a_stream_that_is_not_there_is_told_at_once(nats: NatsOptions) -> None:
    connection = await connect(replace(nats, patience=2 * PATIENCE))
    try:
        async with asyncio.timeout(PATIENCE):
            with pytest.raises(JournalFailure, match="does not read NO_SUCH: stream not found") as told:
                await after(connection, "NO_SUCH", ">")
        assert not isinstance(told.value, JournalUnreachable)
    finally:
        await connection.aclose()


@contextmanager
def in_time(seconds: float) -> Generator[None]:
    """Have an error raised wherever the code is after so long, also if it never lets anybody else run."""

    def late(number: int, frame: FrameType | None) -> None:
        raise RuntimeError(f"it still runs after {seconds:g} s")

    before = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


async def test_a_worker_on_a_closed_connection_ends_and_stops_nobody(journal: NatsJournal) -> None:
    async def never(delivery: Delivery, error: Exception | None = None) -> None:
        raise AssertionError("there is nothing to do")

    connection = await connect(journal.connection.options)
    await connection.aclose()
    journal_bus = Bus(connection, journal.layout)
    with in_time(PATIENCE), pytest.raises(JournalUnreachable):
        await Postman(connection, Post("X", "x", ("x",)), never, never, tally=journal_bus).run()


@pytest.mark.parametrize("servers", [(), ("",), ("nats://127.0.0.1:1", "")])
def test_no_server_at_all_is_refused(servers: tuple[str, ...]) -> None:
    with pytest.raises(UserError, match="name at least one server"):
        NatsOptions(servers)


async def test_what_waits_on_a_line_that_is_closed_hears_of_it(journal: NatsJournal) -> None:
    connection = await connect(journal.connection.options)
    await connection.aclose()
    with pytest.raises(JournalUnreachable, match="was closed"):
        await connection.request("fly.nowhere", b"")
