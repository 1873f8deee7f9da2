"""What may be done next is data; flows are explained; any journal is. (More of it: tests/adapters/cli.)"""

from __future__ import annotations

from contextlib import suppress
from typing import get_args

import pytest
from hypothesis import given

from flyball import Agent, AgentStep, MemoryJournal, Pipeline, TransformStep, tool
from flyball.core.errors import FlyballError
from flyball.core.events import Event, ModelAnswered, ModelFailed
from flyball.inference.answers import tool_call
from flyball.inference.scripted import ScriptedEngine
from flyball.orchestrate.calls import awaits_approval, waits_for_results
from flyball.orchestrate.machine import fold
from flyball.orchestrate.projections.explanation import Action, Explanation, Next, explain
from flyball.tool.errors import CallDeferred
from tests.orchestrate.journals import journals
from tests.orchestrate.test_flow_machine import World, trees


@given(journals())
def test_any_journal_is_explained(events: list[Event]) -> None:
    told, state = explain(events), fold(events)
    assert told.verdict
    assert told.next
    assert {one.action for one in told.next} <= set(get_args(Action))
    called = [one for one in events if isinstance(one, ModelAnswered | ModelFailed) and one.purpose == "turn"]
    assert len([turn for turn in told.turns if turn.answer is not None or turn.error is not None]) <= len(
        called
    )
    assert all(turn.sent.messages for turn in told.turns)
    waiting = [one for one in told.next if one.action in ("approve", "answer")]
    assert bool(waiting) is (awaits_approval(state) or (state.at == "execute" and waits_for_results(state)))


@given(trees)
def test_any_flow_is_explained(flow: object) -> None:
    world = World(flow)  # pyright: ignore[reportArgumentType]
    while True:
        told = explain(world.journal)
        assert told.flow is not None
        assert told.verdict
        assert not told.turns
        assert [step.path for step in told.flow.steps if step.open] == (
            list(world.state.ready) if world.state.at == "run" else []
        )
        if not (steps := world.steps()):
            break
        assert world.offer(world.answer(steps[0]))


@tool
async def ask() -> str:
    raise CallDeferred("later")


async def explained(agent: Agent[None, str]) -> Explanation:
    journal = MemoryJournal()
    with suppress(FlyballError):
        await agent.run("go", journal=journal, loop_id="loop")
    return explain(await journal.read("loop"))


async def test_what_may_be_done_with_a_call_that_waits_for_its_result() -> None:
    told = await explained(Agent(ScriptedEngine(tool_call("ask", {}, "c1")), tools=[ask]))
    assert told.next[0] == Next("answer", "give the result of ask {}", ("c1",))
    assert (told.next[1].action, told.next[1].turn) == ("fork", 0)


async def test_what_may_be_done_with_a_run_that_failed() -> None:
    told = await explained(Agent(ScriptedEngine()))
    assert [one.action for one in told.next] == ["retry", "fork"]


async def test_what_may_be_done_with_a_run_that_has_its_answer() -> None:
    told = await explained(Agent(ScriptedEngine("yes")))
    assert [one.action for one in told.next] == ["replay", "continue", "fork"]


def failing(_: object) -> None:
    raise ConnectionError("the line is down")


@pytest.mark.parametrize("fails", [False, True])
async def test_a_flow_is_explained(fails: bool) -> None:
    journal = MemoryJournal()
    last = TransformStep(failing, name="send") if fails else TransformStep(str.upper)
    flow = Pipeline(AgentStep(Agent(ScriptedEngine("yes"))), last, name="shout")
    try:
        await flow.run("go", journal=journal, loop_id="f")
    except FlyballError:
        assert fails
    told = explain(await journal.read("f"))
    assert told.flow is not None
    assert (told.run, told.agent) == ("f", "shout")
    assert (told.phase, told.stage) == (("error", "failed") if fails else ("complete", "complete"))
    assert [(step.path, step.run) for step in told.flow.steps] == [("0", "f-s0"), ("1", "")]
    assert (told.flow.input, told.flow.output) == ("go", None if fails else "YES")
    assert told.next == (Next("explain", "look at the loop f-s0 under it", loop_id="f-s0"),)
