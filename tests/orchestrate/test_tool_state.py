"""The states of stateful tools in runs: where they come from, who sees them, what leaves them alone."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from msgspec import UNSET
from msgspec.structs import replace

from flyball import Agent, ModelRetry, RunContext, Safety, ToolResultValidator, send_signal, stateful, tool
from flyball.core.errors import EngineError, LoopMismatch, UserError
from flyball.core.events import Resumed, Started, ToolReturned
from flyball.core.messages import ResultKind, ToolResult
from flyball.core.signals import Signal, SignalType
from flyball.core.tools import ToolDefinition, ToolSpec
from flyball.inference.answers import tool_call as call
from flyball.orchestrate.commands import execute_command
from flyball.orchestrate.journal import Journal, MemoryJournal
from flyball.orchestrate.machine import fold, owed
from flyball.orchestrate.recorded import load, snapshot_at
from flyball.orchestrate.snapshot import snapshot_of
from flyball.tool.stateful_tool import Stateful
from tests.orchestrate.conftest import Runner
from tests.orchestrate.driven import WAYS, Driven
from tests.orchestrate.models import Place, Script
from tests.orchestrate.scenarios import add
from tests.orchestrate.where import Where
from tests.patience import PATIENCE


class Counter:
    """Counts."""

    def __init__(self, start: int = 0) -> None:
        self.count = start

    def export_state(self) -> Any:
        return self.count

    def restore_state(self, state: Any) -> None:
        self.count = state

    async def __call__(self, by: int = 1) -> int:
        self.count += by
        return self.count


COUNTER = stateful(Counter)
ONE = call("counter")


@tool
async def states(ctx: RunContext[Any]) -> Any:
    return [ctx.tool_state, ctx.tool_state_by_name("counter"), ctx.tool_state_by_name("other", "none")]


def contents(result: Any) -> list[Any]:
    return [found.content for message in result.messages for found in message.tool_results]


def returned(events: Any) -> list[ToolReturned]:
    return [event for event in events if isinstance(event, ToolReturned)]


# From run to run


async def test_a_state_goes_from_call_to_call_and_from_run_to_run(run: Runner) -> None:
    agent = Agent(Script([ONE, ONE], ONE, "3"), tools=[COUNTER])
    first = await run(agent, "count")
    assert contents(first) == [1, 2, 3]
    assert first.tool_state == {"counter": 3}
    second = await run(agent, "count", tool_state=first.tool_state)
    assert contents(second) == [4, 5, 6]
    assert (await run(agent, "count")).tool_state == {"counter": 3}, "a run of its own begins anew"
    assert [event.state for event in returned(await first.events())] == [1, 2, 3]


async def test_a_run_without_stateful_tools_has_no_state(run: Runner) -> None:
    result = await run(Agent(Script(call("states"), "ok"), tools=[states]), "go")
    assert result.tool_state is None
    assert contents(result) == [[None, None, "none"]]


async def test_every_function_sees_the_states_as_they_were_when_it_was_called(run: Runner) -> None:
    def told(ctx: RunContext[Any]) -> str:
        return f"It counts from {ctx.tool_state_by_name('counter')}."

    script = Script([call("states"), ONE], call("states"), "ok")
    agent = Agent(script, tools=[COUNTER, states], instructions=told)
    result = await run(agent, "go", tool_state={"counter": 5, "other": [1]})
    assert script.requests[0].messages[0].text == "It counts from 5."
    before, after = {"counter": 5, "other": [1]}, {"counter": 6, "other": [1]}
    assert contents(result) == [[before, 5, [1]], 6, [after, 6, [1]]]
    assert result.tool_state == after, "what no tool of the agent's owns is handed on"


@pytest.mark.parametrize(
    ("given", "told"),
    [({"counter": object()}, r"tool_state\['counter'\] is a object"), ([1], "tool_state= takes a dict")],
    ids=["no json", "no dict"],
)
async def test_a_state_that_cannot_be_recorded_is_refused(given: Any, told: str) -> None:
    with pytest.raises(UserError, match=told):
        await Agent(Script("ok"), tools=[COUNTER]).run("go", tool_state=given)


async def test_a_loop_with_another_state_is_another_loop() -> None:
    journal = MemoryJournal()
    agent = Agent(Script(ONE, "ok"), tools=[COUNTER])
    await agent.run("go", journal=journal, loop_id="l", tool_state={"counter": 1})
    again = await agent.run("go", journal=journal, loop_id="l", tool_state={"counter": 1})
    assert again.tool_state == {"counter": 2}
    with pytest.raises(LoopMismatch, match="another tool_state"):
        await agent.run("go", journal=journal, loop_id="l")


async def test_what_a_run_was_given_and_gave_is_not_changed_by_others() -> None:
    class Keeps(Counter):
        count: Any

        async def __call__(self, by: int = 1) -> int:
            self.count.append(by)
            return len(self.count)

    given = {"keeps": [1]}
    agent = Agent(Script(call("keeps"), "ok"), tools=[stateful(Keeps)])
    first = await agent.run("go", tool_state=given)
    second = await agent.run("go", tool_state=first.tool_state)
    assert (given, first.tool_state, second.tool_state) == (
        {"keeps": [1]},
        {"keeps": [1, 1]},
        {"keeps": [1, 1, 1]},
    )
    started = (await first.events())[0]
    assert isinstance(started, Started)
    assert started.tool_state == {"keeps": [1]}


# What leaves it as it was


class Careless:
    """Changes, and then goes wrong."""

    def __init__(self) -> None:
        self.seen: list[str] = []

    def export_state(self) -> Any:
        return self.seen

    def restore_state(self, state: Any) -> None:
        self.seen = state

    @tool(timeout=0.01)
    async def late(self) -> None:
        self.seen.append("late")
        await asyncio.Event().wait()

    @tool
    async def wrong(self) -> str:
        self.seen.append("wrong")
        raise ValueError("no")

    @tool
    async def again(self) -> str:
        self.seen.append("again")
        raise ModelRetry("once more")

    @tool
    async def good(self, text: str) -> str:
        self.seen.append(text)
        return text

    @tool
    async def failed(self) -> ToolResult:
        self.seen.append("failed")
        return ToolResult("", "", error="it says so itself")


async def test_a_call_that_does_not_end_well_changes_nothing(run: Runner) -> None:
    @ToolResultValidator
    def not_bad(_: RunContext[Any], result: Any) -> None:
        if result == "bad":
            raise ModelRetry("bad")

    script = Script(
        [call("good", {"text": "one"}), call("late"), call("wrong"), call("again"), call("failed")],
        [call("good", {"text": "bad"}), call("good", {"text": "two"})],
        "done",
    )
    result = await run(Agent(script, tools=[stateful(Careless)], features=[not_bad]), "go")
    assert result.tool_state == {"careless": ["one", "two"]}
    statuses = [found.status for message in result.messages for found in message.tool_results]
    assert statuses.count(ResultKind.RETRY) == 2


class Once(Counter):
    """Counts, and may not be started twice."""

    place: Place

    async def __call__(self, by: int = 1) -> int:
        self.count += by
        if by > 1:
            await self.place.hang()
        return self.count


async def test_an_interrupted_call_leaves_the_state_as_it_was() -> None:
    """A driver is gone in the middle of an at_most_once call: nobody knows, and the state does not either."""
    Once.place = place = Place()
    once = stateful(Once, safety=Safety.AT_MOST_ONCE)
    journal = MemoryJournal()
    agent = Agent(Script([call("once"), call("once", {"by": 5})], call("once"), "ok"), tools=[once])
    running = asyncio.create_task(agent.run("go", journal=journal, loop_id="l"))
    await place.entered.wait()
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    result = await agent.resume("l", journal)
    statuses = [found.status for message in result.messages for found in message.tool_results]
    assert statuses == [ResultKind.RETURN, ResultKind.INTERRUPTED, ResultKind.RETURN]
    assert result.tool_state == {"once": 2}
    assert any(isinstance(event, Resumed) for event in await result.events())


# In time


async def test_calls_with_a_state_run_one_after_the_other_after_the_others(orderly: Where) -> None:
    log: list[str] = []

    class Logs(Counter):
        @tool
        async def one(self) -> int:
            return await self._log("one")

        @tool
        def two(self) -> int:
            log.append("two")
            self.count += 1
            return self.count

        async def _log(self, name: str) -> int:
            log.append(f"{name} begins")
            await asyncio.sleep(0)
            log.append(f"{name} ends")
            self.count += 1
            return self.count

    @tool
    async def other() -> str:
        log.append("other")
        return "x"

    calls = [call("one"), call("other"), call("two"), call("one"), call("other")]
    agent = Agent(Script(calls, "ok"), tools=[stateful(Logs), other])
    result = await agent.run("go", **orderly.options({}))
    assert log == ["other", "other", "one begins", "one ends", "two", "one begins", "one ends"]
    assert contents(result) == [1, "x", 2, 3, "x"]


@pytest.mark.parametrize("way", WAYS)
async def test_a_pause_between_two_calls_keeps_the_state(where: Where, way: Any) -> None:
    class Paused(Once):
        """Counts, with a place to stop at."""

    Paused.place = place = Place()
    driven = Driven(way, where)
    calls = [call("paused", {"by": by}) for by in (1, 2, 1)]
    await driven.start(Agent(Script(calls, "ok"), tools=[stateful(Paused)]))
    await driven.reach(place)
    await driven.signal("pause")
    place.let_go.set()
    await asyncio.wait_for(_paused(driven), PATIENCE)
    _, state = await load(driven.journal, driven.loop_id)
    assert state.tool_state == {"paused": 3}, "what ran has finished, and the third has not begun"
    await driven.signal("resume")
    assert (await driven.end()).tool_state == {"paused": 4}


async def _paused(driven: Driven) -> None:
    while True:
        events, state = await load(driven.journal, driven.loop_id)
        if state.paused:
            return
        await driven.journal.wait(driven.loop_id, len(events))


async def test_a_retry_of_a_failed_run_goes_on_with_the_state(journal: Journal) -> None:
    agent = Agent(Script(ONE, EngineError("down"), ONE, "ok"), tools=[COUNTER])
    with pytest.raises(EngineError, match="down"):
        await agent.run("go", journal=journal, loop_id="retried")
    await send_signal(journal, "retried", Signal(SignalType.RETRY))
    assert (await agent.resume("retried", journal)).tool_state == {"counter": 2}


# Elsewhere in time


async def test_a_fork_has_the_state_of_the_turn_that_it_goes_on_from() -> None:
    journal = MemoryJournal()
    agent = Agent(Script(ONE, ONE, ONE, "3"), tools=[COUNTER])
    original = await agent.run("go", journal=journal, loop_id="l", tool_state={"counter": 10})
    assert original.tool_state == {"counter": 13}
    for turn in range(4):
        other = agent.clone(model=Script(call("counter", {"by": 100}), "ok", first=turn + 1))
        forked = await other.fork("l", journal, turn=turn)
        assert forked.tool_state == {"counter": 110 + turn}
    assert (await agent.replay("l", journal)).tool_state == {"counter": 13}


async def test_a_batch_counts_for_each_prompt() -> None:
    agent = Agent(Script(ONE, ONE, "2"), tools=[COUNTER])
    results = await agent.run_batch(["a", "b", "c"], tool_state={"counter": 40})
    assert [getattr(result, "tool_state", None) for result in results] == [{"counter": 42}] * 3


async def test_a_snapshot_has_the_state_of_the_turns_that_it_holds() -> None:
    journal = MemoryJournal()
    agent = Agent(Script(ONE, [ONE, ONE], "3"), tools=[COUNTER])
    result = await agent.run("go", journal=journal, loop_id="l")
    assert result.snapshot().tool_state == {"counter": 3}
    assert (await snapshot_at(journal, "l", 1)).tool_state == {"counter": 1}
    events = await journal.read("l")
    # In the middle of the second turn, which will be had again: its first call has returned.
    middle = snapshot_of(fold(events[:5]), None)
    assert (middle.run_step, middle.tool_state) == (1, {"counter": 1})
    went_on = await agent.clone(model=Script(ONE, "ok", first=2)).run("again", snapshot=middle)
    assert went_on.tool_state == {"counter": 2}
    other = agent.clone(model=Script(ONE, "ok", first=2))
    assert (await other.run("again", snapshot=middle, tool_state={"counter": 9})).tool_state == {
        "counter": 10
    }


# On the way to a worker


async def test_a_command_carries_the_states_and_a_result_need_not() -> None:
    journal = MemoryJournal()
    agent = Agent(Script(ONE, ONE, "2"), tools=[COUNTER, add])
    await agent.run("go", journal=journal, loop_id="l")
    events = await journal.read("l")
    state = fold(events[:4])  # the second call is owed
    command = execute_command(state, owed(state)[0])  # pyright: ignore[reportArgumentType]
    assert command.facts.tool_state == {"counter": 1}
    (event,) = returned(events[4:5])
    assert event.state == 2
    # Somebody else's worker answers in words that have no state: it is as it was.
    foreign = replace(event, state=UNSET)
    assert fold([*events[:4], foreign]).tool_state == {"counter": 1}


def test_a_tool_whose_definition_a_task_replaced_still_runs_alone() -> None:
    spec = ToolSpec(ToolDefinition("counter", {"type": "object"}), state="counter")
    assert not spec.definition.sequential
    assert spec.alone


def test_a_stateful_object_is_one_that_exports_and_restores() -> None:
    assert isinstance(Counter(), Stateful)
    assert not isinstance(object(), Stateful)
