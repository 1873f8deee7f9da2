"""What is written down of loops for others to look at: in the end it is the end."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec

from flyball import Agent
from flyball.inference.answers import tool_call as call
from flyball.orchestrate.keeping import Keeper
from flyball.orchestrate.machine import fold
from flyball.runtime.nats import NatsRuntime
from flyball.runtime.nats.fetching import Tail
from flyball.runtime.nats.workers.projector import LOOPS, Projector
from tests.orchestrate.models import Script
from tests.orchestrate.scenarios import add
from tests.patience import PATIENCE
from tests.runtime.nats.test_runtime import runtime

# pyright: reportPrivateUsage=false

__all__ = ["runtime"]
LOOP = "on-its-way"


async def test_what_is_written_of_a_loop_on_its_way_does_not_hide_its_end(runtime: NatsRuntime) -> None:
    """It ends while a worker that has just come asks the server what was written of it last."""
    agent = Agent(Script(call("add", {"x": 1, "y": 2}), "3"), tools=[add], name="adder")
    events = await (await agent.run("1 + 2?", loop_id=LOOP)).events()
    journal, before = runtime.journal, len(events) - 2  # the answer, and the end
    await journal.append(LOOP, events[:before], 0)
    keeper = Keeper(agent.bindings(), journal, fold(events[:before]), events[:before])
    asked = asyncio.Event()

    class Slow(Projector):
        async def _tail(self, subject: str) -> Tail:
            known = await super()._tail(subject)
            if not asked.is_set():
                await journal.append(LOOP, events[before:], before)
                await keeper.catch_up()
                asked.set()
            return known

    first, second = Projector(runtime.bus, journal), Slow(runtime.bus, journal, passing=0.0)
    await first.set_up()
    await first._write(LOOP, events[:1])
    second.moved(keeper, told=False)
    try:
        async with asyncio.timeout(PATIENCE):
            while not asked.is_set() or second._moved or second._written[f"$KV.{LOOPS}.{LOOP}"].length < 2:  # noqa: ASYNC110
                await asyncio.sleep(0.001)
        assert await stage(runtime) == "executing"
        await second._write(LOOP, events)
        assert await stage(runtime) == "complete"
    finally:
        await second.aclose()


async def stage(runtime: NatsRuntime) -> str:
    """Where the loop is, for others to look at."""
    connection = runtime.connection
    bucket: Any = await connection.patiently(lambda: connection.js.key_value(LOOPS))
    entry: Any = await connection.patiently(lambda: bucket.get(LOOP))
    return msgspec.json.decode(entry.value)["state"]
