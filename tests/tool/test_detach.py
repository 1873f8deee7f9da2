"""Who looks out for a detach, and who is asked."""

from __future__ import annotations

import asyncio

from flyball.tool.detach import Detaches
from tests.patience import PATIENCE


async def test_who_looks_is_asked_and_nobody_else() -> None:
    detaches = Detaches()
    one, two = detaches.detach("one"), detaches.detach("two")
    assert detaches.detach("one") is one
    waiting = asyncio.ensure_future(one.wait())
    await asyncio.sleep(0)
    detaches.ask(["one", "nobody"])
    await asyncio.wait_for(waiting, PATIENCE)
    assert (one.is_set(), two.is_set()) == (True, False)
    assert detaches.detach("three", asked=True).is_set()


async def test_who_looks_late_sees_it_and_the_oldest_are_forgotten() -> None:
    detaches = Detaches(most=2)
    detaches.ask(["one", "two", "three"])
    assert [detaches.detach(name).is_set() for name in ("one", "two", "three")] == [False, True, True]
