"""Agents whose loops are carried on by workers on a real NATS server: as in process, and whatever happens."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from itertools import count
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from flyball import Agent, ContentFilter, Limits, MaxTurns, ModelRepair, RunContext, Safety, tool
from flyball.core.errors import (
    CancelledSignal,
    CancelledTimeout,
    DepsError,
    FlyballError,
    JournalFailure,
    JournalUnreachable,
    LoopMismatch,
    LoopNotFound,
    SignalRefused,
    UserError,
    WorkPutAside,
)
from flyball.core.events import Ended, Event, ModelAnswered, Outcome, Stage, ToolReturned, ToolStarted
from flyball.core.forms.semstreams import TaskMessage, write_envelope
from flyball.core.history import check_history
from flyball.core.messages import ResultKind
from flyball.core.signals import Signal, SignalType
from flyball.inference.answers import tool_call as call
from flyball.orchestrate.commands import Report
from flyball.orchestrate.projections import normal_form
from flyball.orchestrate.recorded import load, until_done
from flyball.runtime.nats import NatsJournal, NatsOptions, NatsRuntime
from flyball.runtime.nats.crew import ALL, Crew, Kind
from flyball.runtime.nats.dead import Dead, dead_letters, requeue
from flyball.runtime.nats.messages.frame import own
from flyball.runtime.nats.messages.told import write_signal
from flyball.runtime.nats.subjects import DEAD
from flyball.runtime.nats.wire import AGENT, CLAIMS
from flyball.runtime.nats.workers.agents import Agents
from flyball.runtime.nats.workers.signalled import REPLY
from tests.orchestrate.models import Script
from tests.orchestrate.output_scenarios import River
from tests.orchestrate.scenarios import SCENARIOS, STOPPER, WORKER, Scenario, add, pay
from tests.orchestrate.tool_scenarios import BASKET
from tests.patience import PATIENCE
from tests.runtime.nats.conftest import clear


@pytest.fixture
async def runtime(nats: NatsOptions) -> AsyncGenerator[NatsRuntime]:
    options = msgspec.structs.replace(nats, patience=PATIENCE)
    async with await NatsJournal.open(options) as before:
        await clear(before)
    async with await NatsRuntime.open(options) as runtime:
        yield runtime
        for stream in (AGENT, DEAD, f"KV_{CLAIMS}"):
            await runtime.connection.js.delete_stream(stream)
        await clear(runtime.journal)


@asynccontextmanager
async def working(
    runtime: NatsRuntime, *agents: Agent[Any, Any], serve: tuple[Kind, ...] = ALL, **more: Any
) -> AsyncGenerator[Crew]:
    """Workers with a connection of their own."""
    opened = await NatsJournal.open(runtime.connection.options)
    async with opened as journal, Crew(journal, agents, serve, **more) as crew:
        yield crew


async def ended(agent: Agent[Any, Any], scenario: Scenario, **more: Any) -> tuple[Any, ...]:
    """How a scenario ends: the code, the output, the messages, the usage, and the journal in normal form."""
    try:
        result = await agent.run(scenario.prompt, **scenario.options, **more)
    except FlyballError as error:
        result, code = error.partial, error.code
    else:
        code = ""
    check_history(result.messages)
    return code, result.output, result.messages, result.usage, normal_form(await result.events())


@pytest.mark.parametrize("scenario", SCENARIOS, ids=repr)
async def test_a_run_comes_to_the_same_end_as_in_process(runtime: NatsRuntime, scenario: Scenario) -> None:
    here = await ended(scenario.make(), scenario)
    agent = scenario.make()
    async with working(runtime, agent, WORKER, STOPPER):
        assert await ended(agent, scenario, runtime=runtime) == here


async def test_workers_may_be_apart_and_more_than_one_of_each(runtime: NatsRuntime) -> None:
    agent = Agent(Script(call("add", '{"x":1,"y":2}'), "3"), tools=[add], name="adder")
    async with AsyncExitStack() as stack:
        for kind in ("loop", "model", "tools", "loop", "model", "tools"):
            await stack.enter_async_context(working(runtime, agent, serve=(kind,)))
        runs = [agent.run("1 + 2?", runtime=runtime) for _ in range(20)]
        results = await asyncio.wait_for(asyncio.gather(*runs), PATIENCE)
    assert {result.output for result in results} == {"3"}


async def test_a_repair_is_made_by_a_model_worker_with_the_model_for_it(runtime: NatsRuntime) -> None:
    """Its pieces do not pass by: nobody follows the model that puts an answer right."""
    mender = Script('{"km": 3}', name="mender")
    agent = Agent(
        Script("three"), output=River, output_mode="native", features=[ModelRepair(mender)], name="surveyor"
    )
    async with AsyncExitStack() as stack:
        for kind in ("loop", "model", "tools"):
            await stack.enter_async_context(working(runtime, agent, serve=(kind,)))
        async with agent.run_stream("How long?", runtime=runtime) as stream:
            assert "".join([piece async for piece in stream.text()]) == "three"
        assert stream.result.output == River(km=3)
    assert mender.requests


async def test_an_output_grows_also_where_it_is_made_elsewhere(runtime: NatsRuntime) -> None:
    script = Script(call("final_result", {"result": [{"km": 1.5}, {"km": 2.5}]}), chunk=4)
    agent = Agent(script, output=list[River], output_mode="tool", name="surveyor")
    async with (
        working(runtime, agent),
        agent.run_stream("Which?", runtime=runtime) as stream,
    ):
        seen = [rivers async for rivers in stream.stream_output(debounce_by=None)]
    assert seen[-1] == stream.result.output == [River(km=1.5), River(km=2.5)]
    assert all(seen[-1][: len(rivers)] == rivers for rivers in seen)


def test_models_for_a_purpose_are_found_by_their_names() -> None:
    own, mender = Script(name="own"), Script(name="mender")
    agent = Agent(own, output=River, name="surveyor", features=[ModelRepair(mender)])
    agents = Agents([agent])
    assert agents.engine("surveyor", "", "own") is own
    assert agents.engine("surveyor", "", "mender", "repair") is mender
    assert agents.engine("surveyor", "", "", "repair") is mender
    assert agents.engine("surveyor", "", "test", "repair").model_info().provider == "test"
    plain = Agents([Agent(own, output=River, name="surveyor")])
    assert plain.engine("surveyor", "", "own", "repair") is own


async def test_a_tool_remembers_whichever_worker_runs_its_calls(runtime: NatsRuntime) -> None:
    items = [call("put", {"item": name}) for name in "abcd"]
    agent = Agent(Script(items, [call("empty"), *items[:1]], "done"), tools=[BASKET], name="shopper")
    async with AsyncExitStack() as stack:
        for kind in ("loop", "model", "tools", "loop", "tools", "tools"):
            await stack.enter_async_context(working(runtime, agent, serve=(kind,)))
        runs = [agent.run("go", runtime=runtime, tool_state={"basket": [str(n)]}) for n in range(10)]
        results = await asyncio.wait_for(asyncio.gather(*runs), PATIENCE)
    for n, result in enumerate(results):
        taken = [str(n), *"abcd"]
        assert result.messages[-2].tool_results[0].content == f"{taken} {taken}"
        assert result.tool_state == {"basket": ["a"]}


async def test_pieces_pass_by_and_steps_are_given_out(runtime: NatsRuntime) -> None:
    agent = Agent(Script(call("add", '{"x":1,"y":2}'), "It is three."), tools=[add], name="adder")
    async with working(runtime, agent):
        async with agent.run_stream("1 + 2?", runtime=runtime) as stream:
            assert "".join([piece async for piece in stream.text()]) == "It is three."
        assert stream.result.output == "It is three."
        async with agent.iter("1 + 2?", runtime=runtime) as run:
            steps = [step async for step in run]
        assert [step.turn for step in steps] == [1, 2]
        assert run.result.output == "It is three."


async def test_a_loop_that_is_over_before_its_caller_looks_is_shown_from_its_beginning(
    runtime: NatsRuntime, monkeypatch: pytest.MonkeyPatch
) -> None:
    waited = runtime.journal.wait

    async def late(loop_id: str, length: int, seconds: float | None = None) -> bool:
        grown = await waited(loop_id, length, seconds)
        await until_done(runtime.journal, loop_id)
        return grown

    monkeypatch.setattr(runtime.journal, "wait", late)
    async with working(runtime, WORKER):
        async with WORKER.iter("1 + 2?", runtime=runtime) as run:
            assert [step.turn async for step in run] == [1, 2]
        async with WORKER.run_stream("1 + 2?", runtime=runtime) as stream:
            assert "".join([piece async for piece in stream.text()]) == run.result.output


async def test_the_same_id_is_the_same_loop(runtime: NatsRuntime) -> None:
    agent = Agent(Script("hello"), name="greeter")
    async with working(runtime, agent):
        first = await agent.run("hi", runtime=runtime, loop_id="order 17.*")
        again = await agent.run("hi", runtime=runtime, loop_id="order 17.*")
        assert await first.events() == await again.events()
        with pytest.raises(LoopMismatch, match="another prompt"):
            await agent.run("ho", runtime=runtime, loop_id="order 17.*")


async def test_a_loop_waits_for_approval_and_hears_of_it(runtime: NatsRuntime) -> None:
    agent = Agent(Script(call("pay", '{"amount":5}'), "paid"), tools=[pay], name="payer")
    async with working(runtime, agent):
        running = asyncio.create_task(agent.run("pay 5", runtime=runtime, loop_id="bill"))
        await runtime.journal.wait("bill", 1)
        with pytest.raises(SignalRefused, match="is awaiting_approval and takes no resume: what fits now is"):
            await runtime.signal("bill", Signal(SignalType.RESUME))
        approve = Signal(SignalType.APPROVE, id="once", by="eve")
        assert await runtime.signal("bill", approve) is not Stage.AWAITING_APPROVAL
        await runtime.signal("bill", approve)  # it was heard already, and that is no error
        assert (await asyncio.wait_for(running, PATIENCE)).output == "paid"
        with pytest.raises(LoopNotFound):
            await runtime.signal("nobody", approve)


async def test_who_signals_is_told_the_stage_it_was_taken_in_however_far_the_loop_has_come(
    runtime: NatsRuntime, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent = Agent(Script(call("pay", '{"amount":5}'), "paid"), tools=[pay], name="payer")
    async with working(runtime, agent), await NatsJournal.open(runtime.connection.options) as other:
        await runtime.submit(agent, "pay 5", loop_id="bill")
        await runtime.journal.wait("bill", 1)
        read = runtime.journal.read

        async def late(loop_id: str, start: int = 0) -> list[Event]:
            if start:
                await until_done(other, loop_id)
            return await read(loop_id, start)

        monkeypatch.setattr(runtime.journal, "read", late)
        approve = Signal(SignalType.APPROVE, id="once")
        assert await asyncio.wait_for(runtime.signal("bill", approve), PATIENCE) is Stage.EXECUTING
        assert await asyncio.wait_for(runtime.signal("bill", approve), PATIENCE) is Stage.COMPLETE


async def test_cancelling_stops_what_runs_elsewhere(runtime: NatsRuntime) -> None:
    begun, stopped = asyncio.Event(), asyncio.Event()

    @tool
    async def dig() -> str:
        begun.set()
        try:
            await asyncio.sleep(600)
        finally:
            stopped.set()
        return "gold"

    agent = Agent(Script(call("dig")), tools=[dig], name="digger")
    async with working(runtime, agent):
        running = asyncio.create_task(agent.run("dig", runtime=runtime, loop_id="mine"))
        await asyncio.wait_for(begun.wait(), PATIENCE)
        assert await runtime.signal("mine", Signal(SignalType.CANCEL, text="enough"))
        with pytest.raises(FlyballError, match="enough"):
            await asyncio.wait_for(running, PATIENCE)
        await asyncio.wait_for(stopped.wait(), PATIENCE)


async def test_the_time_of_a_loop_that_only_waits_runs_out(runtime: NatsRuntime) -> None:
    agent = Agent(Script(call("pay", '{"amount":5}')), tools=[pay], name="payer", limits=Limits(timeout=0.5))
    async with working(runtime, agent):
        with pytest.raises(CancelledTimeout):
            await asyncio.wait_for(agent.run("pay 5", runtime=runtime), PATIENCE)


async def test_work_goes_to_another_when_a_worker_goes(runtime: NatsRuntime) -> None:
    begun, runs = asyncio.Event(), list[str]()

    @tool
    async def look() -> str:
        runs.append("look")
        begun.set()
        if len(runs) == 1:
            await asyncio.sleep(600)
        return "seen"

    agent = Agent(Script(call("look"), "done"), tools=[look], name="looker")
    async with working(runtime, agent, serve=("loop", "model")):
        running = asyncio.create_task(agent.run("look", runtime=runtime))
        async with working(runtime, agent, serve=("tools",)):
            await asyncio.wait_for(begun.wait(), PATIENCE)
        async with working(runtime, agent, serve=("tools",)):
            result = await asyncio.wait_for(running, PATIENCE)
    assert (result.output, runs) == ("done", ["look", "look"])
    assert len([event for event in await result.events() if isinstance(event, ToolReturned)]) == 1


async def test_what_may_start_once_is_not_started_again(runtime: NatsRuntime) -> None:
    begun, runs = asyncio.Event(), list[str]()

    @tool(safety=Safety.AT_MOST_ONCE)
    async def launch() -> str:
        runs.append("launch")
        begun.set()
        await asyncio.sleep(600)
        return "launched"

    agent = Agent(Script(call("launch"), "I do not know"), tools=[launch], name="launcher")
    async with working(runtime, agent, serve=("loop", "model")):
        running = asyncio.create_task(agent.run("launch", runtime=runtime))
        async with working(runtime, agent, serve=("tools",)):
            await asyncio.wait_for(begun.wait(), PATIENCE)
        async with working(runtime, agent, serve=("tools",)):
            result = await asyncio.wait_for(running, PATIENCE)
    events = await result.events()
    assert runs == ["launch"]
    assert any(isinstance(event, ToolStarted) for event in events)
    (returned,) = [event for event in events if isinstance(event, ToolReturned)]
    assert returned.result.status is ResultKind.INTERRUPTED


async def dead(runtime: NatsRuntime, count: int) -> list[Dead]:
    """What was put aside, once there is so much of it."""
    js = runtime.connection.js
    async with asyncio.timeout(PATIENCE):
        while (await js.stream_info(DEAD)).state.messages < count:  # noqa: ASYNC110 - nobody tells us
            await asyncio.sleep(0.02)
    return [one for _, one in await dead_letters(runtime.bus)]


async def test_what_cannot_be_worked_on_is_put_aside_and_others_go_on(runtime: NatsRuntime) -> None:
    agent = Agent(Script("hello"), name="greeter")
    stranger = Agent(Script("hello"), name="stranger")
    js = runtime.connection.js
    async with working(runtime, agent):
        await js.publish("agent.request.x", b"not json")
        await js.publish("agent.response.x", b'{"loop_id":"x","event":{"event":"no such event"}}')
        await js.publish("agent.task.x", b"x" * 2_000_000)
        nowhere = asyncio.create_task(stranger.run("hi", runtime=runtime))
        assert (await agent.run("hi", runtime=runtime)).output == "hello"
        aside = await dead(runtime, 4)
        nowhere.cancel()
        await asyncio.gather(nowhere, return_exceptions=True)
    told = {(one.subject.rpartition(".")[0], one.code) for one in aside}
    assert told == {
        ("agent.request", "CONFIG_INVALID_MESSAGE"),
        ("agent.response", "CONFIG_INVALID_MESSAGE"),
        ("agent.task", "CONFIG_INVALID_MESSAGE"),
        ("agent.task", "ORCHESTRATION_UNKNOWN_AGENT"),
    }
    assert any("'stranger' is not here; here are 'greeter'" in one.reason for one in aside)


async def test_nobody_works(runtime: NatsRuntime, monkeypatch: pytest.MonkeyPatch) -> None:
    agent, waited = Agent(Script("hello"), name="greeter"), runtime.journal.wait

    async def impatient(loop_id: str, length: int, seconds: float | None = None) -> bool:
        return await waited(loop_id, length, 0.1)

    with monkeypatch.context() as hurry:
        # Time runs for who waits, a minute at a look; the server itself has all the time it needs.
        hurry.setattr(runtime.journal, "wait", impatient)
        clock = SimpleNamespace(monotonic=count(0.0, 60.0).__next__)
        hurry.setattr("flyball.runtime.nats.runtime.time", clock)
        with pytest.raises(JournalUnreachable, match="no loop worker has taken up"):
            await agent.run("hi", runtime=runtime, loop_id="later")
    # It is not lost: whoever comes takes it up.
    async with working(runtime, agent):
        result = await asyncio.wait_for(agent.run("hi", runtime=runtime, loop_id="later"), PATIENCE)
    assert len([event for event in await result.events() if isinstance(event, ModelAnswered)]) == 1


async def test_what_does_not_travel_is_refused(runtime: NatsRuntime) -> None:
    agent = Agent(Script("hello"), name="greeter")
    with pytest.raises(DepsError):
        await agent.run("hi", runtime=runtime, deps="mine")
    with pytest.raises(UserError, match=r"'max_turns'.* cannot travel"):
        await agent.run("hi", runtime=runtime, features=[MaxTurns(1)])
    with pytest.raises(UserError, match="an engine cannot travel"):
        await agent.run("hi", runtime=runtime, model=Script("ho"))
    with pytest.raises(UserError, match="two agents are called 'greeter'"):
        Crew(runtime.journal, [agent, Agent(Script("ho"), name="greeter")])
    with pytest.raises(UserError, match="there is no worker 'cook'"):
        Crew(runtime.journal, [agent], ["cook"])  # pyright: ignore[reportArgumentType]


async def test_a_tool_that_cancels_itself_has_that_recorded(runtime: NatsRuntime) -> None:
    @tool
    async def faint() -> str:
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        await asyncio.sleep(600)
        return "never"

    agent = Agent(Script(call("faint"), "It fainted."), tools=[faint], name="fainter")
    async with working(runtime, agent):
        result = await asyncio.wait_for(agent.run("go", runtime=runtime), PATIENCE)
    assert result.output == "It fainted."
    (returned,) = [event for event in await result.events() if isinstance(event, ToolReturned)]
    assert returned.result.is_error


async def test_what_workers_bind_reaches_prompt_functions_and_tools(runtime: NatsRuntime) -> None:
    seen: list[str] = []

    @tool
    async def who(ctx: RunContext[str]) -> str:
        seen.append(f"tool {ctx.deps}")
        return ctx.deps

    agent: Agent[Any, Any] = Agent(Script(call("who"), "done"), tools=[who], name="asker")

    @agent.instructions
    def prompt(ctx: RunContext[Any]) -> str:
        seen.append(f"prompt {ctx.deps}")
        return "Be brief."

    async with working(runtime, agent, deps="mine"):
        await asyncio.wait_for(agent.run("go", runtime=runtime), PATIENCE)
    assert seen == ["prompt mine", "tool mine"]


async def test_a_worker_without_a_guardrail_does_not_carry_on_what_was_begun_with_one(
    runtime: NatsRuntime,
) -> None:
    model = Script("hello")
    agent = Agent(model, name="greeter")
    async with working(runtime, agent):
        with pytest.raises(WorkPutAside, match="'content_filter'"):
            await asyncio.wait_for(
                agent.clone(features=[ContentFilter("spam")]).run("hi", runtime=runtime, loop_id="one"),
                PATIENCE,
            )
        assert model.calls == 0
        assert await runtime.signal("one", "cancel") is Stage.CANCELLED, "that needs nothing of it"
        with pytest.raises(CancelledSignal):
            await asyncio.wait_for(runtime.result(agent, "one"), PATIENCE)
    async with working(runtime, agent.clone(features=[ContentFilter("spam")])):
        result = await asyncio.wait_for(
            agent.clone(features=[ContentFilter("spam")]).run("hi", runtime=runtime), PATIENCE
        )
        assert result.output == "hello"


async def test_nobody_else_says_what_a_loop_decides(runtime: NatsRuntime) -> None:
    agent = Agent(Script(call("pay", '{"amount":5}'), "paid"), tools=[pay], name="payer")
    async with working(runtime, agent):
        running = asyncio.create_task(agent.run("pay 5", runtime=runtime, loop_id="bill"))
        await runtime.journal.wait("bill", 1)
        forged = own("lie", "forged", Report("bill", Ended(1.0, Outcome.SUCCESS)))
        await runtime.bus.publish("agent.response.forged", forged, "forged")
        (aside,) = await dead(runtime, 1)
        assert "Ended is not for others to say" in aside.reason
        assert await runtime.signal("bill", Signal(SignalType.APPROVE))
        assert (await asyncio.wait_for(running, PATIENCE)).output == "paid"


async def test_headers_that_look_like_the_servers_do_not_deceive_a_worker(runtime: NatsRuntime) -> None:
    agent = Agent(Script("hello"), name="greeter")
    async with working(runtime, agent):
        await runtime.bus.publish("agent.request.x", b"?", "x", more={"Status": "408"})
        (aside,) = await dead(runtime, 1)
        assert (aside.data, aside.headers["Status"]) == (b"?", "408")
        assert (await asyncio.wait_for(agent.run("hi", runtime=runtime), PATIENCE)).output == "hello"


async def test_what_is_given_out_again_by_two_at_once_is_given_out_once(runtime: NatsRuntime) -> None:
    async with working(runtime, Agent(Script("hello"), name="greeter")):
        await runtime.bus.publish("agent.request.x", b"?", "x")
        await dead(runtime, 1)
    ((number, aside),) = await dead_letters(runtime.bus)
    before = (await runtime.connection.js.stream_info(AGENT)).state.messages
    for _ in range(2):
        await requeue(runtime.bus, number, aside)
    assert await dead_letters(runtime.bus) == []
    assert (await runtime.connection.js.stream_info(AGENT)).state.messages == before + 1
    await runtime.connection.js.delete_stream(DEAD)
    with pytest.raises(JournalFailure, match=r"does not delete message \d+ of AGENT_DEAD"):
        await requeue(runtime.bus, number, aside)
    await runtime.bus.set_up()


async def test_the_largest_message_can_be_put_aside_and_a_larger_one_is_refused(runtime: NatsRuntime) -> None:
    limit = runtime.connection.max_payload
    async with working(runtime, Agent(Script("hello"), name="greeter")):
        await runtime.bus.publish("agent.request.x", b"x" * (limit - 10_000), "x", whole=True)
        (aside,) = await dead(runtime, 1)
        assert len(aside.data) == limit - 10_000
        with pytest.raises(JournalFailure, match="is larger than the"):
            await runtime.bus.publish("agent.request.y", b"x" * (limit + 1), "y", whole=True)


async def test_a_cancel_goes_on_to_what_runs_under_a_loop(runtime: NatsRuntime) -> None:
    asked = asyncio.Event()

    class Slow(Script):
        async def infer(self, request: Any) -> Any:
            asked.set()
            await asyncio.sleep(600)

    child = Agent(Slow("never"), name="child")

    @tool
    async def hand_on(ctx: RunContext[Any]) -> str:
        return (await child.run("do it", parent=ctx, loop_id="below")).output

    parent = Agent(Script(call("hand_on"), "never"), tools=[hand_on], name="parent")
    async with working(runtime, parent), working(runtime, child):
        running = asyncio.create_task(parent.run("go", runtime=runtime, loop_id="above"))
        await asyncio.wait_for(asked.wait(), PATIENCE)
        assert await runtime.signal("above", Signal(SignalType.CANCEL, by="me", text="enough"))
        with pytest.raises(CancelledSignal, match="enough"):
            await asyncio.wait_for(running, PATIENCE)
        async with asyncio.timeout(PATIENCE):
            events, state = await load(runtime.journal, "below")
            while state.at != "done":
                await runtime.journal.wait("below", len(events))
                events, state = await load(runtime.journal, "below")
    assert (state.outcome, state.parent_loop_id, state.depth) == (Outcome.CANCELLED, "above", 1)
    assert (await load(runtime.journal, "above"))[1].children == ("below",)


async def test_a_child_that_comes_after_its_parents_cancel_does_not_run(runtime: NatsRuntime) -> None:
    agent = Agent(Script(call("pay", '{"amount":5}'), "never"), tools=[pay], name="payer")
    async with working(runtime, agent):
        running = asyncio.create_task(agent.run("pay", runtime=runtime, loop_id="above"))
        async with asyncio.timeout(PATIENCE):
            while not await runtime.journal.wait("above", 1, 1.0):
                pass
        await runtime.signal("above", Signal(SignalType.CANCEL))
        await asyncio.gather(running, return_exceptions=True)
        late = TaskMessage(
            task_id="late", role="payer", model="default", prompt="go", parent_loop_id="above", depth=1
        )
        deep = TaskMessage(task_id="deep", role="payer", model="default", prompt="go", depth=3, max_depth=2)
        for task in (late, deep):
            data = write_envelope(task, id=task.task_id, at=1.0)
            await runtime.connection.js.publish(f"agent.task.{task.task_id}", data)
            assert await runtime.journal.wait(task.task_id, 0, PATIENCE)
        assert (await load(runtime.journal, "late"))[1].outcome is Outcome.CANCELLED
        refused = (await load(runtime.journal, "deep"))[1]
    assert refused.error is not None
    assert (refused.outcome, refused.error.code) == (Outcome.FAILED, "ORCHESTRATION_DEPTH_LIMIT")


async def test_a_loop_that_somebody_resumes_in_his_own_process_is_left_to_him(runtime: NatsRuntime) -> None:
    agent = Agent(Script(call("pay", '{"amount":5}'), "paid"), tools=[pay], name="payer")
    async with working(runtime, agent):
        waiting = asyncio.create_task(agent.run("pay 5", runtime=runtime, loop_id="bill"))
        async with asyncio.timeout(PATIENCE):
            while len(await runtime.journal.read("bill")) < 2:
                await runtime.journal.wait("bill", 1)
        here = asyncio.create_task(agent.resume("bill", runtime.journal))
        await runtime.journal.wait("bill", 2)
        await runtime.signal("bill", Signal(SignalType.APPROVE))
        assert (await asyncio.wait_for(here, PATIENCE)).output == "paid"
        assert (await asyncio.wait_for(waiting, PATIENCE)).output == "paid"
        assert not await dead_letters(runtime.bus)


async def test_who_follows_a_loop_hears_that_it_is_stuck(runtime: NatsRuntime) -> None:
    stranger = Agent(Script("hello"), name="stranger")

    async def follow() -> None:
        async for _ in runtime.follow("lost"):
            pass

    async with working(runtime, Agent(Script("hello"), name="greeter")):
        following = asyncio.create_task(follow())
        with pytest.raises(WorkPutAside, match="'stranger' is not here; here are 'greeter'"):
            await asyncio.wait_for(stranger.run("hi", runtime=runtime, loop_id="lost"), PATIENCE)
        with pytest.raises(WorkPutAside, match=r"agent\.task\.lost"):
            await asyncio.wait_for(following, PATIENCE)


@pytest.mark.parametrize("loop_id", [" ", "\t", "  ", "a b", "a\r\nNats-Msg-Id: b", "ü", "x" * 500, "a.b.>"])
async def test_any_id_is_an_id(runtime: NatsRuntime, loop_id: str) -> None:
    agent = Agent(Script("hello"), name="greeter")
    async with working(runtime, agent):
        assert (
            await asyncio.wait_for(agent.run("hi", runtime=runtime, loop_id=loop_id), PATIENCE)
        ).output == "hello"
    assert loop_id in await runtime.journal.loops()


async def test_a_signal_that_is_refused_has_nothing_done_again(runtime: NatsRuntime) -> None:
    asked, go_on = asyncio.Event(), asyncio.Event()

    class Slow(Script):
        async def infer(self, request: Any) -> Any:
            asked.set()
            await go_on.wait()
            return await super().infer(request)

    model = Slow("hello", "quickly")
    agent = Agent(model, name="greeter")
    async with working(runtime, agent), working(runtime, agent):
        running = asyncio.create_task(agent.run("hi", runtime=runtime, loop_id="one"))
        await asyncio.wait_for(asked.wait(), PATIENCE)
        for wrong in ("retry", "resume", "approve"):
            with pytest.raises(SignalRefused):
                await runtime.signal("one", wrong)
        await runtime.signal("one", "feedback", "Be quick.")
        go_on.set()
        assert (await asyncio.wait_for(running, PATIENCE)).output == "quickly"
    assert model.calls == 2, "a call was made twice"


async def test_nobody_has_a_worker_speak_where_he_may_not(runtime: NatsRuntime) -> None:
    heard: list[bytes] = []

    async def hear(message: Any) -> None:
        heard.append(message.data)

    agent = Agent(Script(call("pay", '{"amount":5}'), "paid"), tools=[pay], name="payer")
    async with working(runtime, agent):
        running = asyncio.create_task(agent.run("pay 5", runtime=runtime, loop_id="bill"))
        await runtime.journal.wait("bill", 1)
        await runtime.connection.subscribe("somewhere.else", hear)
        said = write_signal("bill", Signal(SignalType.FEEDBACK, id="f", text="hm"), 1.0)
        await runtime.bus.publish("agent.signal.bill", said, "f", more={REPLY: "somewhere.else"})
        await runtime.signal("bill", "approve")
        await asyncio.wait_for(running, PATIENCE)
    assert heard == []


async def test_a_loop_that_came_to_its_end_is_not_stuck(runtime: NatsRuntime) -> None:
    agent = Agent(Script("hello"), name="greeter")
    async with working(runtime, agent):
        first = await asyncio.wait_for(agent.run("hi", runtime=runtime, loop_id="over"), PATIENCE)
        await runtime.bus.publish("agent.response.bad", b"not json", "bad", loop_id="over")
        await dead(runtime, 1)
        again = await asyncio.wait_for(agent.run("hi", runtime=runtime, loop_id="over"), PATIENCE)
    assert again.output == first.output


async def test_what_was_answered_is_not_done_again(runtime: NatsRuntime) -> None:
    """The acknowledgement of a call was lost, or the server does not remember it."""
    seen: list[int] = []

    @tool
    async def count(n: int) -> int:
        seen.append(n)
        return n

    agent = Agent(Script(call("count", '{"n":1}'), "done"), tools=[count], name="counter")
    async with working(runtime, agent, nearby=False):
        await asyncio.wait_for(agent.run("go", runtime=runtime), PATIENCE)
        js = runtime.connection.js
        for subject in ("tool.execute.count", "agent.request.*"):
            old = await js.get_last_msg(AGENT, subject)
            await js.publish(old.subject, old.data)
        assert (await asyncio.wait_for(agent.run("go", runtime=runtime), PATIENCE)).output == "done"
    assert seen == [1, 1]
