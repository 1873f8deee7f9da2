"""Signals that do not fit are refused by a clear error, wherever they come from; doubled ones are not."""

from __future__ import annotations

import pytest
from hypothesis import given

from flyball import Agent, Limits
from flyball.core.errors import EngineError, IterationLimit, SignalRefused, UserError
from flyball.core.events import Reopened, SignalReceived, Stage
from flyball.core.messages import Text
from flyball.core.signals import Signal, SignalType
from flyball.inference.answers import tool_call as call
from flyball.orchestrate.journal import Journal
from flyball.orchestrate.machine import accepts
from flyball.orchestrate.recorded import load, send_signal
from flyball.orchestrate.runs import Step
from flyball.orchestrate.signalling import as_signal, fitting, signal_event, stage_if_taken
from tests.orchestrate.driven import WAYS, Driven, hanging_in
from tests.orchestrate.models import Script
from tests.orchestrate.scenarios import TEN, add, pay
from tests.orchestrate.simulation import World, signals
from tests.orchestrate.test_machine_properties import worlds
from tests.orchestrate.where import Where, read_into


@pytest.fixture(params=WAYS)
def driven(request: pytest.FixtureRequest, where: Where) -> Driven:
    return Driven(request.param, where)


@given(worlds(12), signals)
def test_a_signal_fits_exactly_if_the_machine_accepts_it(world: World, signal: Signal) -> None:
    state = world.state
    waiting = [state.calls[index].id for index in state.awaiting]
    says_something = signal.type is not SignalType.FEEDBACK or signal.text
    somebody_waits = (
        signal.type not in (SignalType.APPROVE, SignalType.REJECT)
        or signal.call_id is None
        or signal.call_id in waiting
    )
    new = not (signal.id and signal.id in state.signals)
    fits = signal.type in fitting(state) and bool(says_something) and somebody_waits and new
    assert accepts(state, signal_event(signal, world.now)) == fits
    if fits:
        assert world.offer(signal_event(signal, world.now))
        assert not signal.id or signal.id in world.state.signals
    elif new:
        with pytest.raises(SignalRefused) as caught:
            stage_if_taken(state, signal)
        told = caught.value.details
        assert told["fits"] == [str(kind) for kind in fitting(state)]
        assert (told["loop_id"], told["signal"]) == ("loop", str(signal.type))
    else:
        assert stage_if_taken(state, signal) == stage_if_taken(state)


def test_a_word_is_a_signal_and_others_are_refused() -> None:
    assert as_signal("reject", "no", "a", "ann") == Signal(
        SignalType.REJECT, by="ann", text="no", call_id="a"
    )
    assert as_signal(given := Signal(SignalType.PAUSE)) is given
    with pytest.raises(UserError, match="there is no signal 'explode'; there are: cancel"):
        as_signal("explode")


async def test_a_refusal_says_what_fits(where: Where) -> None:
    agent, place = hanging_in("model")
    driven = Driven("journal", where)
    await driven.start(agent)
    await driven.reach(place)
    with pytest.raises(SignalRefused) as caught:
        await send_signal(where.journal, driven.loop_id, "resume")
    assert str(caught.value) == (
        f"loop {driven.loop_id!r} is executing and takes no resume: what fits now is cancel, pause, feedback"
    )
    assert caught.value.code == "ORCHESTRATION_SIGNAL_REFUSED"
    with pytest.raises(SignalRefused, match="it has no text, and says nothing"):
        await send_signal(where.journal, driven.loop_id, "feedback")
    place.let_go.set()
    await driven.end()


async def test_a_refusal_names_the_calls_that_wait(driven: Driven) -> None:
    calls = [call("pay", {"amount": 1}, id="a"), call("pay", {"amount": 2}, id="b")]
    await driven.start(Agent(Script(calls, "ok"), tools=[pay]))
    while not (loaded := await load(driven.journal, driven.loop_id))[1].awaiting:
        await driven.journal.wait(driven.loop_id, len(loaded[0]))
    with pytest.raises(SignalRefused, match=r"no call 'z' waits for that, but a, b"):
        await driven.send("approve", call_id="z")
    assert await driven.send("approve", call_id="b") is Stage.AWAITING_APPROVAL
    assert await driven.send("reject", "no") is not Stage.AWAITING_APPROVAL
    result = await driven.end()
    assert [found.status.value for found in result.messages[-2].tool_results] == ["denied", "return"]


