"""Variations of an agent: overrides for a while, clones for good, and what is registered later."""

from __future__ import annotations

import asyncio
from typing import Any, assert_type

import pytest

from flyball import Agent, Limits, ModelRetry, ModelSettings, RunContext
from flyball.core.errors import NoEngine, UserError
from flyball.core.messages import system
from flyball.inference.answers import tool_call as call
from flyball.orchestrate.journal import MemoryJournal
from tests.orchestrate.conftest import Runner, kinds_of
from tests.orchestrate.models import Hanging, NeverAsked, Script
from tests.orchestrate.scenarios import add, breaks, step

# Overrides


async def test_an_override_holds_within_its_block(run: Runner) -> None:
    agent = Agent(Script("own"))
    with agent.override(model=Script("other")):
        assert (await run(agent, "hi")).output == "other"
    assert (await run(agent, "hi")).output == "own"


async def test_an_override_is_taken_back_also_after_an_error() -> None:
    agent = Agent(Script("own"))
    with pytest.raises(ZeroDivisionError), agent.override(model=Script("other")):
        raise ZeroDivisionError
    assert (await agent.run("hi")).output == "own"


async def test_nested_overrides_lie_over_each_other(run: Runner) -> None:
    script = Script("other")
    agent = Agent(NeverAsked(), instructions="One.")
    with agent.override(model=script):
        with agent.override(instructions="Two."):
            await run(agent, "hi")
            assert script.last.messages[0] == system("Two.")
            with agent.override(model=Script("third")):
                assert (await run(agent, "hi")).output == "third"
        await run(agent, "hi", loop_id=f"after-{run.kind}")
        assert script.last.messages[0] == system("One.")


async def test_an_override_may_bring_the_model_that_the_agent_has_not(run: Runner) -> None:
    agent = Agent()
    with agent.override(model=Script("other")):
        assert (await run(agent, "hi")).output == "other"
    with pytest.raises(NoEngine):
        await run(agent, "hi")


async def test_an_override_of_one_agent_leaves_the_others(run: Runner) -> None:
    one, two = Agent(Script("one")), Agent(Script("two"))
    with one.override(model=Script("other")):
        assert (await run(two, "hi")).output == "two"
        assert (await run(one.clone(), "hi")).output == "one", "a clone is another agent"


async def test_tasks_that_begin_in_the_block_keep_the_override() -> None:
    model = Hanging(answer="other")
    agent = Agent(Script("own"))
    outside = asyncio.Event()

    async def later() -> str:
        await outside.wait()
        return (await agent.run("hi")).output

    with agent.override(model=model):
        begun = asyncio.create_task(later())
        running = asyncio.create_task(agent.run("hi"))
        await model.place.entered.wait()
    outside.set()
    model.place.let_go.set()
    assert (await running).output == "other"
    assert await begun == "other"
    assert (await agent.run("hi")).output == "own"


async def test_tasks_beside_the_block_do_not_see_it() -> None:
    agent = Agent(Script("own"))
    inside, leave = asyncio.Event(), asyncio.Event()

    async def block() -> None:
        with agent.override(model=NeverAsked()):
            inside.set()
            await leave.wait()

    task = asyncio.create_task(block())
    await inside.wait()
    assert (await agent.run("hi")).output == "own"
    leave.set()
    await task


async def test_dependencies_can_be_overridden() -> None:
    async def look(ctx: RunContext[Any]) -> str:
        return f"{ctx.deps}"

    script = Script("ok")
    agent = Agent(script, instructions=look)
    with agent.override(deps="other"):
        await agent.run("hi", deps="own")
        assert script.last.messages[0] == system("other")


async def test_what_a_run_asks_for_lies_over_the_override(run: Runner) -> None:
    agent = Agent(NeverAsked())
    with agent.override(model=NeverAsked()):
        assert (await run(agent, "hi", model=Script("third"))).output == "third"


def test_an_override_that_cannot_be_is_refused_at_once() -> None:
    with pytest.raises(UserError, match="colour"), Agent(Script("own")).override(colour="red"):
        pass


async def test_resume_and_replay_see_the_override() -> None:
    journal = MemoryJournal()
    agent = Agent(NeverAsked(), name="one")
    async with agent.iter("hi", journal=journal) as run:
        pass
    with agent.override(model=Script("other")):
        assert (await agent.resume(run.loop_id, journal)).output == "other"


# Clones


async def test_a_clone_differs_in_what_is_named(run: Runner) -> None:
    agent = Agent(
        Script("own"), instructions="One.", tools=[add], name="first", limits=Limits(max_iterations=3)
    )
    other = agent.clone(model=Script("other"), name="second", settings=ModelSettings(max_tokens=5))
    assert (await run(other, "hi")).output == "other"
    assert (await run(agent, "hi")).output == "own"
    assert (other.spec.agent, other.spec.instructions, other.spec.limits) == (
        "second",
        "One.",
        Limits(max_iterations=3),
    )
    assert (agent.spec.agent, agent.spec.settings) == ("first", ModelSettings())


