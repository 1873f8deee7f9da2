"""What is said to a running loop: by its handle or by its journal, whatever it is doing just then."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flyball import Agent, Limits, RunContext, tool
from flyball.core.effects import Wait
from flyball.core.errors import Cancellation, CancelledSignal, LoopNotFound, UserError
from flyball.core.events import Outcome, SignalReceived
from flyball.core.history import check_history
from flyball.core.messages import ResultKind, Text, user
from flyball.core.signals import Signal, SignalType
from flyball.core.spec import LoopSpec
from flyball.inference.answers import tool_call as call
from flyball.inference.request import Request
from flyball.inference.stream import StreamEvent
from flyball.orchestrate.journal import Journal, MemoryJournal
from flyball.orchestrate.machine import owed
from flyball.orchestrate.recorded import send_signal
from flyball.testing.clock import FakeClock
from flyball.testing.split import ROUGH, SplitDriver
from tests.orchestrate.conftest import Runner, kinds_of
from tests.orchestrate.driven import PLACES, WAYS, Driven, Way, hanging_in
from tests.orchestrate.models import Hanging, Place, Script
from tests.orchestrate.scenarios import add
from tests.orchestrate.simulation import World, is_work, reply, specs
from tests.orchestrate.where import Where, read_into

INTERRUPTIBLE = [name for name in PLACES if name != "delivery"]
"""A delivery is owed once the outcome is decided: no signal takes that back."""


@pytest.fixture(params=WAYS)
def driven(request: pytest.FixtureRequest, where: Where) -> Driven:
    """A run in a task of its own, reached by its journal, its steps or its stream."""
    return Driven(request.param, where)


# Cancel


@pytest.mark.parametrize("name", INTERRUPTIBLE)
async def test_a_cancel_interrupts_at_once_whatever_is_going_on(driven: Driven, name: str) -> None:
    agent, place = hanging_in(name)
    await driven.start(agent)
    await driven.reach(place)
    assert await driven.signal("cancel", "enough")
    with pytest.raises(CancelledSignal, match="cancelled by me: enough") as caught:
        await driven.end()
    assert place.cancelled == place.times
    error = caught.value
    assert error.details == {"by": "me", "reason": "enough"}
    assert error.partial.outcome is Outcome.CANCELLED
    check_history(error.partial.messages)
    assert (await driven.kinds())[-2:] == ["SignalReceived", "Ended"]


async def test_calls_that_a_cancel_cut_off_are_answered(driven: Driven) -> None:
    agent, place = hanging_in("tools")
    await driven.start(agent)
    await driven.reach(place)
    await driven.signal("cancel")
    with pytest.raises(CancelledSignal) as caught:
        await driven.end()
    results = caught.value.partial.messages[-1].tool_results
    assert [found.status for found in results] == [ResultKind.SKIPPED] * 3
    assert "cancelled by me" in results[0].text


async def test_an_at_most_once_call_that_a_cancel_cut_off_may_have_had_its_effect(driven: Driven) -> None:
    agent, place = hanging_in("at_most_once")
    await driven.start(agent)
    await driven.reach(place)
    await driven.signal("cancel")
    with pytest.raises(CancelledSignal) as caught:
        await driven.end()
    assert caught.value.partial.messages[-1].tool_results[0].status is ResultKind.INTERRUPTED


async def test_results_that_were_there_before_the_cancel_stay(driven: Driven) -> None:
    place = Place()

    @tool
    async def work(n: int) -> str:
        if n:
            await place.hang()
        return "worked"

    await driven.start(Agent(Script([call("work", {"n": 0}), call("work", {"n": 1})]), tools=[work]))
    await driven.reach(place)
    await driven.journal.wait(driven.loop_id, 2)
    await driven.signal("cancel")
    with pytest.raises(CancelledSignal) as caught:
        await driven.end()
    results = caught.value.partial.messages[-1].tool_results
    assert [found.status for found in results] == [ResultKind.RETURN, ResultKind.SKIPPED]


async def test_a_history_that_was_cancelled_can_be_gone_on_with(driven: Driven) -> None:
    agent, place = hanging_in("tools")
    await driven.start(agent)
    await driven.reach(place)
    await driven.signal("cancel")
    with pytest.raises(CancelledSignal) as caught:
        await driven.end()
    result = await Agent(Script("fine")).run("And now?", messages=caught.value.partial.messages)
    assert result.output == "fine"


async def test_what_must_happen_at_the_end_happens_after_a_cancel_too(driven: Driven) -> None:
    delivered: list[Any] = []

    async def deliver(_: RunContext[Any], outcome: Outcome, output: Any) -> None:
        delivered.append((outcome, output))

    model = Hanging()
    await driven.start(Agent(model, deliveries=[deliver]))
    await driven.reach(model.place)
    await driven.signal("cancel")
    with pytest.raises(CancelledSignal):
        await driven.end()
    assert delivered == [(Outcome.CANCELLED, None)]


async def test_a_delivery_is_not_cut_off(driven: Driven) -> None:
    agent, place = hanging_in("delivery")
    await driven.start(agent)
    await driven.reach(place)
    assert not await driven.signal("cancel"), "the outcome is decided"
    place.let_go.set()
    assert (await driven.end()).output == "done"


async def test_a_model_that_will_not_be_cancelled_ends_the_run_when_it_answers(where: Where) -> None:
    entered = asyncio.Event()

    class Stubborn(Script):
        async def infer(self, request: Any) -> Any:
            entered.set()
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                return await super().infer(request)

    driven = Driven("journal", where)
    await driven.start(Agent(Stubborn("too late")))
    await entered.wait()
    await driven.signal("cancel")
    with pytest.raises(CancelledSignal) as caught:
        await driven.end()
    assert driven.task.cancelling() == 0
    assert caught.value.partial.messages == (user("go"),)


async def test_a_tool_may_cancel_its_own_run(run: Runner) -> None:
    journal = MemoryJournal()

    @tool
    async def stop(ctx: RunContext[Any]) -> str:
        await send_signal(journal, ctx.run_id, Signal(SignalType.CANCEL, id="stop", text="by myself"))
        return "stopped"

    agent = Agent(Script([call("stop"), call("add", {"x": 1, "y": 1})], "never"), tools=[stop, add])
    error = await run.failing(CancelledSignal, agent, "go", journal=journal)
    assert error.details["reason"] == "by myself"


# Cancelling the task is not a signal


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", PLACES)
async def test_a_cancelled_task_leaves_a_journal_that_resume_goes_on_with(
    where: Where, way: Way, name: str
) -> None:
    driven = Driven(way, where)
    agent, place = hanging_in(name)
    await driven.start(agent)
    await driven.reach(place)
    driven.task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await driven.end()
    assert place.cancelled == place.times
    assert "Ended" not in await driven.kinds()
    place.let_go.set()
    result = await where.resume(agent, driven.loop_id)
    assert result.output == "done"
    check_history(result.messages)
    if name == "at_most_once":
        assert result.messages[2].tool_results[0].status is ResultKind.INTERRUPTED


@pytest.mark.parametrize("name", PLACES)
async def test_a_time_out_of_the_callers_is_the_callers(where: Where, name: str) -> None:
    agent, place = hanging_in(name)
    loop = asyncio.get_running_loop()

    async def limited() -> None:
        async with asyncio.timeout(None) as scope:
            reach_in.append(scope)
            await agent.run("go", **where.options({}))

    async def caller() -> None:
        with pytest.raises(TimeoutError):
            await limited()
        task = asyncio.current_task()
        assert task is not None
        assert task.cancelling() == 0

    reach_in: list[asyncio.Timeout] = []
    task = asyncio.create_task(caller())
    await place.entered.wait()
    reach_in[0].reschedule(loop.time())
    await task


@pytest.mark.parametrize("signal_first", [True, False])
@pytest.mark.parametrize("name", INTERRUPTIBLE)
async def test_a_cancellation_from_outside_is_not_swallowed_by_an_interruption(
    name: str, *, signal_first: bool
) -> None:
    """Both arrive before the task that drives runs again. Elsewhere no task of the caller's drives."""
    agent, place = hanging_in(name)
    async with agent.iter("go") as run:
        task = asyncio.create_task(run.next())
        await place.entered.wait()
        if signal_first:
            assert await run.cancel()
            task.cancel()
        else:
            task.cancel()
            assert await run.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        with pytest.raises(CancelledSignal):
            await read_into([], run)
        with pytest.raises(CancelledSignal):
            _ = run.result


