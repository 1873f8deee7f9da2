"""Going on with what a service has left."""

from __future__ import annotations

import asyncio

from flyball import Agent, LocalRuntime, MemoryJournal
from flyball.core.events import Event, Outcome, Resumed
from flyball.inference.scripted import ScriptedEngine
from flyball.orchestrate.contracts import SystemRequest
from flyball.orchestrate.recorded import until_done
from flyball.orchestrate.service import Service
from flyball.runtime.services import Recovery

ASK = SystemRequest.from_json({"messages": [{"role": "user", "content": "Hello"}]})


class Read(MemoryJournal):
    """A journal that says what was read of it."""

    __slots__ = ("read_of",)

    def __init__(self) -> None:
        super().__init__()
        self.read_of: list[str] = []

    async def read(self, loop_id: str, start: int = 0) -> list[Event]:
        self.read_of.append(loop_id)
        return await super().read(loop_id, start)


async def test_what_was_left_is_gone_on_with_and_what_is_driven_or_over_is_not_read_again() -> None:
    journal, go, asked = Read(), asyncio.Event(), asyncio.Semaphore(0)

    async def pause() -> None:
        asked.release()
        await go.wait()

    agent = Agent(ScriptedEngine(*["done"] * 9, pause=pause), name="slow")
    async with LocalRuntime(journal) as first:
        service = Service([agent], first)
        await service.begin("slow", ASK, loop_id="left")
        await asked.acquire()
        await service.aclose()
    async with LocalRuntime(journal) as second:
        service = Service([agent], second)
        recovery = Recovery(service)
        assert await recovery.look() == ["left"]
        await asked.acquire()
        await service.begin("slow", ASK, loop_id="mine")
        await asked.acquire()
        journal.read_of.clear()
        assert await recovery.look() == []
        assert journal.read_of == [], "both are driven"
        go.set()
        for loop_id in ("left", "mine"):
            assert (await until_done(journal, loop_id)).outcome is Outcome.SUCCESS
        assert len([one for one in await journal.read("left") if isinstance(one, Resumed)]) == 1
        assert await recovery.look() == []
        journal.read_of.clear()
        assert await recovery.look() == []
        assert journal.read_of == [], "both are over"
        await service.aclose()


async def test_what_cannot_be_gone_on_with_is_left_for_longer_and_longer() -> None:
    journal, go, asked = MemoryJournal(), asyncio.Event(), asyncio.Event()

    async def pause() -> None:
        asked.set()
        await go.wait()

    async with LocalRuntime(journal) as first:
        service = Service([Agent(ScriptedEngine("done", pause=pause), name="slow")], first)
        await service.begin("slow", ASK, loop_id="left")
        await asked.wait()
        await service.aclose()
    async with LocalRuntime(journal) as second:
        recovery = Recovery(Service([Agent(ScriptedEngine("no"), name="other")], second))
        assert await recovery.look() == ["left"]
        assert await recovery.look() == []
