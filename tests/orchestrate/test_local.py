"""Loops that tasks of this process carry on."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from flyball import Agent, LocalRuntime, MemoryJournal, RunContext, Runtime, SQLiteJournal, tool
from flyball.core.errors import AgentRunClosed, FlyballError, JournalFailure, LoopMismatch, UserError
from flyball.core.events import Ended, Event, ModelAnswered, Outcome, Resumed
from flyball.inference.answers import tool_call as call
from flyball.inference.stream import TextDelta
from flyball.orchestrate.followed import Recorded
from flyball.orchestrate.projections import normal_form
from flyball.orchestrate.recorded import send_signal
from flyball.testing import FakeClock
from flyball.testing.conformance import RuntimeConformance
from tests.orchestrate.driven import hanging_in
from tests.orchestrate.models import Hanging, Script
from tests.orchestrate.scenarios import SCENARIOS, Scenario, add, pay
from tests.patience import PATIENCE


class TestInMemory(RuntimeConformance):
    @asynccontextmanager
    async def serving(self, *agents: Agent[Any, Any]) -> AsyncGenerator[Runtime]:
        async with LocalRuntime() as runtime:
            yield runtime


class TestOnSQLite(RuntimeConformance):
    file: Path

    @pytest.fixture(autouse=True)
    def use_file(self, tmp_path: Path) -> None:
        self.file = tmp_path / "runs.db"

    @asynccontextmanager
    async def serving(self, *agents: Agent[Any, Any]) -> AsyncGenerator[Runtime]:
        async with SQLiteJournal(self.file) as journal, LocalRuntime(journal) as runtime:
            yield runtime


async def test_deps_are_bound_here() -> None:
    @tool
    async def who(ctx: RunContext[str]) -> str:
        return ctx.deps

    agent = Agent(Script(call("who"), "ok"), tools=[who])
    async with LocalRuntime() as runtime:
        result = await runtime.result(agent, await runtime.submit(agent, "go", deps="Ann"))
        assert result.messages[2].tool_results[0].text == "Ann"


async def test_pieces_come_while_the_model_still_speaks() -> None:
    model = Hanging("one ", "two")
    agent = Agent(model)
    async with LocalRuntime() as runtime:
        following = runtime.follow("l1")
        first = asyncio.ensure_future(anext(following))
        await asyncio.sleep(0)
        await runtime.submit(agent, "go", loop_id="l1")
        assert isinstance(await first, Recorded)
        texts: list[str] = []
        async for one in following:
            if isinstance(one, TextDelta):
                texts.append(one.text)
                model.place.let_go.set()
            elif isinstance(one, Recorded) and isinstance(one.event, ModelAnswered):
                assert "".join(texts) == one.event.message.text
        assert len(texts) > 1


async def test_a_loop_that_was_left_goes_on_when_it_is_submitted_again(tmp_path: Path) -> None:
    agent, place = hanging_in("tool")
    async with SQLiteJournal(tmp_path / "runs.db") as journal:
        async with LocalRuntime(journal) as runtime:
            await runtime.submit(agent, "go", loop_id="l1")
            await place.entered.wait()
            left = asyncio.ensure_future(runtime.result(agent, "l1"))
            told = asyncio.ensure_future(anext(runtime.follow("l1", 2)))
            await asyncio.sleep(0)
        for waiting in (left, told):
            with pytest.raises(AgentRunClosed, match="its runtime was closed"):
                await waiting
        place.let_go.set()
        async with LocalRuntime(journal) as runtime:
            await runtime.submit(agent, "go", loop_id="l1")
            assert (await runtime.result(agent, "l1")).output == "done"
        assert any(isinstance(event, Resumed) for event in await journal.read("l1"))


async def test_who_takes_a_loop_over_gives_its_result_to_those_who_wait() -> None:
    journal = MemoryJournal()
    agent, place = hanging_in("tool")
    async with LocalRuntime(journal) as runtime:
        await runtime.submit(agent, "go", loop_id="l1")
        await place.entered.wait()
        waiting = asyncio.ensure_future(runtime.result(agent, "l1"))
        place.let_go.set()
        assert (await agent.resume("l1", journal)).output == "done"
        assert (await waiting).output == "done"
        told = [one async for one in runtime.follow("l1")]
        assert isinstance(told[-1], Recorded)
        assert isinstance(told[-1].event, Ended)


class Broken(MemoryJournal):
    """A journal that can be written to so often, and no more."""

    __slots__ = ("left",)

    def __init__(self, left: int) -> None:
        super().__init__()
        self.left = left

    async def append(self, loop_id: str, events: Sequence[Event], expected: int) -> int:
        self.left -= 1
        if self.left < 0:
            raise JournalFailure("the disk is full")
        return await super().append(loop_id, events, expected)


async def follow_to_the_end(runtime: LocalRuntime, seen: list[Any]) -> None:
    async for one in runtime.follow("l1"):
        seen.append(one)


async def test_a_journal_that_fails_is_told_to_those_who_wait_and_all_that_was_recorded_before() -> None:
    agent = Agent(Script(call("add", {"x": 1, "y": 1}), "2"), tools=[add])
    journal = Broken(2)
    async with LocalRuntime(journal) as runtime:
        await runtime.submit(agent, "go", loop_id="l1")
        with pytest.raises(JournalFailure, match="disk is full"):
            await runtime.result(agent, "l1")
        seen: list[Any] = []
        with pytest.raises(JournalFailure, match="disk is full"):
            await follow_to_the_end(runtime, seen)
        assert [one.number for one in seen if isinstance(one, Recorded)] == [1, 2]
        journal.left = 99
        await runtime.submit(agent, "go", loop_id="l1")
        assert (await runtime.result(agent, "l1")).output == "2"


async def test_what_nobody_waits_for_and_fails_is_in_the_log() -> None:
    lines: list[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: lines.append(record.getMessage())
    logger = logging.getLogger("flyball.loops")
    logger.addHandler(handler)
    try:
        async with LocalRuntime(Broken(1)) as runtime:
            await runtime.submit(Agent(Script("hi")), "go", loop_id="l1")
            for _ in range(10):
                await asyncio.sleep(0)
    finally:
        logger.removeHandler(handler)
    assert lines == ["loop l1 is driven no longer, and stays as it is recorded: the disk is full"]


async def test_two_runtimes_over_one_journal_drive_a_loop_once() -> None:
    journal = MemoryJournal()
    agent, place = hanging_in("tool")
    async with LocalRuntime(journal) as one, LocalRuntime(journal) as other:
        first = asyncio.ensure_future(agent.run("go", loop_id="l1", runtime=one))
        await place.entered.wait()
        second = asyncio.ensure_future(agent.run("go", loop_id="l1", runtime=other))
        with pytest.raises(LoopMismatch):
            await agent.run("something else", loop_id="l1", runtime=other)
        await other.carry_on(agent.bindings(), "l1")
        place.let_go.set()
        assert [result.output for result in await asyncio.gather(first, second)] == ["done", "done"]
    assert not any(isinstance(event, Resumed) for event in await journal.read("l1"))


async def test_who_takes_a_loop_over_has_the_claim_and_is_left_alone() -> None:
    journal = MemoryJournal()
    agent, place = hanging_in("tool")
    async with LocalRuntime(journal) as one, LocalRuntime(journal) as other:
        first = asyncio.ensure_future(agent.run("go", loop_id="l1", runtime=one))
        await place.entered.wait()
        second = asyncio.ensure_future(agent.run("go", loop_id="l1", runtime=other))
        place.entered.clear()
        taking = asyncio.ensure_future(agent.resume("l1", journal))
        await place.entered.wait()
        while not journal.is_claimed("l1"):  # noqa: ASYNC110 - it is claimed again in a moment
            await asyncio.sleep(0)
        await other.carry_on(agent.bindings(), "l1")
        place.let_go.set()
        outputs = [result.output for result in await asyncio.gather(first, second, taking)]
        assert outputs == ["done", "done", "done"]
    assert len([event for event in await journal.read("l1") if isinstance(event, Resumed)]) == 1
    assert not journal.is_claimed("l1")


@pytest.mark.parametrize("left", [0, 1])
async def test_a_journal_that_fails_leaves_no_claim(left: int) -> None:
    journal = Broken(left)
    agent = Agent(Script("hi"))
    async with LocalRuntime(journal) as runtime:
        with pytest.raises(JournalFailure) as kept:
            await agent.run("go", loop_id="l1", runtime=runtime)
        assert not journal.is_claimed("l1")
        with pytest.raises(FlyballError):
            await agent.resume("l1", journal)
        assert not journal.is_claimed("l1")
        assert kept.value is not None, "an exception that somebody keeps keeps no claim"


async def test_what_is_gone_on_with_is_told_in_pieces_to_who_comes_later() -> None:
    agent, place = hanging_in("tool")
    journal = MemoryJournal()
    async with LocalRuntime(journal) as one:
        await one.submit(agent, "go", loop_id="l1")
        await place.entered.wait()
    async with LocalRuntime(journal) as other:
        await other.carry_on(agent.bindings(), "l1")
        place.let_go.set()
        assert [piece async for piece in other.follow("l1") if isinstance(piece, TextDelta)]


async def test_who_comes_later_hears_pieces_of_a_runtime_that_speaks_aloud() -> None:
    model = Hanging("one ", "two")
    async with LocalRuntime(aloud=True) as runtime:
        await runtime.submit(Agent(model), "go", loop_id="l1")
        await model.place.entered.wait()
        model.place.let_go.set()
        texts = [one.text async for one in runtime.follow("l1") if isinstance(one, TextDelta)]
    assert "".join(texts) == "one twodone"


async def test_what_is_parked_is_driven_again_by_anybody(tmp_path: Path) -> None:
    agent, place = hanging_in("tool")
    async with SQLiteJournal(tmp_path / "runs.db") as journal, LocalRuntime(journal) as runtime:
        for _ in range(2):
            await runtime.submit(agent, "go", loop_id="l1")
            await place.entered.wait()
            assert runtime.under_way == ("l1",)
            await runtime.park()
            place.entered.clear()
            assert (runtime.under_way, journal.is_claimed("l1")) == ((), False)
        place.let_go.set()
        async with LocalRuntime(journal) as other:
            await other.carry_on(agent.bindings(), "l1")
            assert (await other.result(agent, "l1")).events
        assert isinstance((await journal.read("l1"))[-1], Ended)
        await runtime.submit(agent, "go", loop_id="l2")
        await runtime.result(agent, "l2")


async def test_what_one_runtime_leaves_the_other_goes_on_with() -> None:
    journal = MemoryJournal()
    agent, place = hanging_in("tool")
    async with LocalRuntime(journal) as other:
        async with LocalRuntime(journal) as one:
            first = asyncio.ensure_future(agent.run("go", loop_id="l1", runtime=one))
            await place.entered.wait()
            second = asyncio.ensure_future(agent.run("go", loop_id="l1", runtime=other))
            await asyncio.sleep(0)
        with pytest.raises(AgentRunClosed):
            await first
        place.let_go.set()
        assert (await asyncio.wait_for(second, PATIENCE)).output == "done"


async def test_signals_come_from_anywhere_and_have_the_loops_own_time() -> None:
    journal, clock = MemoryJournal(), FakeClock()
    agent = Agent(Script(call("pay", {"amount": 1}), "ok"), tools=[pay])
    async with LocalRuntime(journal) as runtime:
        await runtime.submit(agent, "go", loop_id="l1", clock=clock)
        await journal.wait("l1", 1)
        await clock.advance(5)
        await runtime.signal("l1", "pause")
        assert (await journal.read("l1"))[-1].at == clock.now()
        await send_signal(journal, "l1", "resume")
        await send_signal(journal, "l1", "approve")
        assert (await runtime.result(agent, "l1")).output == "ok"


async def test_a_retry_of_a_loop_that_was_begun_elsewhere_waits_for_who_has_the_agent() -> None:
    from flyball.core.errors import EngineError

    journal = MemoryJournal()
    agent = Agent(Script(EngineError("down"), "ok"))
    with pytest.raises(EngineError):
        await agent.run("go", journal=journal, loop_id="l1")
    async with LocalRuntime(journal) as runtime:
        await runtime.signal("l1", "retry")
        assert not isinstance((await journal.read("l1"))[-1], Resumed)
        await runtime.submit(agent, "go", loop_id="l1")
        assert (await runtime.result(agent, "l1")).output == "ok"


async def test_what_is_no_runtime_is_refused() -> None:
    with pytest.raises(UserError, match=r"runtime= takes a runtime, such as LocalRuntime\(journal\)"):
        await Agent(Script("hi")).run("go", runtime=MemoryJournal())  # pyright: ignore[reportArgumentType]
    with pytest.raises(UserError, match="a run has no option 'driver'"):
        await Agent(Script("hi")).run("go", driver=LocalRuntime())  # pyright: ignore[reportCallIssue]


@pytest.mark.parametrize("scenario", SCENARIOS, ids=repr)
async def test_a_run_comes_to_the_same_end_as_in_the_callers_task(scenario: Scenario) -> None:
    here = await ended(scenario.make(), scenario)
    async with LocalRuntime() as runtime:
        assert await ended(scenario.make(), scenario, runtime=runtime) == here


async def ended(agent: Agent[Any, Any], scenario: Scenario, **more: Any) -> tuple[Any, ...]:
    try:
        result = await asyncio.wait_for(agent.run(scenario.prompt, **scenario.options, **more), PATIENCE)
    except FlyballError as error:
        result, code = error.partial, error.code
    else:
        code = ""
    edited = None if result.editor is None else (result.editor.output, result.editor.outcome)
    return code, result.output, result.messages, edited, normal_form(await result.events())


async def test_an_architects_result_comes_with_its_editors() -> None:
    scenario = next(one for one in SCENARIOS if one.name == "an architect and its editor")
    agent = scenario.make()
    async with LocalRuntime() as runtime:
        result = await runtime.result(agent, await runtime.submit(agent, "go"))
        assert result.editor is not None
        assert result.editor.outcome is Outcome.SUCCESS
        events = await runtime.journal.read(result.editor.loop_id)
        assert not any(isinstance(event, Resumed) for event in events), "it was driven once"
