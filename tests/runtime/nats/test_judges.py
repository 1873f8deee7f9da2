"""Loops that an agent's own functions begin on NATS, such as a judge's: recorded, counted, found, ended."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

import msgspec
import pytest

from flyball import Agent, ModelSemanticValidator, RunContext
from flyball.core.errors import CancelledSignal
from flyball.core.events import ChildEnded, ChildStarted, Outcome, Resumed
from flyball.core.signals import Signal, SignalType
from flyball.inference.request import Request
from flyball.inference.scripted import FunctionEngine
from flyball.orchestrate.machine import fold
from flyball.orchestrate.machines import is_paused
from flyball.orchestrate.state import State
from flyball.runtime.nats import NatsJournal, NatsOptions, NatsRuntime
from flyball.runtime.nats.dead import dead_letters
from flyball.runtime.nats.subjects import DEAD
from flyball.runtime.nats.wire import AGENT, CLAIMS
from tests.orchestrate.models import Script
from tests.orchestrate.validation_scenarios import judged
from tests.patience import PATIENCE
from tests.runtime.nats.conftest import clear
from tests.runtime.nats.test_runtime import working


@pytest.fixture
async def runtime(nats: NatsOptions) -> AsyncGenerator[NatsRuntime]:
    options = msgspec.structs.replace(nats, patience=PATIENCE)
    async with await NatsJournal.open(options) as before:
        await clear(before)
    async with await NatsRuntime.open(options) as runtime:
        yield runtime
        for stream in (AGENT, DEAD, f"KV_{CLAIMS}"):
            await runtime.connection.js.delete_stream(stream)
        await clear(runtime.journal)


class Slow:
    """A judge's model that says when it is asked, and answers when it may."""

    def __init__(self) -> None:
        self.asked = asyncio.Event()
        self.may = asyncio.Event()
        self.calls = 0

    async def __call__(self, request: Request) -> Any:
        self.calls += 1
        self.asked.set()
        await self.may.wait()
        return judged(request)

    def agent(self, *answers: str) -> Agent[Any, str]:
        judge = ModelSemanticValidator(FunctionEngine(self))
        return Agent(Script(*(answers or ("a dog",))), validators=[judge], name="dogs")


async def child(runtime: NatsRuntime, loop_id: str) -> State:
    (name,) = fold(await runtime.journal.read(loop_id)).children
    return fold(await runtime.journal.read(name))


async def test_what_a_judge_asks_is_recorded_and_counted(runtime: NatsRuntime) -> None:
    agent = Agent(Script("a cat", "a dog"), validators=[ModelSemanticValidator(Script(judged))], name="dogs")
    async with working(runtime, agent):
        result = await agent.run("Bark.", runtime=runtime, loop_id="dog")
    assert (result.output, result.usage.requests) == ("a dog", 4)
    events = await runtime.journal.read("dog")
    for kind in (ChildStarted, ChildEnded):
        assert len([event for event in events if isinstance(event, kind)]) == 2
    assert await dead_letters(runtime.bus) == []


async def test_a_prompt_function_may_begin_one_too(runtime: NatsRuntime) -> None:
    helper = Agent(Script("Be kind."), name="helper")

    async def told(ctx: RunContext[Any]) -> str:
        return (await helper.run("How?", parent=ctx)).output

    agent = Agent(Script("Hello."), instructions=[told], name="greeter")
    async with working(runtime, agent):
        result = await agent.run("Hi.", runtime=runtime, loop_id="hi")
    assert (result.messages[0].text, result.usage.requests) == ("Be kind.", 2)
    assert (await child(runtime, "hi")).outcome is Outcome.SUCCESS


async def test_a_judge_whose_worker_goes_away_is_gone_on_with(runtime: NatsRuntime) -> None:
    slow = Slow()
    agent = slow.agent()
    running = asyncio.create_task(agent.run("Bark.", runtime=runtime, loop_id="dog"))
    async with working(runtime, agent):
        await asyncio.wait_for(slow.asked.wait(), PATIENCE)
    slow.may.set()
    async with working(runtime, agent):
        result = await asyncio.wait_for(running, PATIENCE)
    assert (result.output, slow.calls) == ("a dog", 2)
    (name,) = fold(await runtime.journal.read("dog")).children
    assert [event for event in await runtime.journal.read(name) if isinstance(event, Resumed)]


async def test_a_cancel_ends_the_judge_with_the_run(runtime: NatsRuntime) -> None:
    slow = Slow()
    agent = slow.agent()
    async with working(runtime, agent):
        running = asyncio.create_task(agent.run("Bark.", runtime=runtime, loop_id="dog"))
        await asyncio.wait_for(slow.asked.wait(), PATIENCE)
        await runtime.signal("dog", Signal(SignalType.CANCEL))
        with pytest.raises(CancelledSignal):
            await asyncio.wait_for(running, PATIENCE)
    state = await child(runtime, "dog")
    assert (state.outcome, state.at) == (Outcome.CANCELLED, "done")
    assert await dead_letters(runtime.bus) == []


async def test_a_pause_reaches_the_judge_and_so_does_what_ends_it(runtime: NatsRuntime) -> None:
    slow = Slow()
    agent = slow.agent()
    async with working(runtime, agent):
        running = asyncio.create_task(agent.run("Bark.", runtime=runtime, loop_id="dog"))
        await asyncio.wait_for(slow.asked.wait(), PATIENCE)
        await runtime.signal("dog", Signal(SignalType.PAUSE))
        async with asyncio.timeout(PATIENCE):
            while not is_paused(await child(runtime, "dog")):  # noqa: ASYNC110 - workers write it
                await asyncio.sleep(0.01)
        await runtime.signal("dog", Signal(SignalType.RESUME))
        async with asyncio.timeout(PATIENCE):
            while is_paused(await child(runtime, "dog")):  # noqa: ASYNC110 - workers write it
                await asyncio.sleep(0.01)
        slow.may.set()
        result = await asyncio.wait_for(running, PATIENCE)
    assert (result.output, result.usage.requests) == ("a dog", 2)
    assert await dead_letters(runtime.bus) == []
