"""The System facade with a journal behind it, for the time of one command."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from flyball.adapters.cli.exits import RUN
from flyball.adapters.cli.naming import short
from flyball.core.errors import CancelledSignal
from flyball.core.spec import LoopSpec
from flyball.orchestrate.agent import Agent
from flyball.orchestrate.journal import Journal
from flyball.orchestrate.recorded import load
from flyball.orchestrate.system import System
from flyball.runtime.sqlite import SQLiteJournal


@asynccontextmanager
async def serving(
    journal: SQLiteJournal, model: str, options: Mapping[str, Any], *, yes: bool = False
) -> AsyncGenerator[System]:
    """A system whose runs are recorded; at the end its engine and its journal are closed.

    Raises:
        ConfigurationFailure: the model cannot be had.
    """
    from flyball.adapters.cli.approving import approval
    from flyball.adapters.cli.fetching import fetched

    async with journal:
        agent: Agent[Any, Any] = Agent(await fetched(model), **options)
        if any(tool.spec.approval for tool in agent.config.tools):
            agent = agent.clone(approval=approval(yes=yes))
        system = System(agent, journal=journal)
        try:
            yield system
        finally:
            await system.aclose()


@asynccontextmanager
async def leaving(journal: Journal, loop_id: str) -> AsyncGenerator[None]:
    """A block in which a run is driven: who cancels it learns how to go on with the run.

    Raises:
        CancelledSignal: it was cancelled, and the run is recorded as far as it came.
    """
    try:
        yield
    except asyncio.CancelledError:
        events = await journal.read(loop_id)
        if not events:
            raise
        name = short(loop_id)
        error = CancelledSignal(f"run {name} is recorded as far as it came; to go on: flyball resume {name}")
        error.details[RUN] = loop_id
        raise error from None


def is_typed(spec: LoopSpec) -> bool:
    """Whether the answer is JSON, and not text."""
    return spec.output.schema is not None or bool(spec.output.tools)


async def go_on(system: System, journal: Journal, loop_id: str, *, as_json: bool, quiet: bool) -> int:
    """Drive a recorded run to its end and show it; one that ended badly is tried again. The exit code."""
    from flyball.adapters.cli.answering import respond

    _, state = await load(journal, loop_id)
    async with leaving(journal, loop_id):
        return await respond(
            system.resume_stream(loop_id, retry=True),
            as_json=as_json,
            typed=is_typed(state.spec),
            tools=bool(state.spec.tools),
            quiet=quiet,
        )
