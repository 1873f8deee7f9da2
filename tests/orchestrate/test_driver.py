"""The in-process driver: the same run under every driver, and a journal that is always in step with it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from flyball import Agent, RunContext, tool
from flyball.core.errors import (
    CancelledSignal,
    CancelledTimeout,
    FlyballError,
    JournalCorrupt,
    JournalFailure,
    LoopTakenOver,
)
from flyball.core.events import VERSION, Event, Outcome, Resumed, SignalReceived, Stage, ToolReturned
from flyball.core.history import check_history
from flyball.core.ids import new_id
from flyball.core.messages import ResultKind, Role, Text, user
from flyball.core.signals import Signal, SignalType
from flyball.inference.answers import tool_call as call
from flyball.orchestrate.journal import MemoryJournal
from flyball.orchestrate.machine import fold
from flyball.orchestrate.recorded import send_signal
from flyball.testing.clock import FakeClock
from tests.orchestrate.conftest import Runner, kinds_of
from tests.orchestrate.driven import PLACES, Driven, hanging_in
from tests.orchestrate.models import Hanging, NeverAsked, Place, Script
from tests.orchestrate.scenarios import SCENARIOS, TEN, Scenario, add
from tests.orchestrate.where import Where


class GatedJournal(MemoryJournal):
    """A journal whose appends can be held up, fail, or break off before or after they are written."""

    def __init__(self) -> None:
        super().__init__()
        self.gate: Place | None = None
        self.gates: dict[int, Place] = {}
        self.fail: Exception | None = None
        self.fail_after: Exception | None = None
        self.fail_at = 0
        self.appends = 0

    async def append(self, loop_id: str, events: Sequence[Event], expected: int) -> int:
        self.appends += 1
        if self.appends == self.fail_at:
            raise JournalFailure("the disk is full")
        gate, self.gate = self.gates.pop(self.appends, self.gate), None
        if gate is not None:
            await gate.hang()
        if self.fail is not None:
            failure, self.fail = self.fail, None
            raise failure
        length = await super().append(loop_id, events, expected)
        if self.fail_after is not None:
            failure, self.fail_after = self.fail_after, None
            raise failure
        return length


@pytest.mark.parametrize("scenario", SCENARIOS, ids=repr)
async def test_a_scenario_ends_as_it_should_under_every_driver(run: Runner, scenario: Scenario) -> None:
    try:
        result = await run(scenario.make(), scenario.prompt, **scenario.options)
    except FlyballError as error:
        result, code = error.partial, error.code
    else:
        code = ""
    assert (code, result.output) == (scenario.code, scenario.output)


# Signals and time while the journal is being written


@pytest.mark.parametrize("calls", [1, 3], ids=["alone", "side by side"])
@pytest.mark.parametrize("how", ["handle", "journal", "time"])
async def test_what_comes_while_events_are_written_is_heard(calls: int, how: str) -> None:
    """The answer is being recorded; a cancel comes; the calls that it asked for never begin."""
    journal, clock, gate = GatedJournal(), FakeClock(), Place()
    ran: list[int] = []

    @tool
    async def work(n: int) -> int:
        ran.append(n)
        return n

    agent = Agent(Script([call("work", {"n": n}) for n in range(calls)], "never"), tools=[work])
    async with agent.iter("go", journal=journal, timeout=60, clock=clock) as run:
        journal.gate = gate
        task = asyncio.create_task(run.next())
        await gate.entered.wait()
        if how == "handle":
            signal = asyncio.create_task(run.cancel())
            await asyncio.sleep(0)
        elif how == "journal":
            signal = asyncio.create_task(send_signal(journal, run.loop_id, Signal(SignalType.CANCEL)))
            await asyncio.sleep(0)
        else:
            signal = asyncio.create_task(clock.advance(60))
            await asyncio.sleep(0)
        gate.let_go.set()
        await signal
        await task
        assert run.done
        with pytest.raises(CancelledTimeout if how == "time" else CancelledSignal) as caught:
            _ = run.result
    assert ran == []
    events = await journal.read(run.loop_id)
    assert fold(events) == caught.value.partial.state
    check_history(caught.value.partial.messages)


async def test_an_approval_is_recorded_before_what_it_allows_begins() -> None:
    journal, gate = GatedJournal(), Place()
    seen: list[list[str]] = []

    @tool(approval=True)
    async def guarded(ctx: RunContext[Any]) -> str:
        seen.append(kinds_of(await journal.read(ctx.run_id)))
        return "ran"

    agent = Agent(Script(call("guarded"), "done"), tools=[guarded])
    async with agent.iter("go", journal=journal) as run:
        task = asyncio.create_task(run.next())
        await journal.wait(run.loop_id, 1)
        journal.gate = gate
        approving = asyncio.create_task(run.signal("approve"))
        await gate.entered.wait()
        for _ in range(5):
            await asyncio.sleep(0)
        assert seen == []
        gate.let_go.set()
        assert await approving
        await task
    assert seen == [["Started", "ModelAnswered", "SignalReceived"]]


@pytest.mark.parametrize("beside", [0, 1], ids=["alone", "side by side"])
async def test_an_at_most_once_call_does_not_start_if_a_cancel_comes_while_its_start_is_written(
    beside: int,
) -> None:
    journal, gate = GatedJournal(), Place()
    ran: list[str] = []

    @tool(safety="at_most_once")
    async def launch() -> None:
        ran.append("launch")

    journal.gates[3] = gate
    calls = [call("launch"), *[call("add", {"x": 1, "y": 1})] * beside]
    async with Agent(Script(calls), tools=[launch, add]).iter("go", journal=journal) as run:
        task = asyncio.create_task(run.next())
        await gate.entered.wait()
        cancelling = asyncio.create_task(run.cancel())
        await asyncio.sleep(0)
        gate.let_go.set()
        assert await cancelling
        await task
        with pytest.raises(CancelledSignal) as caught:
            _ = run.result
    assert ran == []
    assert fold(await journal.read(run.loop_id)) == caught.value.partial.state


async def test_a_deadline_and_a_cancel_at_once_are_one_end() -> None:
    clock = FakeClock()
    agent, place = hanging_in("tools")
    async with agent.iter("go", timeout=5, clock=clock) as run:
        task = asyncio.create_task(run.next())
        await place.entered.wait()
        ends = await asyncio.gather(run.cancel(), clock.advance(5))
        await task
        with pytest.raises((CancelledSignal, CancelledTimeout)):
            _ = run.result
    assert ends[0] is Stage.CANCELLED
    assert place.cancelled == 3


# A journal that others write to


@pytest.mark.parametrize("name", [name for name in PLACES if name != "delivery"])
async def test_what_others_say_is_taken_in_and_the_run_goes_on(name: str) -> None:
    journal = MemoryJournal()
    agent, place = hanging_in(name)
    driven = Driven("journal", Where.here(journal))
    await driven.start(agent)
    await place.entered.wait()
    for n in range(3):
        assert await driven.signal("feedback", f"hint {n}")
    place.let_go.set()
    result = await driven.end()
    assert result.output == "done"
    events = await journal.read(driven.loop_id)
    assert fold(events) == result.state
    assert kinds_of(events).count("SignalReceived") == 3
    said = [part for message in result.messages if message.role is Role.USER for part in message.parts]
    assert said[-3:] == [Text(f"hint {n}") for n in range(3)]


@pytest.mark.parametrize(("kind", "outcome"), [("cancel", Outcome.CANCELLED), ("feedback", Outcome.SUCCESS)])
async def test_an_end_that_is_not_recorded_is_none(kind: str, outcome: Outcome) -> None:
    """The answer is there and is being written; somebody else is first."""
    journal, gate = GatedJournal(), Place()
    driven = Driven("journal", Where.here(journal))
    script = Script("one", "two")
    journal.gates[2] = gate
    await driven.start(Agent(script))
    await gate.entered.wait()
    assert await driven.signal(kind, "wait")
    gate.let_go.set()
    if outcome is Outcome.CANCELLED:
        with pytest.raises(CancelledSignal):
            await driven.end()
    else:
        result = await driven.end()
        assert result.output == "two"
        assert script.last.messages[-1] == user("wait")
    events = await journal.read(driven.loop_id)
    assert fold(events).outcome is outcome


async def test_tools_that_signal_their_own_loop_all_at_once_do_not_trip_over_each_other() -> None:
    journal = MemoryJournal()

    @tool
    async def note(ctx: RunContext[Any], n: int) -> int:
        await asyncio.sleep(0)
        await send_signal(journal, ctx.run_id, Signal(SignalType.FEEDBACK, text=f"{n}"))
        return n

    agent = Agent(Script([call("note", {"n": n}) for n in range(20)], "done"), tools=[note])
    result = await agent.run("go", journal=journal)
    events = await result.events()
    assert fold(events) == result.state
    assert sorted(event.index for event in events if isinstance(event, ToolReturned)) == list(range(20))
    assert len([event for event in events if isinstance(event, SignalReceived)]) == 20


@pytest.mark.parametrize("held", [False, True], ids=["waiting for the model", "held by its reader"])
async def test_a_stream_that_is_taken_over_ends_with_that(*, held: bool) -> None:
    journal, model = MemoryJournal(), Hanging("one ", "two ")
    async with Agent(model).run_stream("go", journal=journal) as stream:
        pieces = stream.text()
        assert await anext(pieces) == "one "
        if not held:
            assert await anext(pieces) == "two "
            waiting = asyncio.create_task(anext(pieces, ""))  # pyright: ignore[reportArgumentType]
            await model.place.entered.wait()
        else:
            await asyncio.sleep(0)
            waiting = None
        await journal.append(stream.loop_id, [Resumed(5.0, VERSION, 1)], 1)
        for _ in range(5):
            await asyncio.sleep(0)
        with pytest.raises(LoopTakenOver):
            await (waiting if waiting is not None else anext(pieces))
    assert model.closed == 1


async def test_a_journal_that_lost_events_stops_the_driver() -> None:
    journal = MemoryJournal()
    async with Agent(Script(*TEN), tools=[add]).iter("go", journal=journal) as run:
        await run.next()
        journal._loops[run.loop_id] = journal._loops[run.loop_id][:1]  # pyright: ignore[reportPrivateUsage]
        with pytest.raises(JournalCorrupt, match="lost events"):
            await run.next()


# Appends that go wrong


@pytest.mark.parametrize("when", ["fail", "fail_after"], ids=["before it is written", "after it was written"])
async def test_an_append_that_failed_can_be_made_good(when: str) -> None:
    journal = GatedJournal()
    async with Agent(Script(call("add", {"x": 1, "y": 1}), "2"), tools=[add]).iter(
        "go", journal=journal
    ) as run:
        setattr(journal, when, JournalFailure("the disk is full"))
        with pytest.raises(JournalFailure, match="disk is full"):
            await run.next()
        async for _ in run:
            pass
        assert run.result.output == "2"
    assert kinds_of(await journal.read(run.loop_id)) == [
        "Started",
        "ModelAnswered",
        "ToolReturned",
        "ModelAnswered",
        "Ended",
    ]


@pytest.mark.parametrize("when", ["fail", "fail_after"], ids=["before it is written", "after it was written"])
async def test_a_signal_whose_append_failed_is_neither_lost_nor_doubled(when: str) -> None:
    journal = GatedJournal()
    script = Script(call("add", {"x": 1, "y": 1}), call("add", {"x": 1, "y": 2}), "3")
    async with Agent(script, tools=[add]).iter("go", journal=journal) as run:
        await run.next()
        setattr(journal, when, JournalFailure("busy"))
        with pytest.raises(JournalFailure):
            await run.signal("feedback", "be quick")
        async for _ in run:
            pass
    events = await journal.read(run.loop_id)
    assert kinds_of(events).count("SignalReceived") == 1
    assert fold(events).history == list(run.messages)


@pytest.mark.parametrize("fails", range(2, 6))
async def test_a_failing_journal_ends_the_run_and_what_was_written_can_be_resumed(fails: int) -> None:
    journal = GatedJournal()
    journal.fail_at = fails
    calls = [call("add", {"x": 2, "y": 2}), call("add", {"x": 3, "y": 3})]
    agent = Agent(Script(call("add", {"x": 1, "y": 1}), calls, "done"), tools=[add])
    loop_id = new_id()
    with pytest.raises(JournalFailure, match="disk is full"):
        await agent.run("go", journal=journal, loop_id=loop_id)
    result = await agent.resume(loop_id, journal)
    assert result.output == "done"
    assert result.usage.tool_calls == 3


async def test_a_task_cancelled_in_the_middle_of_an_append_can_go_on() -> None:
    journal, gate = GatedJournal(), Place()
    async with Agent(Script(call("add", {"x": 1, "y": 1}), "2"), tools=[add]).iter(
        "go", journal=journal
    ) as run:
        journal.gate = gate
        task = asyncio.create_task(run.next())
        await gate.entered.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        async for _ in run:
            pass
        assert run.result.output == "2"
    assert kinds_of(await journal.read(run.loop_id)).count("ModelAnswered") == 2


# What is not needed is not done


async def test_a_plain_run_appends_twice() -> None:
    journal = GatedJournal()
    await Agent(Script("hi")).run("go", journal=journal)
    assert journal.appends == 2


async def test_no_task_is_left_behind(run: Runner) -> None:
    before = asyncio.all_tasks()
    await run(Agent(Script(*TEN, "done"), tools=[add]), "go", timeout=60)
    for _ in range(3):
        await asyncio.sleep(0)
    assert asyncio.all_tasks() == before


async def test_no_task_is_left_behind_by_what_was_cut_off(run: Runner) -> None:
    before = asyncio.all_tasks()
    if run.split:
        return
    for name in PLACES:
        agent, place = hanging_in(name)
        task = asyncio.create_task(run(agent, "go"))
        await place.entered.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    for _ in range(3):
        await asyncio.sleep(0)
    assert asyncio.all_tasks() == before


async def test_a_tool_that_is_slow_to_stop_is_waited_for() -> None:
    stopping, stopped = asyncio.Event(), asyncio.Event()
    entered = asyncio.Event()

    @tool
    async def tidy(n: int) -> None:
        try:
            entered.set()
            await asyncio.Event().wait()
        finally:
            stopping.set()
            await stopped.wait()

    agent = Agent(Script([call("tidy", {"n": n}) for n in range(2)]), tools=[tidy])
    async with agent.iter("go") as run:
        task = asyncio.create_task(run.next())
        await entered.wait()
        await run.cancel()
        await stopping.wait()
        assert not task.done()
        stopped.set()
        step = await task
    assert step is not None
    assert {found.status for found in step.results} == {ResultKind.SKIPPED}


async def test_a_loop_that_is_over_needs_no_model() -> None:
    journal = MemoryJournal()
    first = await Agent(Script("hi")).run("go", journal=journal)
    assert (await Agent(NeverAsked()).resume(first.loop_id, journal)).output == "hi"
