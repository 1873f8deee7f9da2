"""Flows over a real NATS server: their journals beside those of the loops under them, which workers keep."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from flyball import Agent, Outcome, RunContext, pending_approvals, tool
from flyball.core.errors import CancelledSignal, LoopMismatch, UserError
from flyball.core.events import Stage, StepEnded
from flyball.core.signals import Signal, SignalType
from flyball.inference.answers import tool_call as call
from flyball.orchestrate.flow.steps import AgentStep, ParallelSteps, Pipeline, Step, TransformStep
from flyball.orchestrate.machines import fold
from flyball.orchestrate.projections import normal_form
from flyball.orchestrate.recorded import load, load_any
from flyball.runtime.nats import NatsJournal, NatsOptions, NatsRuntime
from flyball.runtime.nats.crew import ALL, Crew
from flyball.runtime.nats.dead import dead_letters
from flyball.runtime.nats.messages.told import write_signal
from flyball.runtime.nats.subjects import DEAD, signal_subject
from flyball.runtime.nats.wire import AGENT, CLAIMS
from tests.orchestrate.models import Hanging, NeverAsked, Script
from tests.patience import PATIENCE
from tests.runtime.nats.conftest import clear
from tests.runtime.nats.flow_child import LOOP, make_agents, make_flow


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


@asynccontextmanager
async def working(runtime: NatsRuntime, *agents: Agent[Any, Any]) -> AsyncGenerator[Crew]:
    opened = await NatsJournal.open(runtime.connection.options)
    async with opened as journal, Crew(journal, agents, ALL) as crew:
        yield crew


async def in_place(log: Path) -> list[Any]:
    result = await make_flow(log).run("Why", loop_id=LOOP)
    return [result.output, result.usage, normal_form(await result.events())]


async def test_a_flow_comes_to_the_same_end_as_in_process(runtime: NatsRuntime, tmp_path: Path) -> None:
    log = tmp_path / "log"
    async with working(runtime, *make_agents()):
        result = await make_flow(log).run("Why", runtime=runtime, loop_id=LOOP)
        assert [result.output, result.usage, normal_form(await result.events())] == await in_place(log)
        assert result.output == ["shorter", "A DRAFT!"]
        child = fold(await runtime.journal.read(f"{LOOP}-s1"))
        assert (child.parent_loop_id, child.depth) == (LOOP, 1)
        assert await dead_letters(runtime.bus) == []


@pytest.mark.parametrize("place", ["ask", "read", "shout", "close"])
async def test_a_flow_whose_process_is_killed_goes_on_where_it_stood(
    runtime: NatsRuntime, tmp_path: Path, place: str
) -> None:
    log = tmp_path / "log"
    options = msgspec.json.encode(runtime.connection.options).decode()
    command = [sys.executable, "-m", "tests.runtime.nats.flow_child", options, str(log), place]
    async with working(runtime, *make_agents()):
        process = await asyncio.create_subprocess_exec(*command, stdout=subprocess.DEVNULL)
        assert await asyncio.wait_for(process.wait(), PATIENCE) == -signal.SIGKILL
        before = log.read_text().splitlines()
        ended = [event for event in await runtime.journal.read(LOOP) if isinstance(event, StepEnded)]
        result = await asyncio.wait_for(make_flow(log).run("Why", runtime=runtime, loop_id=LOOP), PATIENCE)
        assert result.output == ["shorter", "A DRAFT!"]
        assert result.usage.requests == 2
        names = {step.name for step in result.steps if step.path in [event.path for event in ended]}
        assert not names & set(log.read_text().splitlines()[len(before) :]), (
            "what was recorded is not run again"
        )
        assert [result.output, result.usage, normal_form(await result.events())] == await in_place(log)


async def test_a_cancel_reaches_the_loops_under_a_flow(runtime: NatsRuntime) -> None:
    hanging, waiting = Hanging(), Agent(Script("never"), name="waiting")
    slow = Agent(hanging, name="slow")
    flow = Pipeline(ParallelSteps(AgentStep(slow), TransformStep(lambda text: text)), AgentStep(waiting))
    async with working(runtime, slow, waiting):
        running = asyncio.ensure_future(flow.run("go", runtime=runtime, loop_id="f"))
        await runtime.journal.wait("f-s0_0", 0)
        assert await runtime.signal("f", SignalType.CANCEL, "enough", by="ann") is Stage.CANCELLED
        with pytest.raises(CancelledSignal, match="by ann: enough"):
            await asyncio.wait_for(running, PATIENCE)
        await wait_for_end(runtime, "f-s0_0")
        _, child = await load(runtime.journal, "f-s0_0")
        assert child.outcome is Outcome.CANCELLED
        assert await dead_letters(runtime.bus) == []


async def test_a_flow_is_paused_with_what_runs_under_it_and_goes_on(runtime: NatsRuntime) -> None:
    gate = asyncio.Event()

    @tool
    async def look() -> str:
        """Look."""
        await gate.wait()
        return "seen"

    agent = Agent(Script(call("look"), "done"), tools=[look], name="looker")
    flow = Pipeline(AgentStep(agent), TransformStep(str.upper))
    async with working(runtime, agent):
        running = asyncio.ensure_future(flow.run("go", runtime=runtime, loop_id="f"))
        await runtime.journal.wait("f-s0", 1)
        assert await runtime.signal("f", SignalType.PAUSE) is Stage.PAUSED
        await has_signals(runtime, "f-s0", 1)
        gate.set()
        assert await runtime.signal("f", SignalType.RESUME) is Stage.EXECUTING
        assert (await asyncio.wait_for(running, PATIENCE)).output == "DONE"
        await has_signals(runtime, "f-s0", 2)


async def test_a_signal_on_the_wire_reaches_a_flow(runtime: NatsRuntime) -> None:
    """As others send it, who know subjects and no journals."""
    slow = Agent(Hanging(), name="slow")
    async with working(runtime, slow):
        running = asyncio.ensure_future(AgentStep(slow).run("go", runtime=runtime, loop_id="f"))
        await runtime.journal.wait("f", 1)
        data = write_signal("f", Signal(SignalType.CANCEL, "c", "ann"), 1.0)
        await runtime.bus.publish(signal_subject("f"), data, "f/c", loop_id="f")
        with pytest.raises(CancelledSignal):
            await asyncio.wait_for(running, PATIENCE)
        assert await dead_letters(runtime.bus) == []


async def test_a_flow_under_an_agent_is_cancelled_with_it(runtime: NatsRuntime) -> None:
    slow = Agent(Hanging(), name="slow")
    flow: Step[Any, str] = AgentStep(slow)

    @tool
    async def work(ctx: RunContext[None]) -> str:
        """Have a flow do it."""
        return (await flow.run("go", parent=ctx)).output

    boss = Agent(Script(call("work"), "done"), tools=[work], name="boss")
    async with working(runtime, boss, slow):
        await runtime.submit(boss, "go", loop_id="boss")
        async with asyncio.timeout(PATIENCE):
            while len(loops := await runtime.journal.loops()) < 3:
                await runtime.journal.wait("boss", len(await runtime.journal.read("boss")), 0.05)
        await runtime.signal("boss", SignalType.CANCEL)
        for loop_id in loops:
            await wait_for_end(runtime, loop_id)
            _, state = await load_any(runtime.journal, loop_id)
            assert state.outcome is Outcome.CANCELLED, loop_id
        depths = sorted([(await load_any(runtime.journal, loop_id))[1].depth for loop_id in loops])
        assert depths == [0, 1, 2]


async def test_what_is_asked_of_agents_is_refused_of_a_flow(runtime: NatsRuntime) -> None:
    await TransformStep(str.upper).run("go", journal=runtime.journal, loop_id="f")
    with pytest.raises(UserError, match="is a flow, and no agent's"):
        await runtime.answer("f", [])
    with pytest.raises(LoopMismatch, match="is a flow, and no agent's"):
        await Agent(NeverAsked()).run("go", runtime=runtime, loop_id="f")


async def wait_for_end(runtime: NatsRuntime, loop_id: str) -> None:
    async with asyncio.timeout(PATIENCE):
        while (loaded := await load_any(runtime.journal, loop_id))[1].at != "done":
            await runtime.journal.wait(loop_id, len(loaded[0]))


async def has_signals(runtime: NatsRuntime, loop_id: str, count: int) -> None:
    async with asyncio.timeout(PATIENCE):
        while len((loaded := await load_any(runtime.journal, loop_id))[1].signals) < count:
            await runtime.journal.wait(loop_id, len(loaded[0]))


async def test_an_approval_that_a_flow_is_given_reaches_the_agent_under_it(runtime: NatsRuntime) -> None:
    @tool(approval=True)
    async def burn() -> str:
        """Burn."""
        return "ash"

    nero = Agent(Script(call("burn"), "done"), tools=[burn], name="nero")
    async with working(runtime, nero):
        running = asyncio.ensure_future(AgentStep(nero).run("go", runtime=runtime, loop_id="f"))
        await runtime.journal.wait("f", 1)
        length = 0
        while not await pending_approvals(runtime.journal, "f"):
            await runtime.journal.wait("f-s0", length)
            length += 1
        await runtime.signal("f", SignalType.APPROVE)
        assert (await asyncio.wait_for(running, PATIENCE)).output == "done"
