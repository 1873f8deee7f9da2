"""Working beside others, and alone."""

from __future__ import annotations

import asyncio

from flyball.runtime.nats.company import Company
from tests.patience import PATIENCE


async def test_who_is_alone_waits_for_the_others_and_keeps_more_out() -> None:
    company, order = Company(), list[str]()
    leave = asyncio.Event()

    async def beside(name: str) -> None:
        async with company.beside():
            order.append(f"{name} in")
            await leave.wait()
        order.append(f"{name} out")

    async def alone(name: str) -> None:
        async with company.alone():
            order.append(f"{name} in")
            await asyncio.sleep(0)
            order.append(f"{name} out")

    async with asyncio.timeout(PATIENCE), asyncio.TaskGroup() as all_of_them:
        for name in "ab":
            all_of_them.create_task(beside(name))
        await asyncio.sleep(0)
        for name in "XY":
            all_of_them.create_task(alone(name))
        await asyncio.sleep(0)
        all_of_them.create_task(beside("c"))
        await asyncio.sleep(0)
        assert order == ["a in", "b in"]
        leave.set()
    assert order[2:8] == ["a out", "b out", "X in", "X out", "Y in", "Y out"] or order.index(
        "c in"
    ) > order.index("X out")
    for name in "XY":
        assert order[order.index(f"{name} in") + 1] == f"{name} out"


async def test_who_wants_to_be_alone_does_not_wait_for_ever() -> None:
    company = Company(patience=0.01)
    async with company.beside(), asyncio.timeout(PATIENCE), company.alone():
        waiting = asyncio.create_task(_enter(company))
        await asyncio.sleep(0)
        assert not waiting.done()
    await asyncio.wait_for(waiting, PATIENCE)


async def test_who_leaves_in_a_hurry_leaves_nothing_behind() -> None:
    company = Company()
    async with company.beside():
        hopeful = asyncio.create_task(_alone(company))
        await asyncio.sleep(0)
        hopeful.cancel()
        await asyncio.gather(hopeful, return_exceptions=True)
        await asyncio.wait_for(_enter(company), PATIENCE)
    await asyncio.wait_for(_alone(company), PATIENCE)


async def _enter(company: Company) -> None:
    async with company.beside():
        pass


async def _alone(company: Company) -> None:
    async with company.alone():
        pass
