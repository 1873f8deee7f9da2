"""A run in a task of its own, and the ways to speak to it while it goes on."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from typing import Any, Literal

import pytest

from flyball import Agent, RunContext, tool
from flyball.core.errors import SignalRefused
from flyball.core.events import Stage
from flyball.core.ids import new_id
from flyball.core.messages import ToolCall
from flyball.core.signals import Signal, SignalType
from flyball.inference.answers import tool_call as call
from flyball.orchestrate.driven import DrivenLoop
from flyball.orchestrate.driver import Drive
from flyball.orchestrate.recorded import send_signal
from flyball.orchestrate.result import RunResult
from flyball.orchestrate.runs import AgentRun, StreamedRun
from tests.orchestrate.models import Hanging, Place, Script
from tests.orchestrate.where import Where

Way = Literal["journal", "iter", "stream"]
WAYS: tuple[Way, ...] = ("journal", "iter", "stream")


class Driven:
    """A run that goes on in a task. Signals reach it by its journal, or by its handle."""

    def __init__(self, way: Way, where: Where) -> None:
        self.way = way
        self.where = where
        self.journal = where.journal
        self.loop_id = new_id()
        self._stack = AsyncExitStack()
        self._handle: AgentRun[Any] | StreamedRun[Any] | None = None
        self._task: asyncio.Task[RunResult[Any]] | None = None

    async def start(self, agent: Agent[Any, Any], prompt: str = "go", **options: Any) -> None:
        if self.way == "journal":
            self._task = asyncio.create_task(self.where.run(agent, prompt, self.loop_id, **options))
            await self.journal.wait(self.loop_id, 0)
            return
        begin = self.where.iter if self.way == "iter" else self.where.stream
        self._handle = await self._stack.enter_async_context(
            begin(agent, prompt, loop_id=self.loop_id, **options)
        )
        self._task = asyncio.create_task(self._drain())

    async def _drain(self) -> RunResult[Any]:
        if isinstance(self._handle, AgentRun):
            async for _ in self._handle:
                pass
        else:
            assert self._handle is not None
            async for _ in self._handle.events():
                pass
        return self._handle.result

    async def signal(
        self, kind: SignalType | str, text: str = "", call_id: str | None = None, name: str = ""
    ) -> bool:
        """Send a signal; whether it was taken, now or before."""
        try:
            await self.send(kind, text, call_id, name)
        except SignalRefused:
            return False
        return True

    async def send(
        self, kind: SignalType | str, text: str = "", call_id: str | None = None, name: str = ""
    ) -> Stage:
        """Send a signal; the stage of the loop then."""
        signal = Signal(SignalType(kind), id=name, by="me", text=text, call_id=call_id)
        if self._handle is not None:
            return await self._handle.signal(signal)
        return await send_signal(self.journal, self.loop_id, signal)

    async def reach(self, place: Place) -> None:
        """Wait until the run hangs there."""
        entered = asyncio.ensure_future(place.entered.wait())
        await asyncio.wait([entered, self.task], return_when=asyncio.FIRST_COMPLETED)
        if not entered.done():
            entered.cancel()
            await self.end()
            assert not self.where.calm
            pytest.skip("here the call was claimed and its worker died before it ran: nobody may run it now")

    async def go_on(self) -> RunResult[Any]:
        """Drive a run that is held on, to its end."""
        self._task = asyncio.create_task(self._drain())
        return await self.end()

    async def end(self) -> RunResult[Any]:
        """Wait for the end."""
        assert self._task is not None
        try:
            return await self._task
        finally:
            await self._stack.aclose()

    @property
    def task(self) -> asyncio.Task[RunResult[Any]]:
        assert self._task is not None
        return self._task

    async def kinds(self) -> list[str]:
        return [type(event).__name__ for event in await self.journal.read(self.loop_id)]


def drive_of(run: AgentRun[Any]) -> Drive:
    """What drives a run in this process."""
    loop = run._loop  # pyright: ignore[reportPrivateUsage]
    assert isinstance(loop, DrivenLoop)
    return loop.drive


PLACES = (
    "model", "tool", "tools", "at_most_once", "sequential",
    "prompt", "available", "approval", "validator", "delivery",
)  # fmt: skip


def hanging_in(name: str) -> tuple[Agent[Any, Any], Place]:
    """An agent whose run hangs in one place, and that place."""
    place = Place()

    @tool
    async def work() -> str:
        await place.hang()
        return "worked"

    @tool(safety="at_most_once")
    async def once() -> str:
        await place.hang()
        return "worked"

    @tool(sequential=True)
    async def alone() -> str:
        await place.hang()
        return "worked"

    async def available() -> bool:
        await place.hang()
        return True

    @tool(available=available)
    async def perhaps() -> str:
        return "worked"

    @tool(approval=True)
    async def guarded() -> str:
        return "worked"

    async def prompt(_: RunContext[Any]) -> str:
        await place.hang()
        return "Be brief."

    async def approve(_: RunContext[Any], __: ToolCall) -> bool:
        await place.hang()
        return True

    async def validate(_: RunContext[Any], output: str) -> str:
        await place.hang()
        return output

    async def deliver(_: RunContext[Any], __: Any, ___: Any) -> None:
        await place.hang()

    made: dict[str, Agent[Any, Any]] = {
        "model": Agent(Hanging(place=place)),
        "tool": Agent(Script(call("work"), "done", "done"), tools=[work]),
        "tools": Agent(Script([call("work")] * 3, "done", "done"), tools=[work]),
        "at_most_once": Agent(Script(call("once"), "done", "done"), tools=[once]),
        "sequential": Agent(Script([call("alone")] * 2, "done", "done"), tools=[alone]),
        "prompt": Agent(Script("done", "done"), instructions=prompt),
        "available": Agent(Script("done", "done"), tools=[perhaps]),
        "approval": Agent(Script(call("guarded"), "done", "done"), tools=[guarded], approval=approve),
        "validator": Agent(Script("done", "done"), validators=[validate]),
        "delivery": Agent(Script("done", "done"), deliveries=[deliver]),
    }
    return made[name], place
