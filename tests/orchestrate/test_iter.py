"""Runs taken step by step: a step is a turn, and nothing runs while one is held."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from flyball import Agent, Limits, RunContext, tool
from flyball.core.errors import (
    AgentRunClosed,
    CancelledSignal,
    FlyballError,
    IterationLimit,
    RuleFailed,
    UserError,
)
from flyball.core.messages import ResultKind
from flyball.inference.answers import tool_call as call
from flyball.orchestrate.journal import Journal
from flyball.orchestrate.projections import normal_form
from flyball.orchestrate.runs import Step
from tests.orchestrate.conftest import kinds_of
from tests.orchestrate.driven import hanging_in
from tests.orchestrate.models import NeverAsked, Script
from tests.orchestrate.scenarios import SCENARIOS, TEN, Scenario, add, dynamic, said
from tests.orchestrate.where import Where, read_into


async def test_a_step_is_a_turn(where: Where) -> None:
    agent = Agent(Script([call("add", {"x": 1, "y": 1}), call("add", {"x": 2, "y": 2})], "done"), tools=[add])
    async with where.iter(agent) as run:
        steps = [step async for step in run]
        assert [step.turn for step in steps] == [1, 2]
        assert [found.content for found in steps[0].results] == [2, 4]
        assert [len(step.message.tool_calls) if step.message is not None else None for step in steps] == [
            2,
            0,
        ]
        assert steps[1].message is not None
        assert steps[1].message.text == "done"
        assert run.result.output == "done"


async def test_a_plain_answer_is_one_step(where: Where) -> None:
    async with where.iter(Agent(Script("hi"))) as run:
        assert len([step async for step in run]) == 1
        assert await run.next() is None
        assert await run.next() is None


async def test_prompt_functions_belong_to_the_first_step(where: Where) -> None:
    async with where.iter(Agent(Script("hi"), instructions=["Be brief.", dynamic])) as run:
        steps = [step async for step in run]
    assert [(step.turn, step.message.text if step.message is not None else None) for step in steps] == [
        (1, "hi")
    ]


async def test_a_run_that_is_refused_at_the_door_has_no_step(where: Where) -> None:
    async with where.iter(Agent(NeverAsked(), instructions=lambda _: str(1 // 0))) as run:
        with pytest.raises(RuleFailed):
            await run.next()
        assert run.done
        with pytest.raises(RuleFailed):
            _ = run.result


async def test_asking_again_is_a_step(where: Where) -> None:
    async with where.iter(Agent(Script(said(), "hi"))) as run:
        steps = [step async for step in run]
    assert [step.message is not None for step in steps] == [False, True], "an empty answer joins no history"


async def test_nothing_runs_while_a_step_is_held(journal: Journal) -> None:
    """In process only. Elsewhere the loop goes on."""
    ran: list[str] = []

    @tool
    async def work(n: int) -> int:
        ran.append(f"tool {n}")
        return n

    class Noting(Script):
        async def infer(self, request: Any) -> Any:
            ran.append("model")
            return await super().infer(request)

    async with Agent(Noting(call("work", {"n": 1}), call("work", {"n": 2}), "done"), tools=[work]).iter(
        "go", journal=journal
    ) as run:
        for expected in (["model", "tool 1"], ["model", "tool 2"], ["model"]):
            assert ran == []
            await run.next()
            assert ran == expected
            ran.clear()
            for _ in range(5):
                await asyncio.sleep(0)
        assert run.done


async def test_a_step_is_recorded_before_it_is_given_out(where: Where) -> None:
    async with where.iter(Agent(Script(call("add", {"x": 1, "y": 1}), "2"), tools=[add])) as run:
        await run.next()
        recorded = kinds_of(await where.journal.read(run.loop_id))
        if where.split:
            recorded = recorded[:3]  # the loop may be ahead
        assert recorded == ["Started", "ModelAnswered", "ToolReturned"]
        await run.next()
        assert kinds_of(await where.journal.read(run.loop_id))[-2:] == ["ModelAnswered", "Ended"]


async def test_the_result_is_there_at_the_end_and_not_before(where: Where) -> None:
    async with where.iter(Agent(Script(call("add", {"x": 1, "y": 1}), "2"), tools=[add])) as run:
        with pytest.raises(AgentRunClosed, match="not over"):
            _ = run.result
        await run.next()
        with pytest.raises(AgentRunClosed):
            _ = run.result
        assert not run.done
        await run.next()
        assert run.done
        assert run.result.output == "2"


async def test_messages_and_usage_grow(where: Where) -> None:
    async with where.iter(Agent(Script(*TEN, "done"), tools=[add])) as run:
        assert (len(run.messages), run.usage.requests) == (1, 0)
        for n in range(10):
            await run.next()
            assert (len(run.messages), run.usage.requests, run.usage.tool_calls) == (3 + 2 * n, n + 1, n + 1)


async def test_a_failed_run_gives_its_steps_and_then_its_error(where: Where) -> None:
    agent = Agent(Script(*TEN), tools=[add], limits=Limits(max_iterations=2))
    async with where.iter(agent) as run:
        steps: list[Step] = []
        with pytest.raises(IterationLimit) as caught:
            await read_into(steps, run)
        assert len(steps) == 2
        assert caught.value.partial.messages == run.messages
        for _ in range(2):
            with pytest.raises(IterationLimit):
                await run.next()
        with pytest.raises(IterationLimit):
            _ = run.result


async def test_a_run_that_is_left_can_be_resumed(where: Where) -> None:
    agent = Agent(Script(*TEN, "done"), tools=[add])
    for left in range(4):
        async with where.iter(agent) as run:
            for _ in range(left):
                await run.next()
        result = await where.resume(agent, run.loop_id)
        assert result.output == "done"
        assert result.usage.tool_calls == 10


async def test_a_run_that_was_left_in_the_middle_of_a_turn_goes_on_there(where: Where) -> None:
    agent = Agent(Script([call("add", {"x": 1, "y": 1}), call("add", {"x": 2, "y": 2})], "done"), tools=[add])
    finished = await agent.run("go")
    await where.journal.append(finished.loop_id, (await finished.events())[:3], 0)
    async with where.iter(agent, loop_id=finished.loop_id) as run:
        first = await run.next()
    assert first is not None
    assert first.message == finished.messages[1]
    assert [found.content for found in first.results] == [2, 4]


async def test_a_step_whose_task_was_cancelled_can_be_taken_again(where: Where) -> None:
    for name in ("model", "tool", "tools", "sequential", "prompt", "validator"):
        agent, place = hanging_in(name)
        async with where.iter(agent) as run:
            task = asyncio.create_task(run.next())
            await place.entered.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            place.let_go.set()
            async for _ in run:
                pass
            assert run.result.output == "done"


async def test_an_at_most_once_call_whose_task_was_cancelled_is_not_made_again(journal: Journal) -> None:
    """In process only. Elsewhere the caller's task does not run the call."""
    agent, place = hanging_in("at_most_once")
    async with agent.iter("go", journal=journal) as run:
        task = asyncio.create_task(run.next())
        await place.entered.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        step = await run.next()
        assert step is not None
        assert [found.status for found in step.results] == [ResultKind.INTERRUPTED]
        await run.next()
        assert run.result.output == "done"
    assert place.times == 1


