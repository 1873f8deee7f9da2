"""Loops that workers carry on are told by the loop workers: each recorded event once, by who appended it."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections import Counter
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import msgspec
import pytest

from flyball import (
    Agent,
    CallDeferred,
    DeferredToolResult,
    EventBus,
    Hook,
    Observer,
    RunContext,
    ToolCalledEvent,
    Tracing,
    tool,
)
from flyball.core.errors import FlyballError
from flyball.inference.answers import tool_call as call
from flyball.observe.log_events import timeline as timeline_of_log
from flyball.orchestrate.calls import waits_for_results
from flyball.orchestrate.machine import fold
from flyball.orchestrate.projections import event_log, timeline
from flyball.orchestrate.projections.runtime_events import run_trace, runtime_events
from flyball.runtime.nats import EmbeddedServer, NatsOptions, NatsRuntime
from tests.orchestrate.models import Script
from tests.orchestrate.scenarios import SCENARIOS, STOPPER, WORKER, Scenario, add, pay
from tests.orchestrate.watching_scenarios import USUAL, heard_by, some
from tests.patience import PATIENCE
from tests.runtime.nats.test_kills import lines, noted
from tests.runtime.nats.test_runtime import runtime, working
from tests.runtime.nats.watched_child import make_watched

__all__ = ["runtime"]


@pytest.mark.parametrize("scenario", some(SCENARIOS, lambda scenario: scenario in USUAL), ids=repr)
async def test_what_is_told_is_what_the_journal_says(runtime: NatsRuntime, scenario: Scenario) -> None:
    agent, heard = heard_by(scenario.make())
    async with working(runtime, agent, WORKER, STOPPER):
        try:
            result = await agent.run(scenario.prompt, **scenario.options, runtime=runtime)
        except FlyballError as error:
            result = error.partial
        told = list(runtime_events(await result.events()))
        await until(lambda: len(heard) >= len(told))
    assert heard == told


@pytest.mark.parametrize("scenario", some(SCENARIOS, lambda scenario: scenario in USUAL), ids=repr)
async def test_the_log_is_that_of_the_journal(runtime: NatsRuntime, scenario: Scenario) -> None:
    observer, made = Observer(), scenario.make()
    agent = made.clone(features=[observer, *made.config.features])
    async with working(runtime, agent, WORKER, STOPPER):
        try:
            result = await agent.run(scenario.prompt, **scenario.options, runtime=runtime)
        except FlyballError as error:
            result = error.partial
        events = await result.events()
        told = list(event_log(events))
        await until(lambda: len(observer.events()) >= len(told))
    assert list(observer.events()) == told
    assert timeline_of_log(told) == timeline(events)


async def until(holds: Any) -> None:
    """Wait for what other tasks do: who waits for a loop hears of its end from the journal."""
    async with asyncio.timeout(PATIENCE):
        while not holds():  # noqa: ASYNC110 - there is nothing to be woken by
            await asyncio.sleep(0.001)


async def test_many_workers_tell_each_event_once_between_them(runtime: NatsRuntime) -> None:
    steps = [call("add", {"x": n, "y": 1}) for n in range(4)]
    agent, heard = heard_by(Agent(Script(*steps, steps, "done"), tools=[add], name="adder"))
    async with AsyncExitStack() as stack:
        for kind in ("loop", "loop", "loop", "model", "tools", "tools"):
            await stack.enter_async_context(working(runtime, agent, serve=(kind,)))
        results = await asyncio.gather(*[agent.run("go", runtime=runtime) for _ in range(10)])
        told = {result.run_id: list(runtime_events(await result.events())) for result in results}
        await until(lambda: len(heard) >= sum(map(len, told.values())))
    for run_id, events in told.items():
        own = [event for event in heard if event.run_id == run_id]
        assert Counter(map(repr, own)) == Counter(map(repr, events)), "each once, by whichever worker"


async def test_signals_and_results_from_outside(runtime: NatsRuntime) -> None:
    @tool
    async def ask() -> str:
        raise CallDeferred("somebody has to look")

    script = Script(call("pay", {"amount": 5}), call("ask"), "ok")
    agent, heard = heard_by(Agent(script, tools=[pay, ask], name="payer"))
    async with working(runtime, agent):
        await runtime.submit(agent, "go", loop_id="one")
        await runtime.journal.wait("one", 1)
        await runtime.signal("one", "approve")
        await until(lambda: [event.type for event in heard].count("tool_called") == 2)
        while not waits_for_results(fold(events := await runtime.journal.read("one"))):
            await runtime.journal.wait("one", len(events))
        (asked,) = [
            event for event in heard if isinstance(event, ToolCalledEvent) and event.tool_name == "ask"
        ]
        await runtime.answer("one", [DeferredToolResult("ask", asked.tool_call_id, "seen")])
        result = await runtime.result(agent, "one")
        told = list(runtime_events(await result.events()))
        await until(lambda: len(heard) >= len(told))
    assert heard == told


async def test_hooks_and_the_bus_are_those_of_the_workers(runtime: NatsRuntime) -> None:
    """Neither travels: a caller's own hear nothing, and a result has its trace from the journal."""
    climbed: list[Any] = []

    @tool
    async def climb(ctx: RunContext[str]) -> str:
        assert ctx.event_bus is not None
        await ctx.event_bus.publish(ctx.deps)
        return "up"

    def made(features: list[Any]) -> Agent[str, str]:
        return Agent(
            Script(call("climb"), "ok"), tools=[climb], name="climber", deps_type=str, features=features
        )

    bus, theirs = EventBus(), list[Any]()
    bus.subscribe(str, climbed.append)

    def ended(ctx: RunContext[Any], *_: Any) -> None:
        theirs.append((ctx.deps, ctx.event_bus))

    hook = Hook(on_tool_end=ended)
    worker = made([bus, hook, Tracing()])
    caller, heard = heard_by(made([Tracing()]))
    async with working(runtime, worker, deps="bound here"):
        result = await caller.run("go", runtime=runtime)
        async with caller.run_stream("go", runtime=runtime) as stream:
            streamed = await stream.get_result()
    assert heard == []
    assert climbed == ["bound here"] * 2
    assert theirs == [("bound here", bus)] * 2
    for one in (result, streamed):
        assert one.trace == run_trace(await one.events())