async def test_a_cancellation_from_outside_that_comes_during_an_interruption_gets_through() -> None:
    """In process only: elsewhere an interruption and the caller's task have nothing to do with each other."""
    cleaning, cleaned = asyncio.Event(), asyncio.Event()

    class Tidy(Script):
        async def infer(self, request: Any) -> Any:
            try:
                entered.set()
                await asyncio.Event().wait()
            finally:
                cleaning.set()
                await cleaned.wait()

    entered = asyncio.Event()
    async with Agent(Tidy()).iter("go") as run:
        task = asyncio.create_task(run.next())
        await entered.wait()
        await run.cancel()
        await cleaning.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task


# Pause and resume


async def test_a_pause_lets_the_model_finish_and_then_nothing_runs(driven: Driven) -> None:
    place = Place()
    seen: list[list[str]] = []

    @tool
    async def work(ctx: RunContext[Any]) -> str:
        events = await driven.journal.read(ctx.run_id)
        seen.append([event.signal.type for event in events if isinstance(event, SignalReceived)])
        return "worked"

    class Slow(Script):
        async def infer(self, request: Any) -> Any:
            await place.hang()
            return await super().infer(request)

        async def stream(self, request: Request) -> AsyncIterator[StreamEvent]:
            await place.hang()
            async for event in super().stream(request):
                yield event

    await driven.start(Agent(Slow(call("work"), "done"), tools=[work]))
    await driven.reach(place)
    assert await driven.signal("pause")
    assert not await driven.signal("pause"), "it is pausing already"
    length = len(await driven.kinds())
    place.let_go.set()
    await driven.journal.wait(driven.loop_id, length)
    assert (await driven.kinds())[-1] == "ModelAnswered"
    assert await driven.signal("feedback", "still here")
    assert not driven.task.done()
    assert await driven.signal("resume")
    result = await driven.end()
    assert result.output == "done"
    assert seen[0] == ["pause", "feedback", "resume"], "the tool ran after the resume"
    assert not driven.where.calm or len(seen) == 1


