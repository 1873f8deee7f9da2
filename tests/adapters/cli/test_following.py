"""What `flyball follow` tells while a run goes on: every step once, in whatever order they end."""

from __future__ import annotations

import asyncio

import pytest

from flyball import Agent, tool
from flyball.adapters.cli.follow import Teller
from flyball.adapters.cli.timeline import steps_of
from flyball.testing import ScriptedEngine, tool_call


async def test_a_step_that_begins_first_and_ends_last_is_told_once(
    capsys: pytest.CaptureFixture[str],
) -> None:
    second_done = asyncio.Event()

    @tool
    async def first() -> str:
        await second_done.wait()
        return "one"

    @tool
    async def second() -> str:
        second_done.set()
        return "two"

    model = ScriptedEngine([tool_call("first", {}), tool_call("second", {})], "done")
    events = await (await Agent(model, tools=[first, second]).run("go")).events()
    teller = Teller([])
    for length in range(1, len(events) + 1):
        teller.tell(events[:length])
    told = capsys.readouterr().err.splitlines()
    assert len(told) == len(steps_of(events))
    for name in ("first", "second"):
        assert sum(f" {name} " in line for line in told) == 1
