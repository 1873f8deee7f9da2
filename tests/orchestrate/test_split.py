"""The split world: performers that share nothing but bytes, in a world that doubles, reorders and crashes."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

import pytest

from flyball import Agent, RunContext, Safety, tool
from flyball.core.errors import (
    AgentRunClosed,
    CancelledTimeout,
    DepsError,
    EngineError,
    FlyballError,
    LoopMismatch,
)
from flyball.core.events import ToolReturned
from flyball.core.history import check_history
from flyball.core.messages import ResultKind
from flyball.core.signals import Signal, SignalType
from flyball.inference.answers import tool_call as call
from flyball.inference.request import Request, Result
from flyball.orchestrate.config import bind
from flyball.orchestrate.projections import normal_form
from flyball.testing.clock import FakeClock
from flyball.testing.split import CALM, ROUGH, Chaos, SplitDriver
from tests.effort import examples
from tests.orchestrate.models import Script
from tests.orchestrate.scenarios import SCENARIOS, Scenario, add, pay

SEEDS = range(examples(50).max_examples)
WORST = Chaos(double=0.5, reorder=0.9, crash=0.4)


async def ended(scenario: Scenario, driver: SplitDriver | None = None) -> tuple[Any, ...]:
    """How a scenario ends: the code, the output, the messages, the usage, and the journal in normal form."""
    options: dict[str, Any] = scenario.options if driver is None else {**scenario.options, "runtime": driver}
    try:
        result = await scenario.make().run(scenario.prompt, **options)
    except FlyballError as error:
        result, code = error.partial, error.code
    else:
        code = ""
    check_history(result.messages)
    return code, result.output, result.messages, result.usage, normal_form(await result.events())


@pytest.mark.seeded
@pytest.mark.parametrize("scenario", SCENARIOS, ids=repr)
async def test_a_run_comes_to_the_same_end_in_every_world(scenario: Scenario) -> None:
    here = await ended(scenario)
    assert here[:2] == (scenario.code, scenario.output)
    assert await ended(scenario, SplitDriver()) == here
    crashes = 0
    for seed in SEEDS:
        driver = SplitDriver(seed, WORST if seed % 5 == 0 else ROUGH)
        assert await ended(scenario, driver) == here, f"seed {seed}"
        crashes += driver.crashes
    assert crashes, "nothing went wrong, so this shows nothing"


@pytest.mark.seeded
@pytest.mark.parametrize("safety", Safety)
async def test_a_result_is_recorded_once_and_a_call_repeated_only_where_that_is_allowed(
    safety: Safety,
) -> None:
    repeated = interrupted = 0
    for seed in SEEDS:
        ran: Counter[str] = Counter()

        @tool(safety=safety)
        async def work(ctx: RunContext[Any], n: int) -> int:
            ran[ctx.idempotency_key] += 1  # noqa: B023 - it runs within the same turn of the loop
            return n

        answers = [[call("work", {"n": 3 * turn + n}) for n in range(3)] for turn in range(3)]
        driver = SplitDriver(seed, ROUGH)
        result = await Agent(Script(*answers, "done"), tools=[work]).run("go", runtime=driver)
        events = await result.events()
        recorded = Counter((event.turn, event.index) for event in events if isinstance(event, ToolReturned))
        assert set(recorded.values()) == {1}
        assert len(recorded) == 9
        assert Counter(driver.executions) == ran
        results = [found for message in result.messages for found in message.tool_results]
        interrupted += sum(found.status is ResultKind.INTERRUPTED for found in results)
        assert [found.content for found in results if found.status is ResultKind.RETURN] == [
            n for n, found in enumerate(results) if found.status is ResultKind.RETURN
        ]
        repeated += sum(times > 1 for times in ran.values())
        if safety is Safety.AT_MOST_ONCE:
            assert max(ran.values()) == 1
    assert bool(repeated) == (safety is not Safety.AT_MOST_ONCE)
    assert bool(interrupted) == (safety is Safety.AT_MOST_ONCE)


async def test_in_a_calm_world_everything_is_done_once() -> None:
    driver = SplitDriver(0, CALM)
    script = Script([call("add", {"x": n, "y": 1}) for n in range(10)], call("add", {"x": 1, "y": 1}), "done")
    await Agent(script, tools=[add]).run("go", runtime=driver)
    assert script.calls == 3
    assert len(driver.executions) == len(set(driver.executions)) == 11
    assert driver.crashes == 0


async def test_a_seed_tells_the_whole_story() -> None:
    stories: list[tuple[int, list[str]]] = []
    for _ in range(2):
        driver = SplitDriver(7, ROUGH)
        await Agent(Script([call("add", {"x": 1, "y": 1})] * 3, "done"), tools=[add]).run(
            "go", runtime=driver, loop_id="one"
        )
        stories.append((driver.crashes, driver.executions))
    assert stories[0] == stories[1]
    assert stories[0][0] > 0


async def test_dependencies_do_not_travel() -> None:
    with pytest.raises(DepsError, match="does not travel"):
        await Agent(Script("hi")).run("go", deps=5, runtime=SplitDriver())


async def test_workers_bind_their_own_dependencies() -> None:
    @tool
    async def look(ctx: RunContext[Any]) -> str:
        return f"{ctx.deps}"

    def greet(ctx: RunContext[Any]) -> str:
        return f"Greet {ctx.deps}."

    agent = Agent(Script(call("look"), "ok"), tools=[look], instructions=greet)
    result = await agent.run("go", runtime=SplitDriver(3, ROUGH, deps="Ann"))
    assert result.messages[0].text == "Greet Ann."
    assert result.messages[3].tool_results[0].content == "Ann"


async def test_a_loop_that_only_waits_is_given_back_as_not_over() -> None:
    driver = SplitDriver()
    with pytest.raises(AgentRunClosed, match="not over"):
        await Agent(Script(call("pay", {"amount": 1})), tools=[pay]).run("go", runtime=driver)
    assert len(await driver.journal.loops()) == 1


async def test_one_loop_id_is_one_loop_here_too() -> None:
    driver = SplitDriver()
    agent = Agent(Script("hi"))
    await agent.run("go", runtime=driver, loop_id="one")
    with pytest.raises(LoopMismatch, match="prompt"):
        await agent.run("stop", runtime=driver, loop_id="one")


async def test_the_deadline_holds_here_too() -> None:
    clock = FakeClock()

    @tool
    async def slow() -> str:
        await clock.advance(100)
        return "done"

    for seed in range(10):
        with pytest.raises(CancelledTimeout) as caught:
            await Agent(Script(call("slow"), "late"), tools=[slow]).run(
                "go", timeout=60, clock=clock, runtime=SplitDriver(seed, ROUGH)
            )
        check_history(caught.value.partial.messages)


async def test_nothing_but_bytes_is_kept() -> None:
    driver = SplitDriver()
    result = await Agent(Script(call("add", {"x": 1, "y": 1}), "2"), tools=[add]).run("go", runtime=driver)
    assert all(isinstance(data, bytes) for data in driver.journal.bytes[result.loop_id])
    assert result.journal is driver.journal


async def test_a_signal_may_also_come_as_a_message() -> None:
    for seed in range(10):
        driver, clock = SplitDriver(seed, ROUGH), FakeClock()
        agent = Agent(Script(call("pay", {"amount": 1}), "ok"), tools=[pay])
        with pytest.raises(AgentRunClosed):
            await agent.run("go", runtime=driver, loop_id="one")
        bindings = bind(agent.config)
        state = await driver.signal(bindings, "one", Signal(SignalType.APPROVE, id="s"), clock)
        assert (state.at, state.history[-1].text) == ("done", "ok")


@pytest.mark.parametrize("chaos", [CALM, ROUGH], ids=["calm", "rough"])
async def test_work_that_cancels_the_task_it_runs_in_has_failed(chaos: Chaos) -> None:
    def cancel_this_task() -> None:
        task = asyncio.current_task()
        assert task is not None
        task.cancel()

    @tool
    async def harakiri() -> None:
        cancel_this_task()
        await asyncio.sleep(0)

    class Rash(Script):
        async def infer(self, request: Request) -> Result:
            cancel_this_task()
            await asyncio.sleep(0)
            return await super().infer(request)

    agent = Agent(Script(call("harakiri"), "ok"), tools=[harakiri])
    result = await agent.run("go", runtime=SplitDriver(1, chaos))
    assert result.messages[2].tool_results[0].error == "harakiri cancelled itself"
    with pytest.raises(EngineError, match="CancelledError"):
        await Agent(Rash("hi")).run("go", runtime=SplitDriver(1, chaos))
