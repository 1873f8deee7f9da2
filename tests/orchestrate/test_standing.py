"""A run that nobody drives any more is told from one that is under way."""

from __future__ import annotations

import asyncio
import os
import platform
import subprocess
import sys

import pytest
from msgspec.structs import replace

from flyball import Agent, AgentStep, MemoryJournal, Pipeline, send_signal, tool
from flyball.core.events import Event, FlowStarted, Outcome, Resumed, Started
from flyball.core.flow import FlowNode
from flyball.core.messages import user
from flyball.core.spec import LoopSpec
from flyball.inference.answers import tool_call
from flyball.inference.scripted import ScriptedEngine
from flyball.orchestrate.flow_machine import fold as fold_flow
from flyball.orchestrate.flow_state import FlowState
from flyball.orchestrate.machine import fold
from flyball.orchestrate.recorded import calls_waiting, load_any
from flyball.orchestrate.standing import INTERRUPTED, standing, standing_in_all, this_process
from flyball.orchestrate.state import State

NEVER = 4_000_000_000.0
"""A time that these tests do not see."""


@pytest.fixture
def gone() -> str:
    """A process that has ended."""
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait()
    return f"{platform.node()}/{child.pid}"


def begun() -> tuple[list[Event], State]:
    events: list[Event] = [Started(NEVER, 1, "loop", LoopSpec(agent="agent", model="test"), user("hi"))]
    return events, fold(events)


@pytest.mark.integration
def test_a_run_whose_process_runs_is_under_way(gone: str) -> None:
    events, state = begun()
    assert standing(events, state, this_process()) == "executing"
    assert standing(events, state, gone) == INTERRUPTED


@pytest.mark.integration
def test_a_process_that_nobody_has_asked_how_it_ended_has_ended() -> None:
    child = subprocess.Popen([sys.executable, "-c", ""], stdout=subprocess.PIPE)
    assert child.stdout is not None
    assert child.stdout.read() == b""
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert standing(*begun(), f"{platform.node()}/{child.pid}") == INTERRUPTED
    child.communicate()


@pytest.mark.parametrize("process", ["", "another machine/1", "1", f"{platform.node()}/x"])
def test_what_cannot_be_told_has_its_stage(process: str) -> None:
    assert standing(*begun(), process) == "executing"
    assert standing(*begun(), f"{platform.node()}/{'9' * 30}") == "executing"
    assert standing(*begun(), f"{platform.node()}/1") == "executing", "it may belong to somebody else"


@pytest.mark.integration
def test_who_took_over_is_not_known(gone: str) -> None:
    events, _ = begun()
    events.append(Resumed(NEVER, 1, 1))
    assert standing(events, fold(events), gone) == "executing"


def test_a_run_whose_time_is_up_is_not_under_way() -> None:
    events, state = begun()
    assert standing(events, replace(state, deadline=1.0), this_process()) == INTERRUPTED


@pytest.mark.integration
def test_what_waits_or_is_over_is_not_interrupted(gone: str) -> None:
    events, state = begun()
    assert standing(events, replace(state, paused=True), gone) == "paused"
    assert standing(events, replace(state, at="done", outcome=Outcome.SUCCESS), gone) == "complete"


def flow_begun() -> tuple[list[Event], FlowState]:
    events: list[Event] = [
        FlowStarted(NEVER, 1, "flow", FlowNode("pipeline", "f", (FlowNode("agent", "a"),)))
    ]
    return events, fold_flow(events)


@pytest.mark.integration
def test_a_flow_stands_as_a_run_does(gone: str) -> None:
    events, state = flow_begun()
    assert standing(events, state, this_process()) == "executing"
    assert standing(events, state, gone) == INTERRUPTED
    assert standing(events, replace(state, deadline=1.0), this_process()) == INTERRUPTED
    assert standing(events, replace(state, paused=True), gone) == "paused"
    assert standing(events, replace(state, at="done", outcome=Outcome.FAILED), gone) == "failed"
    events.append(Resumed(NEVER, 1, 1))
    assert standing(events, fold_flow(events), gone) == "executing"


@tool(approval=True)
async def pay(amount: int) -> str:
    return f"paid {amount}"


async def test_who_waits_under_a_flow_is_who_it_waits_for() -> None:
    journal = MemoryJournal()
    payer = Agent(ScriptedEngine(tool_call("pay", {"amount": 3}, "c1"), "done"), tools=[pay], name="payer")
    flow = Pipeline(AgentStep(payer), name="shop")
    running = asyncio.create_task(flow.run("go", journal=journal, loop_id="f"))
    while not (await calls_waiting(journal, "f") if await journal.read("f") else ()):  # noqa: ASYNC110 - it drives itself
        await asyncio.sleep(0)
    events, state = await load_any(journal, "f")
    stage, waits = await standing_in_all(journal, events, state, "")
    assert stage == "awaiting_approval"
    assert waits == ("pay (c1) of payer, loop f-s0, waits to be approved",)
    await send_signal(journal, "f", "approve")
    assert (await running).output == "done"
    events, state = await load_any(journal, "f")
    assert await standing_in_all(journal, events, state, "") == ("complete", ())
