"""The floor: nats-py alone consumes a message, publishes another one, and acknowledges, as fast as it can.

A pull consumer with batches, several of them under way at once, and the messages of a batch side by side:
the fastest of the library's own idioms on this machine. What is consumed stands in a stream beforehand; what
is published, 512 bytes, goes to other subjects, in one stream or spread over several, as journals are.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from typing import Any, NamedTuple

from bench.nats.children import children, hears, say
from bench.nats.usage import Cores, Meter
from flyball.core.ids import new_id
from flyball.runtime.nats import EmbeddedServer

BODY = b"x" * 512
_INPUT = "BENCH_IN"
_FETCHERS, _BATCH = 4, 64


class Steps(NamedTuple):
    """What the floor did."""

    steps: int
    seconds: float
    cores: Cores

    @property
    def rate(self) -> float:
        """Steps in a second."""
        return self.steps / self.seconds


async def fill(server: EmbeddedServer, messages: int) -> None:
    """Put there what is to be consumed."""
    client = await _connect(server.url, server.options.token or "")
    js = client.jetstream(timeout=30)
    await js.add_stream(name=_INPUT, subjects=["bench.in"])
    few = asyncio.Semaphore(256)

    async def put() -> None:
        async with few:
            await js.publish("bench.in", BODY, timeout=30)

    await asyncio.gather(*[put() for _ in range(messages)])
    await client.close()


async def measure(server: EmbeddedServer, processes: int, streams: int, seconds: float) -> Steps:
    """Let some processes work for some seconds, or until all is consumed."""
    client = await _connect(server.url, server.options.token or "")
    js = client.jetstream(timeout=30)
    name = new_id()
    for number in range(streams):
        await js.add_stream(name=f"BENCH_OUT_{number}_{name}", subjects=[f"bench.{name}.{number}"])
    await js.add_consumer(_INPUT, durable_name=name, ack_policy="explicit", max_ack_pending=10_000)
    told = {
        "url": server.url,
        "token": server.options.token,
        "name": name,
        "streams": streams,
        "seconds": seconds,
    }
    async with children("bench.nats.floor", [told] * processes) as workers:
        meter = Meter([worker.pid for worker in workers], server.pid)
        for worker in workers:
            worker.tell("go")
        counts = [await worker.answer() for worker in workers]
        took = max(count["seconds"] for count in counts)
        cores = meter.cores(took)
    for number in range(streams):
        await js.delete_stream(f"BENCH_OUT_{number}_{name}")
    await js.delete_consumer(_INPUT, name)
    await client.close()
    return Steps(sum(count["steps"] for count in counts), took, cores)


async def _work(told: dict[str, Any]) -> None:
    """In a process of its own: work when told to, and say what came of it."""
    client = await _connect(told["url"], told["token"])
    js = client.jetstream(timeout=30)
    source = await js.pull_subscribe_bind(durable=told["name"], stream=_INPUT)
    subjects = [f"bench.{told['name']}.{number}" for number in range(told["streams"])]
    ear = await hears()
    say("ready")
    await ear.readline()
    steps, began = 0, time.perf_counter()
    until = last = began + told["seconds"]

    async def step(message: Any) -> None:
        nonlocal steps, last
        steps += 1
        await js.publish(subjects[steps % len(subjects)], BODY, timeout=30)
        await message.ack()
        last = time.perf_counter()

    async def fetch() -> None:
        while time.perf_counter() < until:
            try:
                batch = await source.fetch(_BATCH, timeout=1)
            except TimeoutError:
                continue  # all is consumed, or the machine is slow
            await asyncio.gather(*[step(message) for message in batch])

    await asyncio.gather(*[fetch() for _ in range(_FETCHERS)])
    say({"steps": steps, "seconds": last - began})
    await ear.read()  # what it used is looked at while it is there
    await client.close()


async def _connect(url: str, token: str) -> Any:
    import nats

    return await nats.connect(url, token=token)  # pyright: ignore[reportUnknownMemberType]


if __name__ == "__main__":
    import uvloop

    uvloop.run(_work(json.loads(sys.argv[1])))
