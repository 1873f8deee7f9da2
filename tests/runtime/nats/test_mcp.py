"""The tools of an MCP server on NATS: whichever worker has the tools makes the call."""

from __future__ import annotations

from contextlib import AsyncExitStack

from flyball import Agent
from flyball.inference.answers import tool_call as call
from flyball.orchestrate.projections import normal_form
from flyball.runtime.nats import NatsRuntime
from tests.orchestrate.models import Script
from tests.runtime.nats.test_runtime import runtime, working
from tests.tool.mcp.conftest import odd

__all__ = ["runtime"]


async def test_workers_that_are_apart_call_a_servers_tools(runtime: NatsRuntime) -> None:
    async with odd("refuses") as tools:
        agent = Agent(Script([call("go", {})], [call("look", {})], "done"), tools=[tools], name="caller")
        here = await agent.run("Go.")
        async with AsyncExitStack() as stack:
            for kind in ("loop", "model", "tools"):
                await stack.enter_async_context(working(runtime, agent, serve=(kind,)))
            result = await agent.run("Go.", runtime=runtime)
        assert result.output == here.output == "done"
        assert normal_form(await result.events()) == normal_form(await here.events())
        texts = [one.text for message in result.messages for one in message.tool_results]
        assert texts == [
            f"MCP server 'odd' refused {name!r}: the moon is in the wrong phase" for name in ("go", "look")
        ]
