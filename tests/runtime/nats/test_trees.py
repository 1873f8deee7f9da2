"""Agents as tools on NATS: no place is held for a loop that is waited for; all of a tree can be reached."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack
from typing import Any

import msgspec
import pytest

from flyball import Agent, CallDeferred, DeferredToolResult, RunContext, calls_waiting, tool
from flyball.core.errors import CancelledSignal, SignalRefused, UserError
from flyball.core.events import ChildEnded, Outcome, SignalReceived, ToolReturned
from flyball.core.messages import Role
from flyball.identity import ActsAs, AgentIdentity, MemoryProvider, verify_chain
from flyball.inference.answers import tool_call as call
from flyball.inference.request import Request
from flyball.inference.scripted import FunctionEngine
from flyball.orchestrate.machine import fold
from flyball.orchestrate.state import State
from flyball.runtime.nats import NatsJournal, NatsOptions, NatsRuntime
from flyball.runtime.nats.messages.told import write_ended
from flyball.runtime.nats.subjects import DEAD, result_subject
from flyball.runtime.nats.wire import AGENT, CLAIMS, hired_for_tool
from flyball.runtime.nats.workers.agents import Agents
from tests.orchestrate.models import Hanging, Place, Script
from tests.patience import PATIENCE
from tests.runtime.nats.conftest import clear
from tests.runtime.nats.crashing import nothing_left
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


@tool
async def step(n: int) -> str:
    """Take a step."""
    return f"step {n}"


@tool(approval=True)
async def pay(amount: int) -> str:
    """Pay."""
    return f"paid {amount}"


@tool
async def build() -> str:
    """Build, elsewhere."""
    raise CallDeferred("a server builds it")


def above(low: Agent[Any, Any]) -> Agent[Any, str]:
    middle = Agent(
        Script(call("low", {"prompt": "?"}), "middle done"), tools=[low.as_tool("low")], name="middle"
    )
    return Agent(Script(call("middle", {"prompt": "?"}), "all done"), tools=[middle.as_tool()], name="top")


def wide(depth: int, width: int) -> Agent[Any, str]:
    """One that asks `width` at once, each of which does, and so on; the lowest take a step."""
    if not depth:
        return Agent(Script(call("step", {"n": 1}), "leaf"), tools=[step], name="leaf")
    calls = [call("ask", {"prompt": f"{depth} {n}"}, id=f"c{n}") for n in range(width)]
    below = wide(depth - 1, width).as_tool("ask")
    return Agent(Script(calls, f"done {depth}"), tools=[below], name=f"level-{depth}")


async def loop(runtime: NatsRuntime, loop_id: str) -> State:
    return fold(await runtime.journal.read(loop_id))


async def lowest(runtime: NatsRuntime, loop_id: str) -> State:
    state = await loop(runtime, loop_id)
    while state.children:
        state = await loop(runtime, state.children[0])
    return state


async def waits(runtime: NatsRuntime, loop_id: str) -> None:
    """Wait until a call below does."""
    await runtime.journal.wait(loop_id, 0)
    async with asyncio.timeout(PATIENCE):
        while not await calls_waiting(runtime.journal, loop_id):  # noqa: ASYNC110 - workers write it
            await asyncio.sleep(0.01)


# Places


@pytest.mark.parametrize("nearby", [True, False])
async def test_a_tree_that_is_wider_and_deeper_than_there_is_room_comes_to_its_end(
    runtime: NatsRuntime, nearby: bool
) -> None:
    """One place for a call of each tool; three deep, three at once, and all tools are of one name."""
    agent = wide(2, 3)
    async with working(runtime, agent, room=1, nearby=nearby):
        result = await asyncio.wait_for(agent.run("go", runtime=runtime, loop_id="root"), PATIENCE)
    assert (result.output, result.usage.requests) == ("done 2", 26)
    assert len(await runtime.journal.loops()) == 13
    returned = [event for event in await result.events() if isinstance(event, ToolReturned)]
    assert [event.result.content for event in returned] == ["done 1"] * 3


async def test_also_where_the_workers_are_apart(runtime: NatsRuntime) -> None:
    agent = wide(2, 2)
    async with AsyncExitStack() as stack:
        for kind in ("loop", "model", "tools", "loop", "tools"):
            await stack.enter_async_context(working(runtime, agent, serve=(kind,), room=1))
        result = await asyncio.wait_for(agent.run("go", runtime=runtime), PATIENCE)
    assert (result.output, result.usage.requests) == ("done 2", 14)


async def test_that_a_loop_is_over_may_be_said_twice_and_to_nobody(runtime: NatsRuntime) -> None:
    agent = wide(1, 1)
    async with working(runtime, agent):
        result = await agent.run("go", runtime=runtime, loop_id="twice")
        ended = next(event for event in await result.events() if isinstance(event, ChildEnded))
        for loop_id in ("twice", "nowhere"):
            data, name = write_ended(loop_id, ended), f"again-{loop_id}"
            await runtime.bus.publish(result_subject(name), data, name, loop_id=loop_id)
        again = await asyncio.wait_for(agent.run("go", runtime=runtime, loop_id="after"), PATIENCE)
    assert again.output == "done 1"
    assert await result.events() == await runtime.journal.read("twice")


async def rests(runtime: NatsRuntime, workers: str) -> None:
    """Wait until workers have nothing to do: no message is theirs, nor is being worked on."""
    connection = runtime.connection
    async with asyncio.timeout(PATIENCE):
        while True:
            info = await connection.patiently(lambda: connection.js.consumer_info(AGENT, workers))
            if not info.num_pending and not info.num_ack_pending:
                return
            await asyncio.sleep(0.01)


async def test_a_call_that_is_run_again_takes_no_result_before_it_is_counted(runtime: NatsRuntime) -> None:
    """Whoever ran it died, and the loop under it is about to end: its outcome is known, and not yet told."""
    place = Place()

    async def deliver(*_: Any) -> None:
        await place.hang()

    low = Agent(Script("low done"), deliveries=[deliver], name="low")
    agent = Agent(Script(call("low", {"prompt": "?"}), "done"), tools=[low.as_tool("low")], name="top")
    async with working(runtime, agent, nearby=False):
        running = asyncio.create_task(agent.run("go", runtime=runtime, loop_id="root"))
        await asyncio.wait_for(place.entered.wait(), PATIENCE)
        old = await runtime.connection.js.get_last_msg(AGENT, "tool.execute.low")
        await runtime.connection.js.publish(old.subject, old.data)
        await rests(runtime, hired_for_tool("low"))
        assert not any(isinstance(event, ToolReturned) for event in await runtime.journal.read("root"))
        place.let_go.set()
        result = await asyncio.wait_for(running, PATIENCE)
    assert (result.output, result.usage.requests) == ("done", 3)


async def test_a_call_takes_the_result_of_its_own_loop_and_of_no_other(runtime: NatsRuntime) -> None:
    """That one loop is over is told once more, while another call still waits for its own."""
    model = Hanging(answer="second")
    quick, slow = Agent(Script("first"), name="quick"), Agent(model, name="slow")
    calls = [call("quick", {"prompt": "?"}, id="q"), call("slow", {"prompt": "?"}, id="s")]
    agent = Agent(Script(calls, "done"), tools=[quick.as_tool(), slow.as_tool()], name="top")
    async with working(runtime, agent, nearby=False):
        running = asyncio.create_task(agent.run("go", runtime=runtime, loop_id="root"))
        await runtime.journal.wait("root", 0)
        events = await runtime.journal.read("root")
        while not any(isinstance(event, ToolReturned) for event in events):
            await runtime.journal.wait("root", len(events))
            events = await runtime.journal.read("root")
        ended = next(event for event in events if isinstance(event, ChildEnded))
        await runtime.bus.publish(
            result_subject("again"), write_ended("root", ended), "again", loop_id="root"
        )
        for workers in ("loop", hired_for_tool("slow"), "loop"):
            await rests(runtime, workers)
        model.place.let_go.set()
        result = await asyncio.wait_for(running, PATIENCE)
    assert [one.text for one in result.messages[2].tool_results] == ["first", "second"]


def test_an_agent_comes_with_those_that_it_asks() -> None:
    agents = Agents([wide(2, 1)])
    assert agents.names == ["level-2", "level-1", "leaf"]
    assert agents.tools() == ["ask", "step"]
    nameless = Agent(Script("x"), instructions="Be brief.")
    with pytest.raises(UserError, match="one of which is a tool of 'agent'"):
        Agents([Agent(Script("y"), tools=[nameless.as_tool("other")])])


# What is said to the one above


async def deeper(request: Request) -> Any:
    """Asks itself with one less, down to 0."""
    last = request.messages[-1]
    if last.role is Role.TOOL:
        return f"{last.tool_results[0].text}, then up"
    left = int(last.text)
    return call("diver", {"prompt": f"{left - 1}"}) if left else "the ground"


async def test_an_agent_may_be_a_tool_of_itself(runtime: NatsRuntime) -> None:
    diver = Agent(FunctionEngine(deeper), name="diver")
    diver.tool(diver.as_tool())
    async with working(runtime, diver), asyncio.timeout(20):
        result = await diver.run("3", runtime=runtime, loop_id="dive")
    assert result.output == "the ground, then up, then up, then up"
    assert result.usage.requests == 7


def test_agents_may_be_tools_of_each_other() -> None:
    ping, pong = Agent(Script("x"), name="ping"), Agent(Script("y"), name="pong")
    ping.tool(pong.as_tool())
    pong.tool(ping.as_tool())
    assert Agents([ping]).names == ["ping", "pong"]


async def test_an_approval_reaches_the_loop_that_waits_for_it(runtime: NatsRuntime) -> None:
    low = Agent(Script(call("pay", {"amount": 3}, id="pay_3"), "low done"), tools=[pay], name="low")
    agent = above(low)
    async with working(runtime, agent):
        running = asyncio.create_task(agent.run("go", runtime=runtime, loop_id="root"))
        await waits(runtime, "root")
        with pytest.raises(SignalRefused):
            await runtime.signal("root", "approve", call_id="another")
        await runtime.signal("root", "approve", call_id="pay_3", by="ann")
        assert (await asyncio.wait_for(running, PATIENCE)).output == "all done"
    state = await lowest(runtime, "root")
    assert state.history[2].tool_results[0].content == "paid 3"


async def test_it_may_come_after_all_workers_were_away(runtime: NatsRuntime) -> None:
    low = Agent(Script(call("pay", {"amount": 3}), "low done"), tools=[pay], name="low")
    agent = above(low)
    async with working(runtime, agent):
        await runtime.submit(agent, "go", loop_id="root")
        await waits(runtime, "root")
        # Nothing is held for those who wait: there is nothing left to be given out again.
        await asyncio.wait_for(nothing_left(runtime), PATIENCE)
    changed = above(low.clone(instructions="Another release."))
    async with working(runtime, changed):
        await runtime.signal("root", "reject", "too dear")
        assert (await asyncio.wait_for(runtime.result(agent, "root"), PATIENCE)).output == "all done"
    assert len(await runtime.journal.loops()) == 3, "what had begun went on, and nothing was begun anew"


async def test_a_result_reaches_the_call_that_waits_for_it(runtime: NatsRuntime) -> None:
    low = Agent(Script(call("build", {}, id="build_1"), "low done"), tools=[build], name="low")
    agent = above(low)
    async with working(runtime, agent):
        running = asyncio.create_task(agent.run("go", runtime=runtime, loop_id="root"))
        await waits(runtime, "root")
        await runtime.answer("root", [DeferredToolResult("build", "build_1", "green")])
        assert (await asyncio.wait_for(running, PATIENCE)).output == "all done"
    assert (await lowest(runtime, "root")).history[2].tool_results[0].content == "green"


async def test_a_tool_of_ones_own_waits_with_such_a_child(runtime: NatsRuntime) -> None:
    low = Agent(Script(call("build", {}, id="build_1"), "low done"), tools=[build], name="low")

    @tool
    async def ask(ctx: RunContext[Any]) -> str:
        return (await low.run("?", parent=ctx)).output

    agent = Agent(Script(call("ask"), "done"), tools=[ask], name="top")
    async with working(runtime, agent, low):
        running = asyncio.create_task(agent.run("go", runtime=runtime, loop_id="root"))
        await waits(runtime, "root")
        await runtime.answer("root", [DeferredToolResult("build", "build_1", "green")])
        assert (await asyncio.wait_for(running, PATIENCE)).usage.requests == 4


async def test_a_pause_reaches_all_and_so_does_what_ends_it(runtime: NatsRuntime) -> None:
    model = Hanging()

    class Then(Script):
        async def infer(self, request: Any) -> Any:
            return await (model.infer(request) if len(request.messages) == 1 else super().infer(request))

    agent = above(Agent(Then("never"), tools=[step], name="low"))
    async with working(runtime, agent):
        running = asyncio.create_task(agent.run("go", runtime=runtime, loop_id="root"))
        await model.place.entered.wait()
        for kind in ("pause", "resume"):
            await runtime.signal("root", kind)
            low = await lowest(runtime, "root")
            async with asyncio.timeout(PATIENCE):
                while kind not in _signals(await runtime.journal.read(low.loop_id)):  # noqa: ASYNC110
                    await asyncio.sleep(0.01)
            assert kind in _signals(await runtime.journal.read(low.parent_loop_id))
        model.place.let_go.set()
        assert (await asyncio.wait_for(running, PATIENCE)).output == "all done"


def _signals(events: list[Any]) -> list[str]:
    return [str(event.signal.type) for event in events if isinstance(event, SignalReceived)]


async def test_a_cancel_reaches_all(runtime: NatsRuntime) -> None:
    model = Hanging()
    agent = above(Agent(model, name="low"))
    async with working(runtime, agent):
        running = asyncio.create_task(agent.run("go", runtime=runtime, loop_id="root"))
        await model.place.entered.wait()
        await runtime.signal("root", "cancel", "enough", by="me")
        with pytest.raises(CancelledSignal):
            await asyncio.wait_for(running, PATIENCE)
        low = await lowest(runtime, "root")
        async with asyncio.timeout(PATIENCE):
            while (await loop(runtime, low.loop_id)).at != "done":  # noqa: ASYNC110 - workers write it
                await asyncio.sleep(0.01)
    state = await loop(runtime, low.loop_id)
    assert (state.depth, state.outcome) == (2, Outcome.CANCELLED)


# Identities


@pytest.mark.parametrize("nearby", [True, False])
async def test_a_child_is_handed_what_its_parent_holds(runtime: NatsRuntime, nearby: bool) -> None:
    provider = MemoryProvider()
    clerk, boss = await provider.create("clerk"), await provider.create("boss", capabilities=["a", "b"])
    below = Agent(Script("ok"), name="clerk", features=[ActsAs(clerk, provider, takes=["a", "c"])])
    ask = Script(call("clerk", {"prompt": "?"}), "done")
    agent = Agent(ask, tools=[below.as_tool()], name="boss", features=[ActsAs(boss, provider)])
    async with working(runtime, agent, nearby=nearby):
        await asyncio.wait_for(agent.run("go", runtime=runtime, loop_id="root"), PATIENCE)
    assert (await loop(runtime, "root")).identity == boss.write()
    handed = AgentIdentity.recorded((await lowest(runtime, "root")).identity)
    assert handed is not None
    assert handed.did == clerk.did
    assert (await verify_chain(handed, provider)).granted == ("a",)
