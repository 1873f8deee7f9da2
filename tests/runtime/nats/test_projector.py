"""What is written down of loops for others to look at: in the end it is the end."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from flyball import Agent
from flyball.core.errors import OrchestrationFailure
from flyball.inference.answers import tool_call as call
from flyball.orchestrate.keeping import Keeper
from flyball.orchestrate.machine import fold
from flyball.runtime.nats import NatsRuntime
from flyball.runtime.nats.dead import dead_letters, requeue
from flyball.runtime.nats.fetching import Tail, tail
from flyball.runtime.nats.workers.projector import LOOPS, Projector
from tests.orchestrate.models import Script
from tests.orchestrate.scenarios import add
from tests.patience import PATIENCE
from tests.runtime.nats.crashing import nothing_left
from tests.runtime.nats.test_runtime import dead, runtime, working

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


async def test_an_entry_that_was_put_aside_is_told_of_when_it_is_given_out_again_and_not_recorded_again(
    runtime: NatsRuntime, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent = Agent(Script("3"), name="adder")
    write = Projector._write

    async def fails(*_: object) -> None:
        raise OrchestrationFailure("no", retryable=False)

    async with working(runtime, agent):
        monkeypatch.setattr(Projector, "_write", fails)
        await asyncio.wait_for(agent.run("1 + 2?", runtime=runtime, loop_id=LOOP), PATIENCE)
        await dead(runtime, 2)  # its beginning, and its end
        monkeypatch.setattr(Projector, "_write", write)
        recorded = await runtime.journal.read(LOOP)
        aside = await dead_letters(runtime.bus)
        assert {one.by for _, one in aside} == {"projector"}
        (_, first), (_, last) = aside
        assert (first.subject[:6], last.subject[-6:]) == ("fly.j.", ".ended")
        for number, one in (aside[0], (aside[1][0], replace(last, by=""))):  # as of an earlier release
            await requeue(runtime.bus, number, one)
        async with asyncio.timeout(PATIENCE):
            while not await is_written(runtime):  # noqa: ASYNC110 - nobody tells us
                await asyncio.sleep(0.01)
        assert await stage(runtime) == "complete"
        await asyncio.wait_for(nothing_left(runtime), PATIENCE)
    assert await runtime.journal.read(LOOP) == recorded
    assert await dead_letters(runtime.bus) == []


async def is_written(runtime: NatsRuntime) -> bool:
    """Whether it is told how the loop ended."""
    return bool((await tail(runtime.connection, f"KV_{LOOPS}", f"$KV.{LOOPS}.COMPLETE_{LOOP}")).length)


async def stage(runtime: NatsRuntime) -> str:
    """Where the loop is, for others to look at."""
    connection = runtime.connection
    bucket: Any = await connection.patiently(lambda: connection.js.key_value(LOOPS))
    entry: Any = await connection.patiently(lambda: bucket.get(LOOP))
    return msgspec.json.decode(entry.value)["state"]
