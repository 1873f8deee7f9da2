"""A person talks to the run that he began: what is for a loop under it reaches that one, at any depth."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from msgspec.structs import replace

from flyball import (
    Agent,
    CallDeferred,
    DeferredToolResult,
    LocalRuntime,
    MemoryJournal,
    RunContext,
    WaitingCall,
    calls_waiting,
    pending_approvals,
    tool,
)
from flyball.core.errors import (
    AnswerRefused,
    CancelledSignal,
    Deferred,
    SignalRefused,
)
from flyball.core.events import Outcome, SignalReceived, Stage
from flyball.core.ids import new_id
from flyball.core.signals import Signal, SignalType
from flyball.inference.answers import tool_call as call
from flyball.orchestrate.answering import send_results
from flyball.orchestrate.children import RecordedParent, begin
from flyball.orchestrate.clock import SYSTEM_CLOCK
from flyball.orchestrate.family import family_stage
from flyball.orchestrate.journal import Journal
from flyball.orchestrate.machine import fold
from flyball.orchestrate.recorded import send_signal
from flyball.orchestrate.state import State
from flyball.testing.split import ROUGH, SplitDriver
from tests.orchestrate.driven import WAYS, Driven, Way
from tests.orchestrate.models import Hanging, Script
from tests.orchestrate.where import Where
from tests.patience import PATIENCE


@tool(approval=True)
async def pay(amount: int) -> str:
    """Pay."""
    return f"paid {amount}"


@tool
async def build() -> str:
    """Build, elsewhere."""
    raise CallDeferred("a server builds it")


def above(low: Agent[Any, Any], *, at_once: int = 1) -> Agent[Any, str]:
    """Two more on top of one."""
    middle = Agent(
        Script(call("low", {"prompt": "?"}), "middle done"), tools=[low.as_tool("low")], name="middle"
    )
    calls = [call("middle", {"prompt": str(n)}, id=f"top_{n}") for n in range(at_once)]
    return Agent(Script(calls, "all done"), tools=[middle.as_tool()], name="top")


def paying(name: str = "low") -> Agent[Any, str]:
    return Agent(Script(call("pay", {"amount": 3}, id="pay_3"), "low done"), tools=[pay], name=name)


def building() -> Agent[Any, str]:
    return Agent(Script(call("build", {}, id="build_1"), "low done"), tools=[build], name="low")


@pytest.fixture
def top() -> str:
    return new_id()


async def loop(journal: Journal, loop_id: str) -> State:
    return fold(await journal.read(loop_id))


async def until(ask: Callable[[], Awaitable[Any]]) -> Any:
    """Wait until something is so."""
    async with asyncio.timeout(PATIENCE):
        while not (found := await ask()):  # noqa: ASYNC110 - any of several loops may move
            await asyncio.sleep(0)
        return found


async def waiting(journal: Journal, loop_id: str, count: int = 1) -> tuple[WaitingCall, ...]:
    """Wait until so many calls wait."""
    await journal.wait(loop_id, 0)

    async def enough() -> tuple[WaitingCall, ...] | None:
        found = await calls_waiting(journal, loop_id)
        return found if len(found) >= count else None

    return await until(enough)


async def lowest(journal: Journal, loop_id: str) -> State:
    state = await loop(journal, loop_id)
    while state.children:
        (child,) = state.children
        state = await loop(journal, child)
    return state


# Approvals


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("call_id", [None, "pay_3"])
async def test_an_approval_reaches_the_loop_that_waits_for_it(
    where: Where, way: Way, call_id: str | None
) -> None:
    driven = Driven(way, where)
    await driven.start(above(paying()))
    (waits,) = await waiting(where.journal, driven.loop_id)
    assert (waits.agent, waits.call.id, waits.wants) == ("low", "pay_3", "approval")
    assert str(waits) == f"pay (pay_3) of low, loop {waits.loop_id}, waits to be approved"
    assert [one.id for one in await pending_approvals(where.journal, driven.loop_id)] == ["pay_3"]
    top = await loop(where.journal, driven.loop_id)
    assert await family_stage(where.journal, top) is Stage.AWAITING_APPROVAL
    assert await driven.signal("approve", call_id=call_id)
    assert (await driven.end()).output == "all done"
    low = await lowest(where.journal, driven.loop_id)
    assert low.loop_id == waits.loop_id
    assert low.history[2].tool_results[0].content == "paid 3"
    assert await family_stage(where.journal, await loop(where.journal, driven.loop_id)) is Stage.COMPLETE


async def test_a_refusal_reaches_it_too(where: Where) -> None:
    driven = Driven("journal", where)
    await driven.start(above(paying()))
    await waiting(where.journal, driven.loop_id)
    assert not await driven.signal("approve", call_id="another")
    assert await driven.signal("reject", text="too dear")
    assert (await driven.end()).output == "all done"
    assert "too dear" in (await lowest(where.journal, driven.loop_id)).history[2].tool_results[0].text


async def test_a_call_that_waits_in_several_loops_is_named_by_its_loop(where: Where) -> None:
    driven = Driven("journal", where)
    await driven.start(above(paying(), at_once=2))
    one, other = await waiting(where.journal, driven.loop_id, 2)
    with pytest.raises(SignalRefused, match="in more than one loop") as raised:
        await driven.send("approve", call_id="pay_3")
    assert sorted(raised.value.details["waiting"]) == sorted([one.loop_id, other.loop_id])
    await send_signal(where.journal, one.loop_id, Signal(SignalType.REJECT, call_id="pay_3"))
    assert await driven.signal("approve")
    assert (await driven.end()).output == "all done"
    results = [(await loop(where.journal, each.loop_id)).history[2].tool_results[0] for each in (one, other)]
    assert [result.is_error for result in results] == [True, False]


async def test_an_approval_that_is_said_twice_is_taken_once(where: Where) -> None:
    driven = Driven("journal", where)
    await driven.start(above(paying()))
    (waits,) = await waiting(where.journal, driven.loop_id)
    for _ in range(2):
        await send_signal(where.journal, driven.loop_id, Signal(SignalType.APPROVE, id="yes"))
        if (await loop(where.journal, driven.loop_id)).at == "done":
            break
    await driven.end()
    taken = [one for one in await where.journal.read(waits.loop_id) if isinstance(one, SignalReceived)]
    assert len(taken) == 1


async def test_where_nobody_could_approve_the_model_is_told_instead_of_waiting_for_ever() -> None:
    result = await above(paying()).run("go")
    (middle,) = result.state.children
    text = (await loop(result.journal, middle)).history[2].tool_results[0].text
    assert "approval" in text


async def test_a_callback_is_its_own_agents() -> None:
    asked: list[str] = []

    def allow(ctx: RunContext[Any], wanted: Any) -> bool:
        asked.append(f"{wanted.name} at depth {ctx.depth}")
        return True

    result = await above(paying().clone(approval=allow)).run("go")
    assert (result.output, asked) == ("all done", ["pay at depth 2"])


# Pausing


@pytest.mark.parametrize("way", WAYS)
async def test_a_pause_reaches_all_and_so_does_what_ends_it(where: Where, way: Way) -> None:
    model = Hanging()

    class Then(Script):
        async def infer(self, request: Any) -> Any:
            return await (model.infer(request) if len(request.messages) == 1 else super().infer(request))

    @tool
    async def step() -> str:
        return "a step"

    low = Agent(Then("never", "low done"), tools=[step], name="low")
    driven = Driven(way, where)
    await driven.start(above(low))
    await model.place.entered.wait()
    await driven.signal("pause")
    state = await lowest(where.journal, driven.loop_id)
    assert (state.depth, state.pausing) == (2, True)
    middle = await loop(where.journal, state.parent_loop_id)
    assert middle.pausing
    await driven.signal("resume")
    assert not (await lowest(where.journal, driven.loop_id)).pausing
    model.place.let_go.set()
    assert (await driven.end()).output == "all done"


async def test_a_child_that_is_begun_under_a_pause_is_paused(where: Where) -> None:
    begin_it, entered = asyncio.Event(), asyncio.Event()
    low = Agent(Script("low done"), name="low")

    @tool
    async def ask(ctx: RunContext[Any]) -> str:
        entered.set()
        await begin_it.wait()
        return (await low.run("?", parent=ctx)).output

    driven = Driven("journal", where)
    await driven.start(Agent(Script(call("ask"), "done"), tools=[ask], name="top"))
    await entered.wait()
    await driven.signal("pause")
    begin_it.set()

    async def paused() -> bool:
        state = await loop(where.journal, driven.loop_id)
        return bool(state.children) and bool(await where.journal.read(state.children[0]))

    await until(paused)
    assert (await lowest(where.journal, driven.loop_id)).paused
    await driven.signal("resume")
    assert (await driven.end()).output == "done"


async def test_a_pause_that_is_over_before_the_child_is_there_does_not_hold_it(
    journal: Journal, top: str
) -> None:
    low = Agent(Script("low done"), name="low")
    upper, below = Agent(Script("done"), name="top"), new_id()
    for name, agent in ((top, upper), (below, low)):
        _, started, _ = agent.begun("go", {"loop_id": name})
        if name == top:
            await journal.append(name, [started], 0)

    class Late(RecordedParent):
        looks = 0

        async def passes_on(self) -> Signal | None:
            self.looks += 1
            if self.looks == 1:
                await send_signal(journal, top, Signal(SignalType.PAUSE))
                said = await super().passes_on()
                await send_signal(journal, top, Signal(SignalType.RESUME))
                return said
            return await super().passes_on()

    _, started, _ = low.begun("go", {"loop_id": below})
    state, length = await begin(
        journal, replace(started, parent_loop_id=top, depth=1), SYSTEM_CLOCK, Late(journal, top)
    )
    assert (state.paused, length) == (False, 2)


# Cancelling


@pytest.mark.parametrize("way", WAYS)
async def test_a_cancel_reaches_one_that_waits_for_an_approval(where: Where, way: Way) -> None:
    driven = Driven(way, where)
    await driven.start(above(paying()))
    (waits,) = await waiting(where.journal, driven.loop_id)
    await driven.signal("cancel")
    with pytest.raises(CancelledSignal):
        await driven.end()
    assert (await loop(where.journal, waits.loop_id)).outcome is Outcome.CANCELLED
    assert await calls_waiting(where.journal, driven.loop_id) == ()


# Results from outside

GREEN = DeferredToolResult("build", "build_1", "green")


async def test_a_run_breaks_off_where_one_below_waits_for_a_result(journal: Journal, top: str) -> None:
    agent = above(building())
    with pytest.raises(Deferred) as raised:
        await agent.run("go", journal=journal, loop_id=top)
    (request,) = raised.value.requests
    low = await lowest(journal, top)
    assert (raised.value.loop_id, request.tool_call_id, request.loop_id) == (top, "build_1", low.loop_id)
    assert f"build (build_1 of loop {low.loop_id})" in raised.value.message
    (waits,) = await calls_waiting(journal, top)
    assert (waits.loop_id, waits.wants) == (low.loop_id, "result")
    result = await agent.run("go", journal=journal, loop_id=top, deferred_results=[GREEN])
    assert (result.output, result.usage.requests) == ("all done", 6)
    assert len([one for one in await journal.loops() if one.startswith(top)]) == 3
    # What was given before may be given again.
    again = await agent.resume(top, journal, deferred_results=[GREEN])
    assert again.output == "all done"
    with pytest.raises(AnswerRefused, match="another result"):
        await agent.resume(top, journal, deferred_results=[DeferredToolResult("build", "build_1", "red")])
    with pytest.raises(AnswerRefused, match="takes no result"):
        await agent.resume(top, journal, deferred_results=[DeferredToolResult("build", "other", "red")])


@pytest.mark.parametrize("way", ["iter", "stream"])
async def test_also_where_somebody_reads_it(journal: Journal, top: str, way: str) -> None:
    agent = above(building())
    for results in ([], [GREEN]):
        options: Any = {"journal": journal, "loop_id": top, "deferred_results": results}
        run: Any = agent.iter("go", **options) if way == "iter" else agent.run_stream("go", **options)
        async with run as handle:
            steps = handle if way == "iter" else handle.events()
            if results:
                assert [step async for step in steps]
                assert handle.result.output == "all done"
                continue
            with pytest.raises(Deferred, match="build_1 of loop"):
                assert [step async for step in steps]


async def test_what_else_can_go_on_does_before_it_breaks_off(journal: Journal, top: str) -> None:
    """Two that wait for results, a plain tool, and one that waits for an approval."""
    done: Counter[str] = Counter()

    @tool
    async def plain() -> str:
        done["plain"] += 1
        return "plain"

    other = Agent(Script(call("build", {}, id="build_2"), "other done"), tools=[build], name="other")
    calls = [
        call("low", {"prompt": "?"}),
        call("other", {"prompt": "?"}),
        call("plain"),
        call("pay", {"amount": 1}, id="pay_1"),
        call("build", {}, id="build_0"),
    ]
    tools = [building().as_tool("low"), other.as_tool("other"), plain, pay, build]
    agent = Agent(Script(calls, "all done"), tools=tools, name="top")
    running = asyncio.create_task(agent.run("go", journal=journal, loop_id=top))
    found = await waiting(journal, top, 4)
    assert {one.call.id for one in found} == {"pay_1", "build_0", "build_1", "build_2"}
    assert not running.done()
    await send_signal(journal, top, Signal(SignalType.APPROVE))
    with pytest.raises(Deferred) as raised:
        await running
    asked = {one.tool_call_id: bool(one.loop_id) for one in raised.value.requests}
    assert asked == {"build_0": False, "build_1": True, "build_2": True}
    await send_results(journal, top, [GREEN, DeferredToolResult("build", "build_0", "here")])
    with pytest.raises(Deferred) as raised:
        await agent.resume(top, journal)
    assert [one.tool_call_id for one in raised.value.requests] == ["build_2"]
    last = DeferredToolResult("build", "build_2", "there")
    assert (await agent.resume(top, journal, deferred_results=[last])).output == "all done"
    assert done == {"plain": 1}


async def test_results_of_calls_of_one_id_are_for_their_own_loops(journal: Journal, top: str) -> None:
    agent = above(building(), at_once=2)
    with pytest.raises(Deferred) as raised:
        await agent.run("go", journal=journal, loop_id=top)
    one, other = raised.value.requests
    assert one.tool_call_id == other.tool_call_id
    with pytest.raises(AnswerRefused, match="more than one loop"):
        await agent.resume(top, journal, deferred_results=[GREEN])
    for each in (one, other):
        await send_results(journal, each.loop_id, [GREEN])
    assert (await agent.resume(top, journal)).output == "all done"


async def test_a_runtime_stays_until_there_are_results(top: str) -> None:
    async with LocalRuntime(MemoryJournal()) as runtime:
        agent = above(building())
        running = asyncio.create_task(agent.run("go", runtime=runtime, loop_id=top))
        await waiting(runtime.journal, top)
        assert not running.done()
        await runtime.answer(top, [GREEN])
        assert (await running).output == "all done"


@pytest.mark.parametrize("kind", ["calm", "rough"])
async def test_a_split_world_stays_too(kind: str) -> None:
    driver = SplitDriver(3, ROUGH) if kind == "rough" else SplitDriver(3)
    where = Where(kind, driver.journal, driver)
    driven = Driven("journal", where)
    await driven.start(above(building()))
    await waiting(where.journal, driven.loop_id)
    await driver.answer(driven.loop_id, [GREEN])
    assert (await driven.end()).output == "all done"


async def test_a_tool_of_ones_own_may_wait_for_such_a_child(journal: Journal, top: str) -> None:
    low = building()

    @tool
    async def ask(ctx: RunContext[Any]) -> str:
        return (await low.run("?", parent=ctx)).output

    agent = Agent(Script(call("ask"), "done"), tools=[ask], name="top")
    with pytest.raises(Deferred, match="build_1 of loop"):
        await agent.run("go", journal=journal, loop_id=top)
    result = await agent.resume(top, journal, deferred_results=[GREEN])
    assert result.messages[2].tool_results[0].content == "low done"


async def test_one_that_is_nobodys_child_is_an_error_of_the_tool() -> None:
    low = building()

    @tool
    async def ask() -> str:
        return (await low.run("?")).output

    result = await Agent(Script(call("ask"), "done"), tools=[ask]).run("go")
    assert "waits for results" in result.messages[2].tool_results[0].text


@pytest.mark.seeded
@pytest.mark.parametrize("seed", range(10))
async def test_in_a_rough_world_an_approval_gets_there_and_all_is_counted(seed: int) -> None:
    driver = SplitDriver(seed, ROUGH)
    where = Where("rough", driver.journal, driver)
    driven = Driven("journal", where)
    driven.loop_id = new_id()
    await driven.start(above(paying(), at_once=2))
    await waiting(where.journal, driven.loop_id, 2)
    await driven.signal("approve")
    result = await driven.end()
    assert (result.output, result.usage.requests) == ("all done", 10)