# kill -9

PLACES = ("run_started", "model_requested", "tool_called", "tool_ended", "turn_ended")


@pytest.mark.slow
@pytest.mark.parametrize(
    "place", ["run_started", "model_requested", "tool_called", "tool_ended", "turn_ended"]
)
async def test_a_worker_that_is_killed_while_it_tells_tells_nothing_twice(place: str, tmp_path: Path) -> None:
    """What it had recorded and not told is told by nobody; the run comes to its end."""
    log = tmp_path / "told"
    log.touch()
    (tmp_path / f"die-{place}").touch()
    agent = make_watched(log)
    async with (
        EmbeddedServer(tmp_path / "server") as server,
        await NatsRuntime.open(server.options) as runtime,
    ):
        first = child(server.options, log)
        running = asyncio.create_task(agent.run("go", runtime=runtime, loop_id="one"))
        await noted(log, 1, f"dying {place}")
        assert await asyncio.to_thread(first.wait, PATIENCE) == -signal.SIGKILL
        os.unlink(tmp_path / f"die-{place}")
        second = child(server.options, log)
        try:
            result = await asyncio.wait_for(running, PATIENCE)
            events = [event.type for event in runtime_events(await result.events())]
            await noted(log, 1, "run_completed")
        finally:
            second.kill()
            second.wait()
    assert result.output == "done"
    told = [line.split()[0] for line in lines(log, "") if not line.startswith("dying")]
    missing = Counter(events) - Counter(told)
    assert not Counter(told) - Counter(events), "nothing is told twice"
    assert told[-1] == "run_completed"
    assert missing[place] == 1, "who was told just then has not heard it"
    rest = iter(events)
    assert all(one in rest for one in told), "in their order"


def child(options: NatsOptions, log: Path) -> subprocess.Popen[bytes]:
    command = [
        sys.executable,
        "-m",
        "tests.runtime.nats.watched_child",
        msgspec.json.encode(options).decode(),
    ]
    return subprocess.Popen([*command, str(log)], stdout=subprocess.DEVNULL)
