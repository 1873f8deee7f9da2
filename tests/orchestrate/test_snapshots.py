"""Snapshots of runs: taken anywhere, kept, branched, and gone on from; under every driver."""

from __future__ import annotations

from typing import Any

import pytest

from flyball import (
    Agent,
    Limits,
    ModelRetry,
    RunContext,
    RunSnapshot,
    UsageLimits,
    snapshot_at,
    stateful,
    tool,
)
from flyball.core.errors import (
    EngineError,
    InvalidMessage,
    LoopMismatch,
    LoopNotFound,
    UnexpectedModelBehavior,
    UsageLimitExceeded,
    UserError,
)
from flyball.core.events import Started
from flyball.core.ids import new_id
from flyball.core.messages import Message, Role, assistant, user
from flyball.core.usage import RunUsage
from flyball.inference.answers import tool_call as call
from flyball.orchestrate.journal import Journal
from flyball.orchestrate.recorded import load
from flyball.testing import ScriptedEngine
from flyball.validate.conditions import RunCondition
from tests.orchestrate.conftest import Runner
from tests.orchestrate.models import Script
from tests.orchestrate.scenarios import add, wants_long
from tests.orchestrate.where import Where


def adder(*more: Any, first: int = 1) -> Agent[Any, str]:
    return Agent(Script(*more, first=first), tools=[add], instructions="Add.")


async def test_a_run_goes_on_from_a_result(run: Runner) -> None:
    first = await run(adder(call("add", {"x": 1, "y": 2}), "three"), "1 + 2?")
    snapshot = first.snapshot()
    assert (snapshot.run_step, snapshot.prompt, snapshot.run_id) == (2, "1 + 2?", first.loop_id)
    assert snapshot.messages == first.messages
    kept = RunSnapshot.from_json(snapshot.to_json())
    second = await run(adder("four", first=3), "and 1 more?", snapshot=kept)
    assert second.output == "four"
    assert second.messages[:-2] == first.messages
    assert (second.usage.requests, second.usage.tool_calls) == (3, 1)
    assert second.snapshot().run_step == 3
    assert [event.turn for event in await second.events() if hasattr(event, "turn")] == [3]  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]


async def test_limits_bind_across_runs(run: Runner) -> None:
    snapshot = RunSnapshot((user("hi"), assistant("hello")), RunUsage(40, 10, requests=2), run_step=2)
    agent = adder("never", first=3)
    error = await run.failing(
        UsageLimitExceeded, agent, "on", snapshot=snapshot, usage_limits=UsageLimits(request_limit=2)
    )
    assert error.partial.usage == snapshot.usage
    limits = Limits(max_iterations=1)  # iterations and time count from here on
    went_on = agent.clone(limits=limits, model=Script("yes", first=3))
    assert (await run(went_on, "on", snapshot=snapshot)).output == "yes"


async def test_retries_count_on(run: Runner) -> None:
    snapshot = RunSnapshot((user("hi"), assistant("no")), retries=1, tool_retries={"add": 1}, run_step=1)
    agent = Agent(Script("no", first=2), validators=[wants_long], retries=1)
    await run.failing(UnexpectedModelBehavior, agent, "on", snapshot=snapshot)

    seen: list[int] = []

    @tool
    async def count(ctx: RunContext[Any]) -> str:
        seen.append(ctx.retry)
        return "counted"

    again = RunSnapshot((user("hi"), assistant("no")), tool_retries={"count": 1}, run_step=1)
    await run(Agent(Script(call("count"), "ok", first=2), tools=[count]), "on", snapshot=again)
    assert set(seen) == {1}


async def test_without_a_prompt_it_answers_what_is_there(run: Runner) -> None:
    told: list[tuple[str, str, int]] = []

    def note(ctx: RunContext[Any]) -> str:
        told.append((ctx.prompt, ctx.parent_run_id, ctx.run_step))
        return "Be brief."

    snapshot = RunSnapshot((user("Tea?"),), prompt="Tea?", run_id="old", parent_run_id="above", run_step=1)
    result = await run(Agent(Script("Yes.", first=2), instructions=note), snapshot=snapshot)
    assert result.output == "Yes."
    assert set(told) == {("Tea?", "above", 1)}
    assert result.snapshot().prompt == "Tea?"
    assert result.snapshot().parent_run_id == "above"
    over = result.snapshot()
    with pytest.raises(InvalidMessage, match="ends with a user or a tool message"):
        await run(Agent(Script("no")), snapshot=over)