@pytest.mark.parametrize(("room", "sequential"), [(1, False), (2, False), (64, False), (64, True)])
async def test_a_pause_lets_running_calls_finish_and_begins_none(
    driven: Driven, room: int, *, sequential: bool
) -> None:
    places = [Place() for _ in range(4)]
    began_paused: list[int] = []
    paused = False

    @tool(sequential=sequential)
    async def work(n: int) -> int:
        if paused:
            began_paused.append(n)
        await places[n].hang()
        return n

    agent = Agent(
        Script([call("work", {"n": n}) for n in range(4)], "done"),
        tools=[work],
        limits=Limits(max_concurrency=room),
    )
    at_once = 1 if sequential else min(room, 4)
    await driven.start(agent)
    for place in places[:at_once]:
        await place.entered.wait()
    paused = await driven.signal("pause")
    length = len(await driven.kinds())
    for place in places:
        place.let_go.set()
    for n in range(at_once):
        await driven.journal.wait(driven.loop_id, length + n)
    assert await driven.signal("feedback", "is anybody there?")
    # A call that ran, and whose worker crashed, may finish too: it begins again.
    assert set(began_paused) <= (set() if driven.where.calm else set(range(at_once)))
    began = [place.times for place in places]
    assert [min(times, 1) for times in began] == [1] * at_once + [0] * (4 - at_once)
    paused = not await driven.signal("resume")
    assert (await driven.end()).output == "done"
    times = [place.times for place in places]
    assert times == [1] * 4 if driven.where.calm else min(times) >= 1


async def test_a_pause_that_is_taken_back_in_time_changes_nothing(driven: Driven) -> None:
    agent, place = hanging_in("tools")
    await driven.start(agent)
    await driven.reach(place)
    assert await driven.signal("pause")
    assert await driven.signal("resume")
    assert not await driven.signal("resume")
    place.let_go.set()
    assert (await driven.end()).output == "done"


async def test_a_paused_run_can_be_cancelled(driven: Driven) -> None:
    agent, place = hanging_in("tool")
    await driven.start(agent)
    await driven.reach(place)
    await driven.signal("pause")
    length = len(await driven.kinds())
    place.let_go.set()
    await driven.journal.wait(driven.loop_id, length)
    assert await driven.signal("cancel")
    with pytest.raises(CancelledSignal):
        await driven.end()


