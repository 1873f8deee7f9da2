"""A message that was given out often is worked on alone; who lives to answer is no reason to put it aside."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Any

import pytest
from nats.aio.msg import Msg

from flyball.core.errors import InvalidMessage, JournalFailure, JournalTooNew, JournalUnreachable
from flyball.runtime.nats import NatsJournal
from flyball.runtime.nats.bus import Bus
from flyball.runtime.nats.deliveries import Delivery, Postman, Work
from flyball.runtime.nats.hiring import Post
from flyball.runtime.nats.subjects import DEAD
from flyball.runtime.nats.wire import AGENT, CLAIMS
from tests.inference.wrapped import logged

# pyright: reportPrivateUsage=false


@pytest.fixture
async def bus(journal: NatsJournal) -> AsyncGenerator[Bus]:
    bus = Bus(journal.connection, journal.layout)
    await bus.set_up()
    yield bus
    for stream in (AGENT, DEAD, f"KV_{CLAIMS}"):
        await journal.connection.js.delete_stream(stream)


class Aside:
    """What was put aside, and why."""

    def __init__(self) -> None:
        self.reasons: list[str] = []

    async def put(self, delivery: Delivery, why: Exception) -> None:
        self.reasons.append(str(why))


def postman(bus: Bus, work: Work, aside: Aside) -> Postman:
    return Postman(bus.connection, Post(AGENT, "loop", ("agent.task.>",)), work, aside.put, tally=bus)


def given(times: int, data: bytes = b"") -> Delivery:
    """One message of the stream, given out so often."""
    client: Any = None
    return Delivery(Msg(client, "agent.task.x", f"$JS.ACK.{AGENT}.loop.{times}.7.1.1.0", data))


async def test_what_is_done_each_time_is_never_put_aside(bus: Bus) -> None:
    """A worker that was slow to say that it lives finds it given out again, when it is done long since."""
    done, aside = list[int](), Aside()

    async def work(delivery: Delivery) -> None:
        done.append(delivery.times)

    for times in range(3, 10):
        await postman(bus, work, aside)._handle(given(times))
    assert (done, aside.reasons) == (list(range(3, 10)), [])


async def test_a_server_that_is_away_is_not_the_messages_fault(bus: Bus) -> None:
    tried, aside = list[int](), Aside()

    async def work(delivery: Delivery) -> None:
        tried.append(delivery.times)
        raise JournalUnreachable("away")

    for times in range(4, 9):
        await postman(bus, work, aside)._handle(given(times))
    assert (len(tried), aside.reasons) == (5, [])


TOO_NEW = b'{"type":{"domain":"flyball","category":"time","version":"v999"}}'


async def test_what_is_for_newer_workers_is_not_worked_on_alone(bus: Bus) -> None:
    tried, aside = list[int](), Aside()

    async def work(delivery: Delivery) -> None:
        tried.append(delivery.times)
        raise JournalTooNew("of version 999", subject=delivery.subject)

    one = postman(bus, work, aside)
    with logged("flyball.nats") as lines:
        for times in range(1, 9):
            await one._handle(given(times, TOO_NEW))
    assert len(lines) == 1, "told once"
    assert (tried, aside.reasons) == ([*range(1, 9)], [])
    # Another process has not seen it yet: it looks whether it is that before it has everything else wait.
    for times in range(4, 9):
        await postman(bus, work, aside)._handle(given(times, TOO_NEW))
    assert aside.reasons == []
    info = await bus.connection.js.stream_info(f"KV_{CLAIMS}")
    assert info.state.messages == 0, "nobody is taken to have died of it"


async def test_what_cannot_even_be_put_aside_waits_beside_the_others(bus: Bus) -> None:
    async def fail(delivery: Delivery) -> None:
        raise InvalidMessage("no JSON")

    class Full(Aside):
        async def put(self, delivery: Delivery, why: Exception) -> None:
            raise JournalFailure("AGENT_DEAD is full")

    one = postman(bus, fail, Full())
    for times in range(1, 9):
        await one._handle(given(times))
    info = await bus.connection.js.stream_info(f"KV_{CLAIMS}")
    assert info.state.messages == 0


async def test_when_four_died_with_it_alone_nobody_else_has_to(bus: Bus) -> None:
    tried, aside = list[int](), Aside()

    async def die(delivery: Delivery) -> None:
        tried.append(delivery.times)
        raise SystemExit  # nothing that comes after it is done

    for times in (4, 5, 6, 7):
        with pytest.raises(SystemExit):
            await postman(bus, die, aside)._handle(given(times))
    await postman(bus, die, aside)._handle(given(8))
    assert tried == [4, 5, 6, 7]
    assert aside.reasons == [
        "7 workers began with it, the last 4 with nothing else, and none of them lived to answer"
    ]


async def test_a_failure_is_told_by_its_own_reason(bus: Bus) -> None:
    aside = Aside()

    async def fail(delivery: Delivery) -> None:
        raise ValueError(f"try {delivery.times}")

    for times in (4, 5):
        await postman(bus, fail, aside)._handle(given(times))
    assert aside.reasons == ["try 5"]
