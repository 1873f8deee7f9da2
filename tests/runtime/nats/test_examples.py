"""The agents of `examples/` come to the same end on NATS as in process."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from flyball import MemoryJournal
from flyball.runtime.nats import NatsRuntime
from tests.orchestrate.example_agents import EXAMPLE_RUNS, ExampleRun
from tests.runtime.nats.test_runtime import runtime, working

__all__ = ["runtime"]


@pytest.mark.parametrize("run", EXAMPLE_RUNS, ids=repr)
async def test_as_in_process(runtime: NatsRuntime, run: ExampleRun, tmp_path: Path) -> None:
    agent, hotel = run.agent(), tmp_path / "hotel"
    memory = MemoryJournal()
    options: dict[str, Any] = {"loop_id": "one", "deps": run.deps_in(hotel)}
    here = await run.ended(lambda: agent.run(run.prompt, journal=memory, **options), memory)
    async with working(runtime, agent, deps=run.deps_in(hotel)):
        there = await run.ended(
            lambda: agent.run(run.prompt, runtime=runtime, loop_id="one"), runtime.journal, runtime
        )
        assert there == here