async def test_a_step_can_be_gone_back_to(where: Where) -> None:
    answers = (call("add", {"x": 1, "y": 2}), call("add", {"x": 3, "y": 3}), "six")
    taken: list[RunSnapshot] = []
    async with where.iter(adder(*answers), "1 + 2 + 3?") as run:
        taken.append(run.snapshot())
        async for _ in run:
            taken.append(run.snapshot())
    assert [snapshot.run_step for snapshot in taken] == [0, 1, 2, 3]
    assert [len(snapshot.messages) for snapshot in taken] == [2, 4, 6, 7]
    assert [snapshot.usage.requests for snapshot in taken] == [0, 1, 2, 3]
    went_on = await where.run(adder("six, again", first=2), None, new_id(), snapshot=taken[1])
    assert went_on.output == "six, again"
    assert went_on.messages[:-1] == taken[1].messages


async def test_a_branch_takes_another_way(run: Runner) -> None:
    first = await run(adder(call("add", {"x": 1, "y": 2}), "four"), "1 + 2?")
    branch = first.snapshot().branch(lambda messages: [*messages[:-1], assistant("three")])
    second = await run(adder("I said three.", first=3), "What did you say?", snapshot=branch)
    assert second.messages[-3].text == "three"
    assert first.messages[-1].text == "four"


async def test_functions_take_snapshots_of_where_they_are(run: Runner) -> None:
    seen: dict[str, RunSnapshot] = {}

    @tool(history=True)
    async def look(ctx: RunContext[Any]) -> str:
        seen["tool"] = ctx.snapshot()
        return "looked"

    def instructions(ctx: RunContext[Any]) -> str:
        seen["prompt"] = ctx.snapshot()
        return "Look."

    def valid(ctx: RunContext[Any], output: str) -> str:
        seen["validator"] = ctx.snapshot()
        if len(output) < 4:
            raise ModelRetry("longer")
        return output

    @RunCondition
    def condition(ctx: RunContext[Any], message: Message) -> None:
        seen["condition"] = ctx.snapshot()

    async def deliver(ctx: RunContext[Any], outcome: Any, output: Any) -> None:
        seen["delivery"] = ctx.snapshot()

    agent = Agent(
        Script(call("look"), "no", "enough"),
        tools=[look],
        instructions=instructions,
        validators=[valid],
        deliveries=[deliver],
        features=[condition],
    )
    result = await run(agent, "go")
    steps = {name: (snapshot.run_step, len(snapshot.messages)) for name, snapshot in seen.items()}
    assert steps == {
        "prompt": (0, 1), "tool": (0, 2), "condition": (2, 6), "validator": (3, 7), "delivery": (3, 7),
    }  # fmt: skip
    assert seen["condition"].usage.requests == 3  # what has come is paid for, and not yet part of the history
    assert seen["validator"].retries == 1
    assert {snapshot.run_id for snapshot in seen.values()} == {result.loop_id}
    assert seen["tool"].timestamp is None
    assert seen["delivery"].timestamp is not None
    assert seen["delivery"].messages == result.messages


async def test_a_tool_that_does_not_read_the_history_has_no_snapshot(run: Runner) -> None:
    @tool
    async def look(ctx: RunContext[Any]) -> str:
        return str(ctx.snapshot())

    result = await run(Agent(Script(call("look"), "ok"), tools=[look]), "go")
    assert "declare it with @tool(history=True)" in result.messages[2].tool_results[0].text


async def test_snapshots_from_a_journal(journal: Journal) -> None:
    loop_id = new_id()
    answers = (call("add", {"x": 1, "y": 2}), call("add", {"x": 3, "y": 3}), "six")
    result = await adder(*answers).run("1 + 2 + 3?", journal=journal, loop_id=loop_id)
    events = await journal.read(loop_id)
    began = await snapshot_at(journal, loop_id, 0)
    assert (began.run_step, began.timestamp, len(began.messages)) == (0, events[0].at, 2)
    after = [await snapshot_at(journal, loop_id, turn) for turn in (1, 2, 3)]
    assert [len(snapshot.messages) for snapshot in after] == [4, 6, 7]
    now = await snapshot_at(journal, loop_id)
    assert now.timestamp == events[-1].at
    assert now.messages == result.messages == after[-1].messages
    with pytest.raises(UserError, match="has 3 turns"):
        await snapshot_at(journal, loop_id, 4)
    with pytest.raises(LoopNotFound):
        await snapshot_at(journal, new_id())