async def test_a_pause_survives_the_process(where: Where) -> None:
    agent, place = hanging_in("tool")
    driven = Driven("journal", where)
    await driven.start(agent)
    await driven.reach(place)
    await driven.signal("pause")
    length = len(await driven.kinds())
    place.let_go.set()
    await where.journal.wait(driven.loop_id, length)
    driven.task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await driven.end()
    resumed = asyncio.create_task(where.resume(agent, driven.loop_id))
    if not where.split:  # where nobody owns a loop, nobody takes it over
        await where.journal.wait(driven.loop_id, length + 1)
        assert (await driven.kinds())[-1] == "Resumed"
    assert not resumed.done()
    assert await driven.signal("resume")
    assert (await resumed).output == "done"


@given(st.data(), specs)
def test_while_a_pause_lasts_nothing_becomes_owed_that_was_not(data: st.DataObject, spec: LoopSpec) -> None:
    world = World(spec)
    for _ in range(data.draw(st.integers(0, 8))):
        work = [effect for effect in owed(world.state) if is_work(effect)]
        if not work:
            break
        world.offer(data.draw(reply(world, data.draw(st.sampled_from(work)))))
    if not world.offer(SignalReceived(world.now, Signal(SignalType.PAUSE))):
        return
    allowed = {effect.id for effect in owed(world.state) if is_work(effect)}
    for _ in range(10):
        work = [effect for effect in owed(world.state) if is_work(effect)]
        if world.state.outcome is not None:
            return
        assert {effect.id for effect in work} <= allowed
        if not work:
            break
        world.offer(data.draw(reply(world, data.draw(st.sampled_from(work)))))
        if data.draw(st.booleans()):
            world.offer(SignalReceived(world.now, Signal(SignalType.APPROVE)))
    assert world.state.paused
    assert [
        effect.signals for effect in owed(world.state) if isinstance(effect, Wait) and effect.signals
    ] == [(SignalType.RESUME,)]


# Feedback


async def test_feedback_reaches_the_next_request(driven: Driven) -> None:
    place = Place()
    script = Script(call("work"), "done")

    @tool
    async def work() -> str:
        await place.hang()
        return "worked"

    await driven.start(Agent(script, tools=[work]))
    await driven.reach(place)
    assert await driven.signal("feedback", "and be quick")
    assert await driven.signal("feedback", "please")
    place.let_go.set()
    result = await driven.end()
    assert script.last.messages[-1] == user(["and be quick", "please"])
    assert result.messages[3].parts == (Text("and be quick"), Text("please"))
    check_history(result.messages)


async def test_feedback_joins_what_the_model_is_asked_again(where: Where) -> None:
    place = Place()

    script = Script("", "done")
    driven = Driven("journal", where)

    class Slow(Script):
        async def infer(self, request: Any) -> Any:
            await place.hang()
            return await script.infer(request)

    await driven.start(Agent(Slow(), retries=2))
    await driven.reach(place)
    await driven.signal("feedback", "be quick")
    place.let_go.set()
    await driven.end()
    assert [type(part).__name__ for part in script.last.messages[-1].parts] == ["Text", "Retry", "Text"]


async def test_feedback_that_is_no_whole_text_is_made_one_and_without_text_there_is_none(
    driven: Driven,
) -> None:
    agent, place = hanging_in("tool")
    await driven.start(agent)
    await driven.reach(place)
    assert not await driven.signal("feedback", "")
    assert await driven.signal("feedback", "half \ud800")
    place.let_go.set()
    assert (await driven.end()).messages[3] == user("half �")


async def test_feedback_to_an_answer_is_read_before_the_run_ends(driven: Driven) -> None:
    agent, place = hanging_in("model")
    await driven.start(agent)
    await driven.reach(place)
    assert await driven.signal("feedback", "are you sure?")
    place.let_go.set()
    result = await driven.end()
    assert [message.text for message in result.messages] == ["go", "done", "are you sure?", "done"]


# What does not fit