async def test_what_is_registered_later_is_not_the_clones(run: Runner) -> None:
    agent = Agent(Script("own"), tools=[add])
    other = agent.clone()

    @agent.tool
    async def extra() -> str:
        return "extra"

    assert set(agent.spec.tools) == {"add", "extra"}
    assert set(other.spec.tools) == {"add"}
    other.tool(step)
    assert set(other.spec.tools) == {"add", "step"}
    assert set(agent.spec.tools) == {"add", "extra"}


def test_a_clone_that_cannot_be_is_refused() -> None:
    with pytest.raises(UserError, match="no option 'colour'"):
        Agent(Script("own")).clone(colour="red")


# Registering


async def test_tools_are_registered_by_decorator(run: Runner) -> None:
    agent = Agent(Script([call("double", {"x": 2}), call("half", {"x": 2})], "ok"))

    @agent.tool
    async def double(x: int) -> int:
        return 2 * x

    @agent.tool(sequential=True, name="half")
    async def halve(x: int) -> float:
        return x / 2

    result = await run(agent, "go")
    assert [found.content for found in result.messages[2].tool_results] == [4, 1.0]
    assert agent.spec.tools["half"].definition.sequential
    assert await double(3) == 6, "what is registered can still be called"


async def test_what_is_registered_between_two_runs_counts_from_the_second(run: Runner) -> None:
    script = Script("ok")
    agent = Agent(script)
    await run(agent, "go")
    assert script.last.tools == ()
    agent.tool(breaks)
    await run(agent, "go")
    assert [definition.name for definition in script.last.tools] == ["breaks"]


async def test_instructions_are_registered_by_decorator(run: Runner) -> None:
    script = Script("ok")
    agent = Agent(script, instructions="One.")

    @agent.instructions
    def two(ctx: RunContext[Any]) -> str:
        return f"Two for {ctx.prompt}."

    @agent.instructions
    async def three(_: RunContext[Any]) -> str:
        return "Three."

    await run(agent, "you")
    assert script.last.messages[0] == system("One.", "Two for you.", "Three.")


async def test_validators_are_registered_by_decorator(run: Runner) -> None:
    agent = Agent(Script("no", "fine"))

    @agent.output_validator
    def check(_: RunContext[Any], output: str) -> str:
        if output == "no":
            raise ModelRetry("say something nicer")
        return output.upper()

    assert (await run(agent, "go")).output == "FINE"


async def test_what_is_not_registered_is_never_owed(run: Runner) -> None:
    result = await run(Agent(Script("hi")), "go")
    assert kinds_of(await result.events()) == ["Started", "ModelAnswered", "Ended"]
    spec = result.state.spec
    owes = (spec.admits, spec.prepares, spec.judges, spec.filters, spec.delivers, spec.output.checked)
    assert not any(owes)


async def test_what_is_registered_is_owed_and_recorded(run: Runner) -> None:
    from tests.orchestrate.scenarios import broken_today, cheap_only, deliver, dynamic, louder, pay

    agent = Agent(
        Script(call("pay", {"amount": 1}), "hi"),
        tools=[pay, broken_today],
        instructions=dynamic,
        approval=cheap_only,
        validators=[louder],
        deliveries=[deliver],
    )
    assert kinds_of(await (await run(agent, "go")).events()) == [
        "Started",
        "Admitted",
        "TurnPrepared",
        "ModelAnswered",
        "CallsJudged",
        "ToolReturned",
        "TurnPrepared",
        "ModelAnswered",
        "TurnSettled",
        "Delivered",
        "Ended",
    ]


# Deliveries


async def test_deliveries_run_in_order_with_the_outcome_and_the_output(run: Runner) -> None:
    seen: dict[str, Any] = {}

    def first(ctx: RunContext[Any], outcome: Any, output: Any) -> None:
        seen["first"] = (ctx.deps, outcome.value, output, len(ctx.messages))

    async def second(_: RunContext[Any], outcome: Any, output: Any) -> None:
        seen["second"] = output

    await run(Agent(Script("hi"), deliveries=[first, second]), "go", deps=7)
    assert seen == {"first": (7, "success", "hi", 2), "second": "hi"}


async def test_a_delivery_that_fails_is_recorded_and_changes_nothing(run: Runner) -> None:
    def fails(_: RunContext[Any], __: Any, ___: Any) -> None:
        raise OSError("disk full")

    result = await run(Agent(Script("hi"), deliveries=[fails]), "go")
    assert result.output == "hi"
    delivered: Any = (await result.events())[-2]
    assert "disk full" in delivered.error.message


def test_a_clone_has_the_types_of_what_it_is_made_of() -> None:
    agent = Agent("test", output=int)
    assert_type(agent.clone(retries=2), Agent[Any, int])
    assert_type(agent.clone(output=bool), Agent[Any, bool])
