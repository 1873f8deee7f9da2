"""Tools that the caller runs, where loop and model are apart: no tools worker has to do with them."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from typing import Any

import pytest

from flyball import Agent, DeferredToolResult, System, SystemRequest
from flyball.core.events import ToolReturned
from flyball.core.messages import user
from flyball.core.tools import ToolDefinition
from flyball.inference.answers import tool_call as call
from flyball.inference.stream import TextDelta
from flyball.orchestrate.contracts import SystemResponse
from flyball.runtime.nats import NatsRuntime
from flyball.runtime.nats.dead import dead_letters
from tests.orchestrate.models import Script
from tests.patience import PATIENCE
from tests.runtime.nats.test_runtime import runtime, working

__all__ = ["runtime"]
WEATHER = ToolDefinition("weather", {"type": "object", "properties": {"city": {"type": "string"}}})
TWO = [call("weather", {"city": "Rome"}), call("weather", {"city": "Oslo"})]


@pytest.mark.parametrize("streamed", [False, True])
async def test_a_loop_waits_for_its_callers_tools_and_goes_on(runtime: NatsRuntime, streamed: bool) -> None:
    agent: Agent[Any, str] = Agent(Script(TWO, "Rain."), name="general")
    async with AsyncExitStack() as stack:
        for kind in ("loop", "model"):
            await stack.enter_async_context(working(runtime, agent, serve=(kind,)))
        system = System(agent, runtime=runtime)
        request = SystemRequest(messages=(user("Rain?"),), caller_tools=(WEATHER,))
        first = await asyncio.wait_for(system.handle(request), PATIENCE)
        assert (first.ok, [one.tool_name for one in first.calls_wanted]) == (True, ["weather", "weather"])
        events = await runtime.journal.read(first.loop_id)
        assert not any(isinstance(event, ToolReturned) for event in events)
        results = [DeferredToolResult("weather", one.tool_call_id, "rain") for one in first.calls_wanted]
        async with asyncio.timeout(PATIENCE):
            half = await system.answer(first.loop_id, results[:1])
            assert half.calls_wanted == first.calls_wanted[1:]
            if streamed:
                *pieces, last = [one async for one in system.answer_stream(first.loop_id, results[1:])]
                assert "".join([one.text for one in pieces if isinstance(one, TextDelta)]) == "Rain."
            else:
                last = await system.answer(first.loop_id, results[1:])
        assert isinstance(last, SystemResponse)
        assert (last.ok, last.content) == (True, "Rain.")
        assert not await dead_letters(runtime.bus)