async def test_a_signal_with_the_same_id_is_taken_once(driven: Driven) -> None:
    place = Place()
    script = Script(call("work"), "done")

    @tool
    async def work() -> str:
        await place.hang()
        return "worked"

    await driven.start(Agent(script, tools=[work]))
    await driven.reach(place)
    assert await driven.signal("feedback", "once", name="s1")
    assert await driven.signal("feedback", "once", name="s1"), "that it comes twice is no error"
    assert await driven.signal("feedback", "twice", name="s2")
    assert not await driven.signal("pause", name="s1"), "the id is another signal's"
    place.let_go.set()
    await driven.end()
    assert script.last.messages[-1] == user(["once", "twice"])


async def test_what_nobody_waits_for_is_refused(driven: Driven) -> None:
    agent, place = hanging_in("model")
    await driven.start(agent)
    await driven.reach(place)
    length = len(await driven.kinds())
    for kind in ("resume", "approve", "reject", "retry"):
        assert not await driven.signal(kind)
    assert len(await driven.kinds()) == length
    place.let_go.set()
    await driven.end()
    for kind in SignalType:
        assert not await driven.signal(kind), "it is over"


async def test_a_signal_that_does_not_exist_is_refused(where: Where) -> None:
    async with where.iter(Agent(Script("hi"))) as run:
        with pytest.raises(UserError, match="cancel, pause, resume"):
            await run.signal("explode")


async def test_signals_that_are_sent_at_once_are_all_taken(where: Where) -> None:
    agent, place = hanging_in("tool")
    driven = Driven("journal", where)
    await driven.start(agent)
    await driven.reach(place)
    sent = await asyncio.gather(*[driven.signal("feedback", f"{n}") for n in range(10)])
    assert all(sent)
    place.let_go.set()
    result = await driven.end()
    said = [part.text for part in result.messages[3].parts if isinstance(part, Text)]
    assert sorted(said) == sorted(str(n) for n in range(10))


async def test_a_signal_to_no_loop_is_refused(where: Where) -> None:
    with pytest.raises(LoopNotFound):
        await send_signal(where.journal, "no such loop", Signal(SignalType.CANCEL))


@pytest.mark.parametrize("seed", range(10))
async def test_signals_reach_a_split_loop_through_its_journal(seed: int) -> None:
    driver = SplitDriver(seed, ROUGH)

    @tool
    async def ask(ctx: RunContext[Any], n: int) -> str:
        signal = Signal(SignalType.FEEDBACK, id=f"f{n}", text=f"{n}")
        await send_signal(driver.journal, ctx.run_id, signal)
        return "asked"

    script = Script(call("ask", {"n": 1}), call("ask", {"n": 2}), "done")
    result = await Agent(script, tools=[ask]).run("go", runtime=driver)
    assert result.output == "done"
    assert [message.text for message in result.messages if message.role == "user"] == ["go", "1", "2"]


# Deadlines and cancels while a reader holds a piece


@pytest.mark.parametrize("how", ["time", "cancel"])
async def test_a_stream_that_is_held_ends_at_the_next_piece(journal: Journal, how: str) -> None:
    """In process only: a loop that is driven elsewhere is not held by its reader."""
    clock, model = FakeClock(), Hanging("one ", "two ", "three ")
    model.place.let_go.set()
    async with Agent(model).run_stream("go", timeout=60, clock=clock, journal=journal) as stream:
        pieces = stream.text()
        assert await anext(pieces) == "one "
        if how == "time":
            await clock.advance(60)
        else:
            assert await stream.cancel()
        task = asyncio.current_task()
        assert task is not None
        assert task.cancelling() == 0, "the reader's task is its own"
        with pytest.raises(Cancellation, match=r"60 s|cancelled") as caught:
            await anext(pieces)
    assert caught.value.partial.messages == (user("go"),)
    assert model.closed == 1
    assert kinds_of(await journal.read(stream.loop_id))[1:] == [
        "TimePassed" if how == "time" else "SignalReceived",
        "Ended",
    ]


async def test_a_stream_that_waits_for_the_model_is_interrupted_also_after_its_reader_changed_tasks(
    where: Where,
) -> None:
    model = Hanging("one ")
    async with where.stream(Agent(model)) as stream:
        pieces = stream.text()
        assert await asyncio.create_task(anext(pieces)) == "one "  # pyright: ignore[reportArgumentType]
        second = asyncio.create_task(anext(pieces, ""))  # pyright: ignore[reportArgumentType]
        await model.place.entered.wait()
        assert await stream.cancel()
        with pytest.raises(CancelledSignal):
            await second
