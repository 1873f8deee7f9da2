"""Calls that are deferred, and tools that are asked to detach, where loop, model and tools are apart."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from typing import Any

import msgspec
import pytest

from flyball import (
    Agent,
    CallDeferred,
    Deferred,
    DeferredToolResult,
    RunContext,
    ToolOutputTruncation,
    tool,
    truncate_tool_output,
)
from flyball.core.errors import JournalUnreachable
from flyball.core.events import SignalReceived
from flyball.core.signals import Signal, SignalType
from flyball.inference.answers import tool_call as call
from flyball.orchestrate.machine import effect_id
from flyball.orchestrate.recorded import load
from flyball.runtime.nats import NatsRuntime
from flyball.runtime.nats.dead import dead_letters
from flyball.runtime.nats.messages.told import read_told, write_signal
from flyball.runtime.nats.workers.detaching import Detaching, ask_to_detach
from tests.orchestrate.models import Place, Script
from tests.patience import PATIENCE
from tests.runtime.nats.test_runtime import runtime, working
from tests.runtime.nats.test_wire import envelope, heard, kept

__all__ = ["runtime"]
BUILD = call("build", {"target": "app"})


@tool
async def build(target: str) -> str:
    """Have something built."""
    raise CallDeferred(f"{target} is in the queue")


def builder() -> Agent[Any, str]:
    return Agent(Script(BUILD, "done"), tools=[build], name="builder")


async def apart(stack: AsyncExitStack, runtime: NatsRuntime, agent: Agent[Any, Any]) -> None:
    for kind in ("loop", "model", "tools"):
        await stack.enter_async_context(working(runtime, agent, serve=(kind,)))


async def deferral(agent: Agent[Any, Any], runtime: NatsRuntime, loop_id: str) -> Deferred:
    with pytest.raises(Deferred) as caught:
        await asyncio.wait_for(agent.run("go", runtime=runtime, loop_id=loop_id), PATIENCE)
    return caught.value


@pytest.mark.parametrize("named", ["by the effect", "by the call"])
async def test_anybody_answers_by_a_plain_result(runtime: NatsRuntime, named: str) -> None:
    agent, loop_id = builder(), named.replace(" ", "-")
    async with AsyncExitStack() as stack:
        await apart(stack, runtime, agent)
        (request,) = (await deferral(agent, runtime, loop_id)).requests
        entity = await kept(runtime, "AGENT_LOOPS", loop_id)
        assert entity["state"] == "executing"
        assert "pending_tool_results" not in entity
        events, state = await load(runtime.journal, loop_id)
        result = {"call_id": request.tool_call_id, "name": "build", "content": "green", "loop_id": loop_id}
        if named == "by the effect":
            result["call_id"] = effect_id(state, "execute", 0)
        for subject in (f"tool.result.{loop_id}", "tool.result.again"):
            await runtime.connection.js.publish(subject, envelope("tool_result", result))
        await asyncio.wait_for(
            runtime.journal.wait(loop_id, len(events)), PATIENCE
        )  # until then it is deferred
        ended = await asyncio.wait_for(runtime.result(agent, loop_id), PATIENCE)
        assert ended.messages[2].tool_results[0].text == "green"
        assert not await dead_letters(runtime.bus)


async def test_a_plain_result_is_cut_like_any_other(runtime: NatsRuntime) -> None:
    agent, text = builder().clone(features=[ToolOutputTruncation(20)]), "line\n" * 500
    async with AsyncExitStack() as stack:
        await apart(stack, runtime, agent)
        (request,) = (await deferral(agent, runtime, "long")).requests
        result = {"call_id": request.tool_call_id, "name": "build", "content": text, "loop_id": "long"}
        length = len(await runtime.journal.read("long"))
        await runtime.connection.js.publish("tool.result.long", envelope("tool_result", result))
        await asyncio.wait_for(runtime.journal.wait("long", length), PATIENCE)  # until then it is deferred
        ended = await asyncio.wait_for(runtime.result(agent, "long"), PATIENCE)
        assert ended.messages[2].tool_results[0].text == truncate_tool_output(text, 20)


async def test_a_loop_that_nobody_keeps_takes_no_results_yet(
    runtime: NatsRuntime, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent = builder()
    async with working(runtime, agent):
        (request,) = (await deferral(agent, runtime, "one")).requests
    results, length = [DeferredToolResult("build", request.tool_call_id, "green")], 3
    published = runtime.bus.publish

    async def then_hurry(*said: Any, **more: Any) -> bool:
        """Once it is on the wire, the one who waits for a worker has little patience."""
        there = await published(*said, **more)
        runtime.connection.patience = 0.3
        return there

    with monkeypatch.context() as hurry:
        hurry.setattr(runtime.bus, "publish", then_hurry)
        with pytest.raises(JournalUnreachable, match="has taken the results"):
            await runtime.answer("one", results)
    runtime.connection.patience = PATIENCE
    assert len(await runtime.journal.read("one")) == length
    async with working(runtime, agent):
        await runtime.journal.wait("one", length)
        assert (await asyncio.wait_for(runtime.result(agent, "one"), PATIENCE)).output == "done"
        await runtime.answer("one", results)


async def test_a_call_of_somebody_elses_loop_is_not_answered_while_it_is_deferred(
    runtime: NatsRuntime,
) -> None:
    begun = asyncio.Event()

    @tool
    async def queue(item: str) -> str:
        """Put something into a queue."""
        begun.set()
        if item == "tea":
            raise CallDeferred("later")
        return "at once"

    agent = Agent(Script("never"), tools=[queue], name="general")
    async with working(runtime, agent, serve=("tools",)):
        for name, item in (("c-1", "tea"), ("c-2", "coal")):
            asked = {"id": name, "name": "queue", "arguments": {"item": item}, "loop_id": "theirs"}
            await runtime.connection.js.publish("tool.execute.queue", envelope("tool_call", asked, name))
        await asyncio.wait_for(begun.wait(), PATIENCE)
        await heard(runtime, "tool.result.c-2")
        with pytest.raises(Exception, match="no message found"):
            await runtime.connection.js.get_last_msg("AGENT", "tool.result.c-1")


# Detach


def watcher(place: Place, seen: list[bool]) -> Agent[Any, str]:
    @tool
    async def watch(ctx: RunContext[Any]) -> str:
        """Watch, until it is asked to detach."""
        seen.append(ctx.detach.is_set())
        place.entered.set()
        await ctx.detach.wait()
        return "goes on"

    return Agent(Script(call("watch"), "done"), tools=[watch], name="watcher")


async def test_the_word_reaches_a_worker_that_is_apart(runtime: NatsRuntime) -> None:
    place = Place()
    agent = watcher(place, [])
    async with AsyncExitStack() as stack:
        await apart(stack, runtime, agent)
        await runtime.submit(agent, "go", loop_id="one")
        await asyncio.wait_for(place.entered.wait(), PATIENCE)
        await runtime.signal("one", "detach")
        assert (await asyncio.wait_for(runtime.result(agent, "one"), PATIENCE)).output == "done"


async def test_who_runs_a_call_again_knows_that_it_was_asked(runtime: NatsRuntime) -> None:
    """The worker that ran it dies after it was asked; the message is older than the signal."""
    place, seen = Place(), list[bool]()
    agent = watcher(place, seen)

    deaf, died = Place(), list[bool]()

    @tool
    async def watch(ctx: RunContext[Any]) -> str:
        """The same tool, in a process that will not live."""
        died.append(ctx.detach.is_set())
        await deaf.hang()
        return "never"

    other = Agent(Script(), tools=[watch], name="watcher")
    async with working(runtime, agent, serve=("loop", "model"), hold=2.0):
        async with working(runtime, other, serve=("tools",), hold=2.0):
            await runtime.submit(agent, "go", loop_id="one")
            await asyncio.wait_for(deaf.entered.wait(), PATIENCE)
            await runtime.signal("one", "detach")
        events, state = await load(runtime.journal, "one")
        assert state.detached == (0,)
        assert isinstance(events[-1], SignalReceived)
        async with working(runtime, agent, serve=("tools",), hold=2.0):
            assert (await asyncio.wait_for(runtime.result(agent, "one"), PATIENCE)).output == "done"
    assert (died, seen) == ([False], [True])


async def test_a_word_that_comes_before_the_call_is_remembered(runtime: NatsRuntime) -> None:
    detaching = Detaching(runtime.connection)
    await detaching.listen()
    await runtime.connection.flush()
    early = detaching.detach("loop/1/1/execute/0")
    await ask_to_detach(runtime.bus, "loop", ["loop/1/1/execute/0", "loop/1/1/execute/1"])
    await asyncio.wait_for(early.wait(), PATIENCE)
    assert detaching.detach("loop/1/1/execute/1").is_set()
    assert not detaching.detach("loop/1/1/execute/2").is_set()


def test_detach_travels_in_our_own_words() -> None:
    """SemStreams has seven signals; others are told nothing that they would have to refuse."""
    signal = Signal(SignalType.DETACH, id="s1", by="ann", call_id="c1")
    data = write_signal("one", signal, 5.0)
    assert msgspec.json.decode(data)["type"]["domain"] == "flyball"
    told: Any = read_told(data, "agent.signal.one")
    assert (told.loop_id, told.event) == ("one", SignalReceived(5.0, signal))
