"""A time limit costs nothing where nothing is waited for, and holds where something is."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from flyball.tool.deadline import Deadline


async def waits(*turns: object) -> list[object]:
    for _ in turns:
        await asyncio.sleep(0)
    return list(turns)


async def fails_after(turns: int) -> None:
    for _ in range(turns):
        await asyncio.sleep(0)
    raise KeyError(turns)


async def for_ever(seen: list[str]) -> None:
    try:
        await asyncio.Event().wait()
    except asyncio.CancelledError:
        seen.append("cancelled")
        raise


@pytest.mark.parametrize("turns", [(), (1,), (1, 2, 3)])
async def test_what_ends_in_time_gives_its_value(turns: tuple[Any, ...]) -> None:
    deadline = Deadline(60)
    assert await deadline.run(waits(*turns)) == list(turns)
    assert not deadline.passed


@pytest.mark.parametrize("turns", [0, 1, 3])
async def test_what_raises_raises(turns: int) -> None:
    deadline = Deadline(60)
    with pytest.raises(KeyError):
        await deadline.run(fails_after(turns))
    assert not deadline.passed


async def test_what_takes_longer_is_cancelled() -> None:
    seen: list[str] = []
    deadline = Deadline(0.001)
    with pytest.raises(TimeoutError):
        await deadline.run(for_ever(seen))
    assert seen == ["cancelled"]
    assert deadline.passed


async def test_a_cancellation_from_outside_is_not_a_time_out() -> None:
    seen: list[str] = []
    deadline = Deadline(60)
    task = asyncio.create_task(deadline.run(for_ever(seen)))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert seen == ["cancelled"]
    assert not deadline.passed


async def test_time_outs_within_it_work() -> None:
    async def inner() -> str:
        try:
            async with asyncio.timeout(0.001):
                await asyncio.Event().wait()
        except TimeoutError:
            return "inner"
        return "never"

    deadline = Deadline(60)
    assert await deadline.run(inner()) == "inner"
    assert not deadline.passed
