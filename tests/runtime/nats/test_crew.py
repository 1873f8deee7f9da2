"""How a crew stops."""

from __future__ import annotations

import asyncio

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
