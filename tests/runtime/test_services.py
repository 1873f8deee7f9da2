"""Going on with what a service has left."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from flyball import Agent, LocalRuntime, MemoryJournal
from flyball.core.errors import JournalCorrupt, JournalTooNew
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


@pytest.mark.parametrize("error", [JournalTooNew("too new"), JournalCorrupt("damaged")])
async def test_a_loop_that_cannot_be_read_keeps_no_other_from_being_gone_on_with(
    error: Exception, capsys: pytest.CaptureFixture[str]
) -> None:
    go, asked = asyncio.Event(), asyncio.Semaphore(0)

    async def pause() -> None:
        asked.release()
        await go.wait()

    class Damaged(Read):
        """A journal of which one loop cannot be read."""

        async def read(self, loop_id: str, start: int = 0) -> list[Event]:
            events = await super().read(loop_id, start)
            if loop_id == "bad" and go.is_set():
                raise error
            return events

    agent, journal = Agent(ScriptedEngine(*["done"] * 9, pause=pause), name="slow"), Damaged()
    async with LocalRuntime(journal) as first:
        service = Service([agent], first)
        for loop_id in ("bad", "good"):
            await service.begin("slow", ASK, loop_id=loop_id)
            await asked.acquire()
        await service.aclose()
    go.set()
    async with LocalRuntime(journal) as second:
        service = Service([agent], second)
        recovery = Recovery(service)
        assert await recovery.look() == ["good"]
        assert (await until_done(journal, "good")).outcome is Outcome.SUCCESS
        assert await recovery.look() == []
        await service.aclose()
    told = capsys.readouterr().err
    assert told.count(str(error)) == 1, "it is told once, and then not for some time"


async def test_what_an_agent_raises_keeps_no_other_loop_from_being_gone_on_with(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    go, asked = asyncio.Event(), asyncio.Semaphore(0)

    async def pause() -> None:
        asked.release()
        await go.wait()

    agent, journal = Agent(ScriptedEngine(*["done"] * 9, pause=pause), name="slow"), MemoryJournal()
    async with LocalRuntime(journal) as first:
        service = Service([agent], first)
        for loop_id in ("bad", "good"):
            await service.begin("slow", ASK, loop_id=loop_id)
            await asked.acquire()
        await service.aclose()
    go.set()
    async with LocalRuntime(journal) as second:
        service = Service([agent], second)
        resume = service.resume

        async def failing(loop_id: str, **more: Any) -> None:
            if loop_id == "bad":
                raise ValueError("a bug of the agent's")
            await resume(loop_id, **more)

        monkeypatch.setattr(service, "resume", failing)
        recovering = asyncio.create_task(Recovery(service).run())
        assert (await until_done(journal, "good")).outcome is Outcome.SUCCESS
        assert not recovering.done()
        assert "a bug of the agent's" in capsys.readouterr().err
        recovering.cancel()
        await asyncio.gather(recovering, return_exceptions=True)
        await service.aclose()
