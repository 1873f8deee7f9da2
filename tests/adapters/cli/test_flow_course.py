"""Flows on the command line: listed, drawn, explained; and what is asked of agents is refused."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from flyball import Agent, AgentStep, ParallelSteps, Pipeline, TransformStep, send_signal
from flyball.core.errors import FlyballError
from flyball.core.events import VERSION, FlowStarted, Resumed
from flyball.inference.scripted import ScriptedEngine
from flyball.orchestrate.flow.steps import Step
from flyball.runtime.sqlite import SQLiteJournal
from tests.adapters.cli.conftest import Flyball


def recorded(home: Path, flow: Step[Any, Any], loop_id: str, *signals: str) -> None:
    """A flow of another program, in the same journal."""

    async def run() -> None:
        async with SQLiteJournal(home / "runs.db") as journal:
            try:
                await flow.run("Why do *bridges* sway?", journal=journal, loop_id=loop_id)
            except FlyballError:
                for signal in signals:
                    await send_signal(journal, loop_id, signal)

    asyncio.run(run())


def failing(_: Any) -> None:
    raise ConnectionError("the line is down")


def essay(*more: Any) -> Step[Any, Any]:
    writer, editor = (Agent(ScriptedEngine(text), name=text) for text in ("writer", "editor"))
    return Pipeline(
        AgentStep(writer), ParallelSteps(AgentStep(editor), TransformStep(str.upper)), *more, name="essay"
    )


def test_a_flow_is_listed_and_drawn(flyball: Flyball, home: Path) -> None:
    recorded(home, essay(), "bridges")
    lines = flyball("runs", "--json").json
    (line,) = [line for line in lines if line["run"] == "bridges"]
    assert (line["agent"], line["stage"], line["turns"]) == ("essay", "complete", 3)
    assert "essay" in flyball("runs").out
    drawn = flyball("show", "bridges").out
    assert "flow bridges  complete  essay" in drawn
    assert "0 writer" in drawn
    assert "1.1 upper" in drawn
    assert "[bridges-s1_0]" in drawn
    assert '["editor","WRITER"]' in drawn
    shown = flyball("show", "bridges", "--json").json
    assert sorted([step["path"] for step in shown["steps"]]) == ["0", "1.0", "1.1"]
    assert shown["output"] == ["editor", "WRITER"]


def test_a_flow_that_failed_is_explained(flyball: Flyball, home: Path) -> None:
    recorded(home, essay(TransformStep(failing, name="send")), "bridges")
    told = flyball("why", "bridges").out
    assert "ORCHESTRATION_STEP_FAILED: step 'send' (2): ConnectionError: the line is down" in " ".join(
        told.split()
    )
    assert "It ended by ORCHESTRATION_STEP_FAILED" in told
    assert flyball("why", "bridges", "--json").json["next"] == ["flyball why bridges-s1_0"]
    (line,) = [line for line in flyball("runs", "--failed", "--json").json if line["run"] == "bridges"]
    assert line["error"] == "ORCHESTRATION_STEP_FAILED"


def test_a_flow_that_is_not_over_says_what_is_open(flyball: Flyball, home: Path) -> None:
    recorded(home, essay(TransformStep(failing, name="send", retries=1)), "bridges", "retry", "pause")
    told = flyball("why", "bridges").out
    assert "It is paused" in told
    assert "tried again" in told
    assert "2 send #2" in told
    assert "2 send #3" in told
    assert "not over" in told

    async def begun() -> None:
        async with SQLiteJournal(home / "runs.db") as journal:
            started = FlowStarted(1.0, VERSION, "begun", essay().node(), "go")
            await journal.append("begun", [started, Resumed(2.0, VERSION, 1)], 0)

    asyncio.run(begun())
    told = flyball("why", "begun").out
    assert "nothing is recorded of writer (0)" in " ".join(told.split())
    assert "somebody went on with it" in told


@pytest.mark.parametrize("command", ["replay", "resume", "fork"])
def test_what_is_asked_of_agents_is_refused(flyball: Flyball, home: Path, command: str) -> None:
    recorded(home, TransformStep(str.upper), "f")
    more = ["--at", "1"] if command == "fork" else []
    ended = flyball(command, "f", *more)
    assert ended.code != 0
    assert "is a flow, and no agent's" in " ".join(ended.err.split())
