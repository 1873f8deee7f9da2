"""Where a run is driven that its caller takes part in: here over two journals, or in a split world."""

from __future__ import annotations

from collections.abc import AsyncIterable
from contextlib import AbstractAsyncContextManager
from typing import Any

from flyball import Agent
from flyball.core.errors import AgentRunClosed
from flyball.orchestrate.journal import Journal, MemoryJournal
from flyball.orchestrate.result import RunResult
from flyball.orchestrate.runs import AgentRun, StreamedRun
from flyball.testing.split import CALM, ROUGH, SplitDriver

KINDS = ("memory", "sqlite", "calm", "rough")


async def read_into(seen: list[Any], pieces: AsyncIterable[Any]) -> None:
    """Read to the end; what came is in `seen`, also where the end is an error."""
    async for piece in pieces:
        seen.append(piece)


class Where:
    """One place for the runs of one test."""

    def __init__(self, kind: str, journal: Journal, driver: SplitDriver | None = None) -> None:
        self.kind = kind
        self.journal = journal
        self.driver = driver

    @classmethod
    def here(cls, journal: Journal) -> Where:
        """In this process, over a journal."""
        return cls("here", journal)

    @classmethod
    def made(cls, kind: str, disk: Journal, seed: int) -> Where:
        """A place of one of the four kinds."""
        if kind in ("memory", "sqlite"):
            return cls(kind, disk if kind == "sqlite" else MemoryJournal())
        driver = SplitDriver(seed, CALM if kind == "calm" else ROUGH)
        return cls(kind, driver.journal, driver)

    @property
    def split(self) -> bool:
        """Whether loop, model and tools share nothing but bytes, and do not wait for who follows them."""
        return self.driver is not None

    @property
    def calm(self) -> bool:
        """Whether nothing goes wrong on the way, so that nothing is done twice and no delta is lost."""
        return self.kind != "rough"

    def stream(
        self, agent: Agent[Any, Any], prompt: Any = "go", **options: Any
    ) -> AbstractAsyncContextManager[StreamedRun[Any]]:
        return agent.run_stream(prompt, **self.options(options))

    def iter(
        self, agent: Agent[Any, Any], prompt: Any = "go", **options: Any
    ) -> AbstractAsyncContextManager[AgentRun[Any]]:
        return agent.iter(prompt, **self.options(options))

    async def run(self, agent: Agent[Any, Any], prompt: Any, loop_id: str, **options: Any) -> RunResult[Any]:
        """Run to the end, also where a split world gives a loop back that waits for a signal."""
        options |= {"loop_id": loop_id}
        while True:
            length = len(await self.journal.read(loop_id))
            try:
                return await agent.run(prompt, **self.options(options))
            except AgentRunClosed:
                await self.journal.wait(loop_id, length)

    async def resume(self, agent: Agent[Any, Any], loop_id: str, prompt: Any = "go") -> RunResult[Any]:
        """Go on with a loop that was left."""
        if self.split:
            return await self.run(agent, prompt, loop_id)
        return await agent.resume(loop_id, self.journal)

    def options(self, options: dict[str, Any]) -> dict[str, Any]:
        """The options of a run here."""
        if self.driver is None:
            return {"journal": self.journal} | options
        if "deps" in options:
            self.driver.deps = options["deps"]
            options = {name: value for name, value in options.items() if name != "deps"}
        return options | {"runtime": self.driver}