# Through a handle, beside the journal


async def test_a_handle_knows_what_others_said_through_the_journal(journal: Journal) -> None:
    async with Agent(Script("ok")).iter("go", journal=journal) as run:
        await send_signal(journal, run.loop_id, "pause")
        assert await run.signal("resume") is Stage.EXECUTING
        assert (await run.next()) is not None
        assert run.result.output == "ok"


async def test_a_signal_that_another_overtook_is_refused(journal: Journal) -> None:
    async with Agent(Script("ok")).iter("go", journal=journal) as run:
        await send_signal(journal, run.loop_id, "pause")
        with pytest.raises(SignalRefused, match=r"takes no pause: what fits now is cancel, resume, feedback"):
            await run.signal("pause")
        kinds = [event for event in await journal.read(run.loop_id) if isinstance(event, SignalReceived)]
        assert len(kinds) == 1


# Another attempt


async def test_a_retry_is_taken_once(journal: Journal) -> None:
    agent = Agent(Script(EngineError("down"), EngineError("down"), "ok"))
    with pytest.raises(EngineError) as caught:
        await agent.run("go", journal=journal)
    loop_id = caught.value.partial.loop_id
    again = Signal(SignalType.RETRY, id="click", by="ann")
    await send_signal(journal, loop_id, again)
    await send_signal(journal, loop_id, again)
    with pytest.raises(EngineError):
        await agent.resume(loop_id, journal)
    assert await send_signal(journal, loop_id, again) is Stage.FAILED, "it was taken before, and failed"
    opened = [event for event in await journal.read(loop_id) if isinstance(event, Reopened)]
    assert [(event.by, event.id) for event in opened] == [("ann", "click")]
    await send_signal(journal, loop_id, Signal(SignalType.RETRY, id="another click"))
    assert (await agent.resume(loop_id, journal)).output == "ok"


@pytest.mark.parametrize("way", ["iter", "stream"])
async def test_a_run_that_is_held_goes_on_after_a_retry(where: Where, way: str) -> None:
    agent = Agent(Script(*TEN[:4], "done"), tools=[add], limits=Limits(max_iterations=3))
    if way == "iter":
        async with where.iter(agent) as run:
            steps: list[Step] = []
            with pytest.raises(IterationLimit):
                await read_into(steps, run)
            await run.signal("retry")
            assert not run.done
            await read_into(steps, run)
            turns = [step.turn for step in steps]
            assert (turns, run.result.output) == ([1, 2, 3, 4, 5], "done")
        return
    async with where.stream(agent) as stream:
        with pytest.raises(IterationLimit):
            await anext(stream.text())
        await stream.signal("retry")
        pieces = [piece async for piece in stream.text()]
        assert ("".join(pieces), stream.result.output) == ("done", "done")
        prompts = [part.text for part in stream.messages[0].parts if isinstance(part, Text)]
        assert prompts == ["go"]


async def test_a_retry_has_its_time_anew(journal: Journal) -> None:
    from flyball.core.errors import CancelledTimeout
    from flyball.testing import FakeClock

    clock = FakeClock()
    agent, place = hanging_in("tool")
    driven = Driven("iter", Where.here(journal))
    await driven.start(agent, timeout=30, clock=clock)
    await driven.reach(place)
    await clock.advance(30)
    with pytest.raises(CancelledTimeout):
        await driven.task
    place.let_go.set()
    assert await driven.signal("retry")
    _, state = await load(journal, driven.loop_id)
    assert state.deadline == clock.now() + 30
    assert (await driven.go_on()).output == "done"
