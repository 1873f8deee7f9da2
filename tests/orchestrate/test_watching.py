"""What those who watch a loop are told: what its journal says, in its order, however it is driven."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, cast

import pytest

from flyball import (
    Agent,
    EventBus,
    Hook,
    Limits,
    LocalRuntime,
    MemoryJournal,
    Message,
    RunCompletedEvent,
    RunContext,
    RunResult,
    RunStartedEvent,
    RuntimeEvent,
    SQLiteJournal,
    ToolCalledEvent,
    Tracing,
    Watcher,
    send_signal,
    tool,
)
from flyball.core.errors import FlyballError
from flyball.inference.answers import tool_call as call
from flyball.inference.scripted import FunctionEngine
from flyball.observe.events import PhaseChangedEvent, ToolEndedEvent, TurnStartedEvent
from flyball.observe.watcher import Contexts
from flyball.orchestrate.journal import Journal
from flyball.orchestrate.projections import normal_form
from flyball.orchestrate.projections.runtime_events import run_trace, runtime_events
from flyball.testing import FakeClock
from flyball.testing.split import ROUGH, SplitDriver
from tests.observe.logged import logged
from tests.orchestrate.models import Script
from tests.orchestrate.scenario import Scenario
from tests.orchestrate.scenarios import SCENARIOS, add, pay
from tests.orchestrate.test_recorded import cut, ending
from tests.orchestrate.watching_scenarios import HOOKS, USUAL, heard_by
from tests.patience import PATIENCE

Way = Callable[[Agent[Any, Any], Scenario], Awaitable[RunResult[Any]]]


async def run(agent: Agent[Any, Any], scenario: Scenario, **options: Any) -> RunResult[Any]:
    return (await ending(agent.run(scenario.prompt, **scenario.options, **options)))[0]


async def run_with_a_journal(agent: Agent[Any, Any], scenario: Scenario) -> RunResult[Any]:
    return await run(agent, scenario, journal=MemoryJournal())


async def run_stream(agent: Agent[Any, Any], scenario: Scenario) -> RunResult[Any]:
    async with agent.run_stream(scenario.prompt, **scenario.options) as stream:
        return (await ending(stream.get_result()))[0]


async def iterate(agent: Agent[Any, Any], scenario: Scenario) -> RunResult[Any]:
    async with agent.iter(scenario.prompt, **scenario.options) as steps:
        try:
            async for _ in steps:
                pass
            return steps.result
        except FlyballError as error:
            return error.partial


async def run_batch(agent: Agent[Any, Any], scenario: Scenario) -> RunResult[Any]:
    if scenario.prompt is None:
        return await run(agent, scenario)  # a batch is made of prompts
    (one,) = await agent.run_batch([scenario.prompt], **scenario.options)
    return one.partial if isinstance(one, FlyballError) else one


async def run_locally(agent: Agent[Any, Any], scenario: Scenario) -> RunResult[Any]:
    async with LocalRuntime() as runtime:
        return await run(agent, scenario, runtime=runtime)


async def stream_locally(agent: Agent[Any, Any], scenario: Scenario) -> RunResult[Any]:
    async with (
        LocalRuntime() as runtime,
        agent.run_stream(scenario.prompt, **scenario.options, runtime=runtime) as stream,
    ):
        return (await ending(stream.get_result()))[0]


async def run_split(agent: Agent[Any, Any], scenario: Scenario) -> RunResult[Any]:
    return await run(agent, scenario, runtime=SplitDriver())


async def run_rough(agent: Agent[Any, Any], scenario: Scenario) -> RunResult[Any]:
    return await run(agent, scenario, runtime=SplitDriver(7, ROUGH))


WAYS: tuple[Way, ...] = (
    run,
    run_with_a_journal,
    run_stream,
    iterate,
    run_batch,
    run_locally,
    stream_locally,
    run_split,
    run_rough,
)


QUICK: tuple[Way, ...] = (run, run_stream, run_split)


def name_of(way: Way) -> str:
    return getattr(way, "__name__", "")


EVERY_WAY = [
    pytest.param(scenario, way, marks=() if scenario in USUAL or way in QUICK else pytest.mark.slow)
    for scenario in SCENARIOS
    for way in WAYS
]


@pytest.mark.parametrize(("scenario", "way"), EVERY_WAY, ids=lambda one: getattr(one, "__name__", repr(one)))
async def test_what_is_told_is_what_the_journal_says(scenario: Scenario, way: Way) -> None:
    agent, heard = heard_by(scenario.make())
    result = await way(agent, scenario)
    events = await result.events()
    assert heard == list(runtime_events(events))
    assert isinstance(heard[0], RunStartedEvent)
    assert isinstance(heard[-1], RunCompletedEvent)
    assert heard[-1].success is not bool(scenario.code)


@pytest.mark.parametrize("scenario", SCENARIOS, ids=repr)
async def test_who_watches_changes_nothing(scenario: Scenario) -> None:
    alone = await run(scenario.make(), scenario)
    agent, _ = heard_by(scenario.make())
    watched = await run(agent, scenario)
    assert (watched.output, watched.messages, watched.usage) == (alone.output, alone.messages, alone.usage)
    assert normal_form(await watched.events()) == normal_form(await alone.events())


# Resume, replay, fork


@pytest.mark.parametrize("scenario", SCENARIOS, ids=repr)
async def test_a_resumed_run_tells_what_happens_from_then_on(scenario: Scenario) -> None:
    calm = await run(scenario.make(), scenario, journal=MemoryJournal())
    events = await calm.events()
    for length in range(1, len(events)):
        loop_id, journal = await cut(events, length)
        agent, heard = heard_by(scenario.make())
        result = (await ending(agent.resume(loop_id, journal)))[0]
        recorded = await result.events()
        before = list(runtime_events(recorded[:length]))
        assert heard == list(runtime_events(recorded))[len(before) :], length
        assert not any(isinstance(event, RunStartedEvent) for event in heard)
        assert isinstance(heard[-1], RunCompletedEvent)


async def test_a_finished_run_is_told_no_more() -> None:
    agent, heard = heard_by(Agent(Script("hi"), features=[Tracing()]))
    journal = MemoryJournal()
    result = await agent.run("go", journal=journal)
    told = list(heard)
    assert told
    replayed = await agent.replay(result.loop_id, journal)
    resumed = await agent.resume(result.loop_id, journal)
    again = await agent.run("go", journal=journal, loop_id=result.loop_id)
    assert heard == told
    for one in (replayed, resumed, again):
        assert one.trace == result.trace is not None


async def test_a_fork_is_a_run_of_its_own() -> None:
    journal = MemoryJournal()
    agent, heard = heard_by(Agent(Script(call("add", {"x": 1, "y": 2}), "3"), tools=[add]))
    first = await agent.run("1 + 2?", journal=journal, loop_id="one")
    heard.clear()
    result = await agent.fork("one", journal, turn=1, new_loop_id="two", prompt="and then?")
    assert {event.run_id for event in heard} == {"two"}
    started, turn, *_, completed = [one for one in heard if not isinstance(one, PhaseChangedEvent)]
    assert isinstance(started, RunStartedEvent)
    assert (started.prompt, started.parent_run_id) == ("and then?", "")
    assert isinstance(turn, TurnStartedEvent)
    assert turn.turn == 2
    assert isinstance(completed, RunCompletedEvent)
    told = list(runtime_events(await result.events()))
    assert heard == [event for event in told if event.run_id == "two"]
    assert {event.run_id for event in told} == {"one", "two"}
    heard.clear()
    await agent.resume("two", journal)
    assert heard == []
    assert first.trace is None


async def test_another_attempt_is_told_as_a_run_that_begins() -> None:
    answers = iter([RuntimeError("down"), "up"])

    async def answer(_: Any) -> str:
        given = next(answers)
        if isinstance(given, Exception):
            raise given
        return given

    agent, heard = heard_by(Agent(FunctionEngine(answer)))
    async with agent.iter("go", journal=MemoryJournal()) as steps:
        with pytest.raises(FlyballError, match="down"):
            async for _ in steps:
                pass
        assert [event.type for event in heard][-1] == "run_completed"
        heard.clear()
        await steps.signal("retry")
        async for _ in steps:
            pass
    assert [event.type for event in heard] == [
        "run_started",
        "phase_changed",
        "phase_changed",
        "phase_changed",
        "turn_started",
        "model_requested",
        "model_responded",
        "phase_changed",
        "turn_ended",
        "run_completed",
    ]


# In line, and in order


async def test_hooks_are_called_in_line_and_in_the_order_in_which_they_were_given() -> None:
    said: list[str] = []

    async def slowly(*_: Any) -> None:
        await asyncio.sleep(0)
        said.append("hook 1")

    async def answer(_: Any) -> str:
        said.append("the model")
        return "hi"

    agent = Agent(
        FunctionEngine(answer),
        features=[
            Hook(on_model_request=slowly),
            Hook(on_model_request=lambda _, messages: said.append("hook 2")),
            Hook(on_model_response=lambda _, message: said.append("hook 3")),
        ],
    )
    await agent.run("go")
    assert said == ["hook 1", "hook 2", "the model", "hook 3"]


async def test_what_led_to_an_effect_is_recorded_before_it_is_told() -> None:
    journal = MemoryJournal()
    lengths: list[tuple[str, int]] = []

    class Reads(Watcher):
        async def tell(self, event: RuntimeEvent, context: Contexts) -> None:
            lengths.append((event.type, len(await journal.read("one"))))

    @tool
    async def look() -> int:
        return len(await journal.read("one"))

    agent = Agent(Script(call("look"), "seen"), tools=[look], features=[Reads()])
    result = await agent.run("go", journal=journal, loop_id="one")
    assert lengths == [
        ("run_started", 1),
        ("phase_changed", 1),
        ("phase_changed", 1),
        ("turn_started", 1),
        ("model_requested", 1),
        ("model_responded", 2),
        ("tool_called", 2),
        ("tool_ended", 3),
        ("turn_ended", 3),
        ("turn_started", 3),
        ("model_requested", 3),
        ("model_responded", 5),  # the end is recorded with the answer that leads to it
        ("phase_changed", 5),
        ("turn_ended", 5),
        ("run_completed", 5),
    ]
    assert result.messages[2].tool_results[0].content == 2


async def test_a_call_that_ends_first_is_told_while_others_still_run() -> None:
    told, slow = asyncio.Event(), asyncio.Event()

    @tool
    async def quick() -> str:
        return "done"

    @tool
    async def waits() -> str:
        await slow.wait()
        return "done too"

    def ended(_: RunContext[Any], call_id: str, name: str, result: str, error: str | None) -> None:
        if name == "quick":
            told.set()
            slow.set()

    agent = Agent(
        Script([call("waits"), call("quick")], "ok"), tools=[quick, waits], features=[Hook(on_tool_end=ended)]
    )
    async with asyncio.timeout(PATIENCE):
        assert (await agent.run("go")).output == "ok"
    assert told.is_set()


# What goes wrong


async def test_a_hook_that_fails_is_logged_and_breaks_nothing() -> None:
    heard: list[str] = []

    def broken(*_: Any) -> None:
        raise ValueError("oh no")

    async def cancels(*_: Any) -> None:
        raise asyncio.CancelledError

    agent = Agent(
        Script("hi"),
        features=[
            Hook(on_run_start=broken, name="first"),
            Hook(on_run_start=cancels, name="second"),
            Hook(on_run_start=lambda ctx, prompt: heard.append(prompt)),
        ],
    )
    with logged() as records:
        assert (await agent.run("go")).output == "hi"
    assert heard == ["go"]
    first, second = [record.getMessage() for record in records]
    assert first == "<Hook first: on_run_start> failed when it was told run_started; the run goes on"
    assert second.startswith("<Hook second: on_run_start> cancelled itself")
    assert "oh no" in str(records[0].exc_info)


async def test_a_hook_may_cancel_its_own_run() -> None:
    """Who is told of a loop is not waited for by itself."""

    @tool
    async def never() -> str:
        raise AssertionError("the run was cancelled before")

    runs: list[Any] = []

    async def stop(*_: Any) -> None:
        await asyncio.gather(runs[0].cancel("enough"))

    agent = Agent(Script(call("never"), "no"), tools=[never], features=[Hook(on_tool_start=stop)])
    async with asyncio.timeout(PATIENCE), agent.iter("go") as steps:
        runs.append(steps)
        with pytest.raises(FlyballError, match="cancelled: enough"):
            async for _ in steps:
                pass


async def test_a_run_that_is_cancelled_while_it_tells_goes_on_where_it_is_recorded() -> None:
    journal, waits = MemoryJournal(), asyncio.Event()

    async def hangs(*_: Any) -> None:
        waits.set()
        await asyncio.Event().wait()

    agent = Agent(Script("hi"), features=[Hook(on_model_response=hangs)])
    running = asyncio.ensure_future(agent.run("go", journal=journal, loop_id="one"))
    await waits.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    calm, heard = heard_by(Agent(Script("hi")))
    assert (await calm.resume("one", journal)).output == "hi"
    assert heard == [], "its end had been recorded with the answer"


async def test_the_deadline_passes_while_a_hook_takes_its_time() -> None:
    clock = FakeClock()

    async def slow(*_: Any) -> None:
        await clock.advance(10)

    @tool
    async def never() -> str:
        raise AssertionError("there was no time left for it")

    agent, heard = heard_by(
        Agent(
            Script(call("never"), "no"),
            tools=[never],
            features=[Hook(on_tool_start=slow)],
            limits=Limits(timeout=5),
        )
    )
    with pytest.raises(FlyballError, match="time-out of 5 s"):
        await agent.run("go", clock=clock)
    assert [event.type for event in heard][-4:] == [
        "tool_called",
        "phase_changed",
        "turn_ended",
        "run_completed",
    ]


async def test_what_a_hook_changes_is_its_own_copy() -> None:
    @tool
    async def look() -> list[str]:
        return ["seen"]

    def spoil(_: RunContext[Any], messages: tuple[Message, ...]) -> None:
        for message in messages:
            for result in message.tool_results:
                cast("list[Any]", result.content).append("spoilt")

    class Spoils(Watcher):
        def tell(self, event: RuntimeEvent, context: Contexts) -> None:
            if isinstance(event, ToolEndedEvent):
                cast("list[Any]", event.result.content).append("spoilt")
            spoil(context(), context().messages)

    agent = Agent(Script(call("look"), "ok"), tools=[look], features=[Hook(on_model_request=spoil), Spoils()])
    with logged() as records:
        result = await agent.run("go")
    assert records == []
    assert result.messages[2].tool_results[0].content == ["seen"]


# From outside


async def test_what_others_append_is_told_by_who_drives() -> None:
    journal = MemoryJournal()
    agent, heard = heard_by(Agent(Script(call("pay", {"amount": 5}), "ok"), tools=[pay]))
    running = asyncio.ensure_future(agent.run("go", journal=journal, loop_id="one"))
    await journal.wait("one", 1)
    await asyncio.sleep(0)
    assert not any(isinstance(event, ToolCalledEvent) for event in heard)
    await send_signal(journal, "one", "approve")
    result = await running
    assert heard == list(runtime_events(await result.events()))
    assert any(isinstance(event, ToolCalledEvent) for event in heard)


async def test_a_pause_holds_back_what_is_told_to_begin() -> None:
    agent, heard = heard_by(Agent(Script(call("add", {"x": 1, "y": 2}), "3"), tools=[add]))
    async with agent.iter("go", journal=MemoryJournal()) as steps:
        await steps.next()
        await steps.signal("pause")
        before = [event.type for event in heard]
        await steps.signal("resume")
        async for _ in steps:
            pass
        events = await steps.result.events()
    assert heard == list(runtime_events(events))
    assert before.count("model_requested") <= 2
    assert [event.type for event in heard].count("model_requested") == 2


async def test_a_process_that_takes_over_tells_the_calls_it_makes_again(tmp_path: Path) -> None:
    async with SQLiteJournal(tmp_path / "runs.db") as journal:
        hangs = asyncio.Event()

        @tool
        async def look() -> str:
            hangs.set()
            await asyncio.Event().wait()
            return ""

        agent, heard = heard_by(Agent(Script(call("look"), "ok"), tools=[look]))
        running = asyncio.ensure_future(agent.run("go", journal=journal, loop_id="one"))
        await hangs.wait()
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        assert [event.type for event in heard][-1] == "tool_called"

        @tool(name="look")
        async def look_quickly() -> str:
            return "seen"

        second, heard = heard_by(Agent(Script(call("look"), "ok"), tools=[look_quickly]))
        await second.resume("one", journal)
        assert [event.type for event in heard][:2] == ["tool_called", "tool_ended"]


# What the context says


async def test_a_hook_is_told_the_run_as_it_stood() -> None:
    seen: list[tuple[Any, ...]] = []

    def note(name: str) -> Any:
        def hook(ctx: RunContext[str], *_: Any) -> None:
            seen.append((name, ctx.run_step, len(ctx.messages), ctx.usage.requests, ctx.deps, ctx.prompt))

        return hook

    agent = Agent(
        Script(call("add", {"x": 1, "y": 2}), "3"),
        tools=[add],
        features=[Hook(**{name: note(name) for name in HOOKS})],
        deps_type=str,
    )
    await agent.run("1 + 2?", deps="mine")
    assert [one[:4] for one in seen] == [
        ("on_run_start", 0, 1, 0),
        ("on_turn_start", 1, 1, 0),
        ("on_model_request", 1, 1, 0),
        ("on_model_response", 1, 2, 1),
        ("on_tool_start", 1, 2, 1),
        ("on_tool_end", 1, 3, 1),
        ("on_turn_end", 1, 3, 1),
        ("on_turn_start", 2, 3, 1),
        ("on_model_request", 2, 3, 1),
        ("on_model_response", 2, 4, 2),
        ("on_turn_end", 2, 4, 2),
        ("on_run_end", 2, 4, 2),
    ]
    assert {one[4:] for one in seen} == {("mine", "1 + 2?")}


async def test_a_snapshot_that_a_hook_takes_can_be_gone_on_from() -> None:
    snapshots: list[Any] = []
    agent = Agent(
        Script(call("add", {"x": 1, "y": 2}), "3"),
        tools=[add],
        features=[Hook(on_model_response=lambda ctx, _: snapshots.append(ctx.snapshot()))],
    )
    result = await agent.run("1 + 2?")
    first, last = snapshots
    assert (first.run_step, len(first.messages)) == (0, 1)
    assert (last.run_step, last.messages) == (2, result.messages)
    assert (await Agent(Script("three")).run(snapshot=first)).output == "three"


async def test_a_run_that_a_hook_begins_is_no_part_of_the_one_it_watches() -> None:
    other = Agent(Script("noted"), name="scribe")
    said: list[str] = []

    async def write(ctx: RunContext[Any], *_: Any) -> None:
        said.append((await other.run("write it down", parent=ctx)).output)

    agent = Agent(Script("hi"), features=[Hook(on_run_end=write)])
    result = await agent.run("go", journal=MemoryJournal())
    assert said == ["noted"]
    assert result.state.children == ()


async def test_the_bus_is_reached_from_every_function_of_the_run() -> None:
    buses: list[Any] = []
    bus = EventBus()

    def look(ctx: RunContext[Any], *_: Any) -> Any:
        buses.append(ctx.event_bus)

    @tool
    async def see(ctx: RunContext[Any]) -> str:
        look(ctx)
        return "seen"

    @tool
    async def blind() -> str:
        return "dark"

    from flyball import InputGuardrail, RunCondition, TurnGuardrail

    agent = Agent(
        Script([call("see"), call("blind")], "ok"),
        tools=[see, blind],
        instructions=lambda ctx: str(look(ctx)),
        validators=[lambda ctx, output: look(ctx) or output],
        deliveries=[look],
        features=[
            bus,
            Hook(on_run_start=look),
            InputGuardrail(look, "a"),
            TurnGuardrail(look, "b"),
            RunCondition(look, "c"),
        ],
    )
    assert (await agent.run("go")).output == "ok"
    assert buses == [bus] * len(buses)
    assert len(buses) >= 9
    buses.clear()
    await agent.clone(features=[]).run("go")
    assert set(buses) == {None}


# Traces


@pytest.mark.parametrize("way", WAYS, ids=name_of)
async def test_a_result_has_its_trace_however_it_was_run(way: Way) -> None:
    traces: list[Any] = []

    class Keeps:
        def export(self, trace: Any) -> None:
            traces.append(trace)

    scenario = Scenario(
        "",
        lambda: Agent(Script(call("add", {"x": 1, "y": 2}), "3"), tools=[add], features=[Tracing(Keeps())]),
    )
    result = await way(scenario.make(), scenario)
    assert result.trace == run_trace(await result.events())
    assert traces == [result.trace]
    assert (await way(scenario.make().clone(features=[]), scenario)).trace is None


async def test_a_run_that_fails_has_its_trace_too() -> None:
    agent = Agent(Script(RuntimeError("down")), features=[Tracing()])
    with pytest.raises(FlyballError) as caught:
        await agent.run("go")
    trace = caught.value.partial.trace
    assert (trace.success, trace.error) == (False, "the engine failed: RuntimeError: down")


async def test_an_editor_is_watched_by_its_own() -> None:
    editor, heard = heard_by(Agent(Script("edited"), name="editor", features=[Tracing()]))
    architect = Agent(Script("a plan"), name="architect", editor=editor)
    journal: Journal = MemoryJournal()
    result = await architect.run("go", journal=journal)
    assert result.editor is not None
    assert result.editor.trace is not None
    assert heard == list(runtime_events(await result.editor.events()))
    assert heard[0].parent_run_id == result.run_id
    assert result.trace is None