async def test_feedback_between_steps_reaches_the_next(journal: Journal) -> None:
    """In process only. Elsewhere the loop may be over before the feedback is sent."""
    script = Script(call("add", {"x": 1, "y": 1}), call("add", {"x": 1, "y": 2}), "done")
    async with Agent(script, tools=[add]).iter("go", journal=journal) as run:
        await run.next()
        assert await run.signal("feedback", "be quick")
        await run.next()
        await run.next()
    assert script.last.messages[-1].text == "be quick"


async def test_a_cancel_between_steps_ends_the_run(journal: Journal) -> None:
    """In process only. Elsewhere the loop may be over before the cancel is sent."""
    async with Agent(Script(*TEN), tools=[add]).iter("go", journal=journal) as run:
        await run.next()
        assert await run.cancel("enough")
        step = await run.next()
        assert step == Step(2, None, ())
        assert run.done
        with pytest.raises(FlyballError, match="enough"):
            _ = run.result


async def test_a_run_that_is_closed_is_over_and_what_its_end_owes_is_done(where: Where) -> None:
    for steps in (0, 1, 2):
        ended: list[str] = []

        def deliver(_: RunContext[Any], outcome: Any, __: Any, ended: list[str] = ended) -> None:
            ended.append(outcome.value)

        # Elsewhere the loop would be ahead, perhaps at its end.
        agent, place = hanging_in("model") if where.split else (Agent(Script(*TEN), tools=[add]), None)
        async with where.iter(agent.clone(deliveries=[deliver])) as run:
            if place is not None:
                await place.entered.wait()
            else:
                for _ in range(steps):
                    await run.next()
            await run.close()
            assert run.done
            await run.close()
            with pytest.raises(CancelledSignal, match="closed"):
                _ = run.result
            with pytest.raises(CancelledSignal, match="closed"):
                await run.next()
        assert set(ended) == {"cancelled"}
        assert kinds_of(await where.journal.read(run.loop_id))[-1] == "Ended"


async def test_steps_are_taken_one_after_the_other(where: Where) -> None:
    agent, place = hanging_in("model")
    async with where.iter(agent) as run:
        first = asyncio.ensure_future(run.next())
        await place.entered.wait()
        with pytest.raises(UserError, match="one after the other"):
            await run.next()
        first.cancel()
        await asyncio.wait([first])


async def test_a_run_whose_block_was_left_takes_no_more_steps(where: Where) -> None:
    agent, _ = hanging_in("model")
    async with where.iter(agent) as run:
        pass
    with pytest.raises(AgentRunClosed, match="resume"):
        await run.next()


async def test_closing_a_run_that_is_over_changes_nothing(where: Where) -> None:
    async with where.iter(Agent(Script("hi"))) as run:
        async for _ in run:
            pass
        await run.close()
        assert run.result.output == "hi"


@pytest.mark.parametrize("scenario", SCENARIOS, ids=repr)
async def test_a_stepped_run_leaves_the_journal_of_a_plain_one(where: Where, scenario: Scenario) -> None:
    forms: list[Any] = []
    for way in ("plain", "stepped"):
        agent = scenario.make()
        try:
            if way == "plain":
                result = await agent.run(scenario.prompt, **scenario.options)
            else:
                async with where.iter(agent, scenario.prompt, **scenario.options) as run:
                    steps = [step async for step in run]
                    before = scenario.options["snapshot"].run_step if "snapshot" in scenario.options else 0
                    assert [step.turn for step in steps] == list(range(before + 1, before + len(steps) + 1))
                    result = run.result
        except FlyballError as error:
            result = error.partial
        forms.append((normal_form(await result.events()), result.messages, result.usage))
    assert forms[0] == forms[1]


async def test_dependencies_reach_a_stepped_run(where: Where) -> None:
    @tool
    async def look(ctx: RunContext[Any]) -> str:
        return str(ctx.deps)

    async with where.iter(Agent(Script(call("look"), "ok"), tools=[look]), deps=7) as run:
        step = await run.next()
    assert step is not None
    assert step.results[0].content == "7"
