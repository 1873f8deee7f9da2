"""Middleware on NATS: it stands around the call wherever a worker makes it, whole or in pieces."""

from __future__ import annotations

from contextlib import AsyncExitStack

import pytest

from flyball import Agent, ChangeRequest, MaxTokens, ModelSettings, Request
from flyball.core.around import Around, Sent
from flyball.core.events import ModelAnswered
from flyball.inference.stream import Finish
from flyball.orchestrate.projections import normal_form
from flyball.runtime.nats import NatsRuntime
from flyball.runtime.nats.workers.agents import Agents
from flyball.testing import ScriptedEngine
from tests.orchestrate.middleware_scenarios import FINDING, find, redacted
from tests.orchestrate.models import Script
from tests.orchestrate.test_middleware import one_sided, requests_sent
from tests.runtime.nats.test_runtime import runtime, working

__all__ = ["runtime"]


@pytest.mark.parametrize("way", ["whole", "in pieces"])
async def test_workers_that_are_apart_send_what_it_makes_of_a_request(runtime: NatsRuntime, way: str) -> None:
    script = Script(*FINDING[:2], "done", chunk=2)
    agent = Agent(script, tools=[find], features=[MaxTokens(9), redacted], name="finder")
    here = await agent.run("555-0100?")
    async with AsyncExitStack() as stack:
        for kind in ("loop", "model", "tools"):
            await stack.enter_async_context(working(runtime, agent, serve=(kind,)))
        if way == "whole":
            result = await agent.run("555-0100?", runtime=runtime)
        else:
            async with agent.run_stream("555-0100?", runtime=runtime) as stream:
                pieces = [piece async for piece in stream.events()]
            result = stream.result
            assert sum(isinstance(piece, Finish) for piece in pieces) == 3
    events = await result.events()
    assert normal_form(events) == normal_form(await here.events())
    assert requests_sent(events) == script.requests[-3:]
    assert all(request.settings == ModelSettings(max_tokens=9) for request in script.requests)


@pytest.mark.parametrize(
    ("side", "plain", "streamed"), [("request", "whole", "go"), ("stream", "go", "in pieces")]
)
async def test_the_side_is_that_of_the_call(
    runtime: NatsRuntime, side: str, plain: str, streamed: str
) -> None:
    def echo(request: Request) -> str:
        return request.messages[-1].text

    agent = Agent(Script(echo), features=[one_sided(side)], name="echo")
    async with working(runtime, agent):
        assert (await agent.run("go", runtime=runtime)).output == plain
        async with agent.run_stream("go", runtime=runtime) as stream:
            assert await stream.get_output() == streamed


async def test_it_stays_around_another_model(runtime: NatsRuntime) -> None:
    agent = Agent(ScriptedEngine(), features=[MaxTokens(9)], name="capped")
    async with working(runtime, agent):
        result = await agent.run("go", runtime=runtime, model="test:something else")
    assert result.output == "something else"
    (answered,) = [event for event in await result.events() if isinstance(event, ModelAnswered)]
    assert answered.around == Around((Sent(settings=ModelSettings(max_tokens=9), by=("max_tokens",)),))


async def test_somebody_elses_request_for_no_agent_is_not_changed() -> None:
    def never(request: Request) -> Request:
        raise AssertionError("it is not this agent's")

    agents = Agents([Agent(ScriptedEngine(name="own"), features=[ChangeRequest(never)], name="one")])
    other = agents.engine("", "", "test:other")
    assert (await other.infer(Request(()))).content == "other"