async def test_a_loop_that_went_on_is_resumed_forked_and_told_from_others(journal: Journal) -> None:
    snapshot = RunSnapshot((user("hi"), assistant("hello")), RunUsage(requests=4), run_step=4)
    loop_id = new_id()
    failing = adder(call("add", {"x": 1, "y": 2}), EngineError("down"), first=5)
    with pytest.raises(EngineError):
        await failing.run("1 + 2?", snapshot=snapshot, journal=journal, loop_id=loop_id)
    with pytest.raises(LoopMismatch, match="another history and carried"):
        await failing.run("1 + 2?", journal=journal, loop_id=loop_id)
    forked = await adder("three", first=6).fork(loop_id, journal, turn=5)
    assert (forked.output, forked.usage.requests) == ("three", 6)
    anew = await adder("five", first=5).fork(loop_id, journal, turn=0, prompt="2 + 3?")
    assert [message.text for message in anew.messages[-2:]] == ["2 + 3?", "five"]
    assert len(anew.messages) == 5


async def test_what_cannot_be_gone_on_from_is_refused_before_anything_runs(journal: Journal) -> None:
    agent = Agent(ScriptedEngine())
    loop_id = new_id()
    snapshot = RunSnapshot((user("hi"), assistant("hello")))
    with pytest.raises(UserError, match="not both"):
        await agent.run("on", snapshot=snapshot, messages=[user("hi")], journal=journal, loop_id=loop_id)
    with pytest.raises(UserError, match=r"snapshot= takes RunSnapshot\(\.\.\.\)"):
        await agent.run("on", snapshot=b"{}", journal=journal, loop_id=loop_id)  # pyright: ignore[reportArgumentType]
    with pytest.raises(UserError, match="below 0"):
        await agent.run("on", snapshot=RunSnapshot(run_step=-1), journal=journal, loop_id=loop_id)
    wrong: Any = "many"
    with pytest.raises(UserError, match="cannot be recorded"):
        await agent.run("on", snapshot=RunSnapshot(retries=wrong), journal=journal, loop_id=loop_id)
    broken = RunSnapshot((user("hi"), Message(Role.USER, ())))
    with pytest.raises(InvalidMessage, match="not valid"):
        await agent.run("on", snapshot=broken, journal=journal, loop_id=loop_id)
    assert await journal.read(loop_id) == []


async def test_a_child_goes_on_from_a_snapshot(journal: Journal) -> None:
    snapshot = RunSnapshot((user("hi"), assistant("hello")), RunUsage(requests=1), run_step=1)
    child = Agent(Script("from before", first=2), name="child")

    @tool
    async def ask(ctx: RunContext[Any]) -> str:
        return (await child.run("go on", parent=ctx, snapshot=snapshot)).output

    agent = Agent(Script([call("ask"), call("ask")], "ok"), tools=[ask])
    result = await agent.run("go", journal=journal)
    assert [one.content for one in result.messages[2].tool_results] == ["from before"] * 2
    loops = [await load(journal, loop_id) for loop_id in result.state.children]
    assert [state.usage.requests for _, state in loops] == [2, 2]
    assert {state.parent_loop_id for _, state in loops} == {result.loop_id}


async def test_only_what_is_used_is_recorded() -> None:
    result = await Agent(ScriptedEngine("hello")).run("hi")
    started = (await result.events())[0]
    assert isinstance(started, Started)
    assert started.carried is None


class Tally:
    """Count up."""

    def __init__(self) -> None:
        self.count = 0

    def export_state(self) -> int:
        return self.count

    def restore_state(self, state: int) -> None:
        self.count = state

    async def __call__(self) -> int:
        self.count += 1
        return self.count


async def test_the_states_of_tools_go_on(run: Runner) -> None:
    tally = stateful(Tally, name="tally")
    first = await run(Agent(Script(call("tally"), call("tally"), "two"), tools=[tally]), "count")
    kept = RunSnapshot.from_json(first.snapshot().to_json())
    assert kept.tool_state == first.tool_state == {"tally": 2}
    agent = Agent(Script(call("tally"), "three", first=4), tools=[tally])
    went_on = await run(agent, "once more", snapshot=kept)
    assert went_on.tool_state == {"tally": 3}
    (result,) = went_on.messages[-2].tool_results
    assert result.content == 3
    forgotten = await run(agent, "once more", snapshot=kept, tool_state={})
    assert forgotten.tool_state == {"tally": 1}
