"""How a crew stops."""

from __future__ import annotations

import asyncio

import pytest
from msgspec.structs import replace

from flyball import Agent
from flyball.inference.request import Request
from flyball.inference.scripted import FunctionEngine
from flyball.runtime.nats import Crew, NatsJournal, NatsOptions, NatsRuntime
from flyball.runtime.nats.crew import let_go
from tests.patience import PATIENCE


async def test_a_task_that_lost_a_cancellation_is_told_again() -> None:
    lost = 0

    async def deaf() -> None:
        nonlocal lost
        while True:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                lost += 1
                if lost > 1:
                    raise

    tasks = [asyncio.create_task(deaf()), asyncio.create_task(asyncio.sleep(0))]
    await asyncio.sleep(0)
    await asyncio.wait_for(let_go(tasks), PATIENCE)
    assert lost == 2
    assert tasks[0].cancelled()
    await let_go([])


@pytest.mark.slow
async def test_what_is_on_its_way_to_a_crew_that_leaves_is_given_to_another_at_once(
    nats: NatsOptions, journal: NatsJournal
) -> None:
    """And not when it has been held for long enough, which is longer than anybody waits here."""

    async def answer(_: Request) -> str:
        return "fine"

    agent = Agent(FunctionEngine(answer), name="shop")
    asking = [True]

    async def ask(runtime: NatsRuntime, who: int) -> int:
        number = 0
        while asking:
            number += 1
            await agent.run("?", runtime=runtime, loop_id=f"{who}-{number}")
        return number

    async with (
        Crew(journal, [agent], hold=PATIENCE * 2),
        await NatsRuntime.open(replace(nats, patience=PATIENCE / 2)) as runtime,
        asyncio.timeout(PATIENCE),
    ):
        callers = [asyncio.create_task(ask(runtime, who)) for who in range(32)]
        for _ in range(12):
            async with (
                await NatsJournal.open(nats) as other,
                Crew(other, [agent], ["loop"], hold=PATIENCE * 2),
            ):
                await asyncio.sleep(0.25)
        asking.clear()
        assert min(await asyncio.gather(*callers)) >= 1
