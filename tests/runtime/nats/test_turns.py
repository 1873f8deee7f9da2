"""One at a time, by name."""

from __future__ import annotations

import asyncio

from flyball.runtime.nats.workers.turns import Turns


async def test_one_at_a_time_also_for_who_comes_between_two_holders() -> None:
    turns, inside, most = Turns(), list[int](), list[int]()

    async def come(number: int) -> None:
        async with turns.turn("loop"):
            inside.append(number)
            most.append(len(inside))
            await asyncio.sleep(0)
            inside.remove(number)
        if number < 100:
            # Exactly when the next one has been woken and does not hold it yet.
            await come(number + 100)

    await asyncio.gather(*[come(number) for number in range(5)])
    assert len(most) == 10
    assert set(most) == {1}
    assert len(turns) == 0, "a name that nobody comes for is forgotten"


async def test_names_do_not_wait_for_each_other() -> None:
    turns = Turns()
    async with turns.turn("a"), turns.turn("b"):
        assert len(turns) == 2
