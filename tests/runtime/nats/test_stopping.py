"""Work that can be stopped from outside, and is not begun twice."""

from __future__ import annotations

import asyncio

import pytest

from flyball.runtime.nats import NatsJournal
from flyball.runtime.nats.workers.remembered import Remembered
from flyball.runtime.nats.workers.stopping import CancelledItself, LetGo, Stoppable, tell
from tests.patience import PATIENCE


async def test_what_runs_is_not_begun_anew_and_both_are_told(journal: NatsJournal) -> None:
    stoppable, go_on, begun = Stoppable(journal.connection), asyncio.Event(), list[str]()

    async def work(name: str) -> str:
        begun.append(name)
        await go_on.wait()
        return name

    first = asyncio.create_task(stoppable.run("loop", "effect", work("first")))
    await asyncio.sleep(0)
    second = asyncio.create_task(stoppable.run("loop", "effect", work("second")))
    other = asyncio.create_task(stoppable.run("loop", "other", work("other")))
    await asyncio.sleep(0)
    go_on.set()
    assert await asyncio.gather(first, second, other) == ["first", "first", "other"]
    assert begun == ["first", "other"]
    assert await stoppable.run("loop", "effect", work("later")) == "later"


async def test_who_waits_for_what_is_let_go_is_let_go_too(journal: NatsJournal) -> None:
    stoppable = Stoppable(journal.connection)
    await stoppable.listen()
    await journal.connection.flush()

    async def for_ever() -> None:
        await asyncio.sleep(600)

    both = [asyncio.create_task(stoppable.run("loop", "effect", for_ever())) for _ in range(2)]
    await asyncio.sleep(0)
    await tell(journal.connection, "loop", [])
    ends = await asyncio.wait_for(asyncio.gather(*both, return_exceptions=True), PATIENCE)
    assert [type(end) for end in ends] == [LetGo, LetGo]


async def test_what_cancels_itself_is_told_as_that(journal: NatsJournal) -> None:
    async def faint() -> None:
        raise asyncio.CancelledError

    with pytest.raises(CancelledItself):
        await Stoppable(journal.connection).run("loop", "effect", faint())


def test_the_oldest_names_are_forgotten() -> None:
    names = Remembered(most=2)
    for name in ("a", "b", "b", "c"):
        names.add(name)
    assert ["a" in names, "b" in names, "c" in names] == [False, True, True]
