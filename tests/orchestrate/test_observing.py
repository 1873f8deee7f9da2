"""What an observer records of runs: what their journals say, with all ids, however they are driven."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from msgspec.structs import replace

from flyball import (
    Agent,
    Correlation,
    CostTracker,
    Hook,
    InMemoryEventLog,
    InMemoryMetrics,
    InMemoryTracer,
    MemoryJournal,
    ModelPricing,
    ModelRetry,
    NoOpEventLog,
    Observer,
    RunContext,
    StaticKnowledgeBase,
    System,
    SystemRequest,
    Watcher,
    tool,
)
from flyball.context.knowledge import Knowledge
from flyball.core.errors import EngineError, FlyballError, UserError
from flyball.core.events import Event as Recorded
from flyball.core.messages import Message, Role, Text, user
from flyball.core.phases import Phase
from flyball.core.usage import Usage
from flyball.inference.answers import tool_call as call
from flyball.observe.event_log import Event
from flyball.observe.events import RuntimeEvent
from flyball.observe.log_events import timeline as timeline_of_log
from flyball.observe.timeline import (
    InferenceEndEvent,
    InferenceStartEvent,
    LifecycleTransitionEvent,
    ToolEndEvent,
    ToolStartEvent,
)
from flyball.orchestrate.flow.steps import AgentStep, ConditionalStep, ParallelSteps, Pipeline, TransformStep
from flyball.orchestrate.lifecycle import EDGES, REOPENING
from flyball.orchestrate.projections import event_log, timeline, tool_calls_made
from tests.observe.logged import logged
from tests.orchestrate.journals import journals
from tests.orchestrate.models import Script
from tests.orchestrate.scenario import Scenario
from tests.orchestrate.scenarios import SCENARIOS, add
from tests.orchestrate.test_recorded import cut, ending
from tests.orchestrate.test_watching import EVERY_WAY, Way, run


def observed(agent: Agent[Any, Any], **options: Any) -> tuple[Agent[Any, Any], Observer]:
    observer = Observer(tracer=InMemoryTracer(), metrics=InMemoryMetrics(), **options)
    return agent.clone(features=[observer, *agent.config.features]), observer


# The log is the journal's


@pytest.mark.parametrize(("scenario", "way"), EVERY_WAY, ids=lambda one: getattr(one, "__name__", repr(one)))
async def test_the_log_of_a_run_is_that_of_its_journal(scenario: Scenario, way: Way) -> None:
    agent, observer = observed(scenario.make())
    events = await (await way(agent, scenario)).events()
    log = list(observer.events())
    assert log == list(event_log(events))
    assert timeline_of_log(log) == timeline(events)
    check_log(log, events)
    check_spans(observer)


def check_log(log: list[Event], events: list[Recorded]) -> None:
    first = log[0].correlation
    assert first.request_id
    for event in log:
        ids = event.correlation
        assert ids.request_id == first.request_id
        assert ids.trace_id == first.trace_id
        assert (len(ids.trace_id), len(ids.span_id)) == (32, 16)
        assert bool(ids.tool_call_id) == (event.layer == "tool")
        if event.layer == "tool":
            assert ids.caused_by == ids.tool_call_id == event.data["tool_call_id"]
            assert ids.model_request_id, "the model request that the call came from"
        assert event.duration >= 0
    ran = [event for event in log if event.action == "tool"]
    assert len(ran) == len([one for one in tool_calls_made(events) if one.status != "interrupted"])
    phases = [event.data for event in log if event.action == "transition"]
    for before, after in pairwise(phases):
        assert after["from_state"] == before["to_state"] or after["from_state"] == "init"
    for one in phases:
        edge = Phase(one["from_state"]), Phase(one["to_state"])
        assert edge[1] in EDGES[edge[0]] or edge in REOPENING
        assert one["reason"]


def check_spans(observer: Observer) -> None:
    """Each span is under another one that is there, but for the first; and none is left open but what was."""
    tracer = observer.tracer
    assert isinstance(tracer, InMemoryTracer)
    spans = {span.span_id: span for span in tracer.spans()}
    (root,) = [span for span in spans.values() if span.name.startswith("invoke_agent")]
    assert root.end is not None
    for span in spans.values():
        assert span is root or span.parent_span_id == root.span_id
        assert span.trace_id == root.trace_id


@given(journals())
def test_from_a_log_the_timeline_is_given_back(events: list[Recorded]) -> None:
    log = list(event_log(events))
    told = timeline(events)
    assert timeline_of_log(log) == told
    kinds = {(type(one), one.correlation.span_id) for one in told}
    for kind, span in kinds:
        if kind is InferenceEndEvent:
            assert (InferenceStartEvent, span) in kinds
        if kind is ToolEndEvent:
            assert (ToolStartEvent, span) in kinds


@pytest.mark.parametrize("scenario", SCENARIOS[:12], ids=repr)
async def test_a_resumed_run_goes_on_in_the_log(scenario: Scenario) -> None:
    calm = await run(scenario.make(), scenario, journal=MemoryJournal())
    events = await calm.events()
    for length in range(1, len(events)):
        loop_id, journal = await cut(events, length)
        agent, observer = observed(scenario.make())
        result = (await ending(agent.resume(loop_id, journal)))[0]
        recorded = await result.events()
        before = list(event_log(recorded[:length]))
        assert list(observer.events()) == list(event_log(recorded))[len(before) :], length


# What stands in it


async def test_the_actions_of_a_run() -> None:
    base = StaticKnowledgeBase("It rains.")
    agent, observer = observed(
        Agent(Script(call("add", {"x": 1, "y": 2}, "one"), "3"), tools=[add], features=[Knowledge(base)])
    )
    await agent.run("1 + 2?")
    actions = [event.action for event in observer.events()]
    assert [one for one in actions if one in ("infer", "tool", "context")] == [
        "context",
        "infer",
        "tool",
        "infer",
    ]
    layers = {event.action: event.layer for event in observer.events()}
    assert (layers["infer"], layers["tool"], layers["context"]) == ("orchestrate", "tool", "context")
    infer = next(event for event in observer.events() if event.action == "infer")
    assert infer.data["messages"] >= 1
    assert infer.timestamp + infer.duration == pytest.approx(infer.data["at"])


async def test_a_log_has_nothing_of_what_was_said() -> None:
    @tool
    async def look(where: str) -> str:
        """Look."""
        return "swordfish"

    agent, observer = observed(
        Agent(
            Script(call("look", {"where": "swordfish"}), "swordfish"), tools=[look], instructions="swordfish"
        )
    )
    await agent.run("swordfish")
    assert "swordfish" not in str(observer.events())
    tracer = observer.tracer
    assert isinstance(tracer, InMemoryTracer)
    assert "swordfish" not in str(tracer.spans())


async def test_metrics_and_costs() -> None:
    said = Message(Role.ASSISTANT, (Text("no"),), usage=Usage(10, 5), model="dear")
    costs = CostTracker({"dear": ModelPricing(1, 2)})

    def long_enough(_: RunContext[Any], output: str) -> str:
        if len(output) < 3:
            raise ModelRetry("longer")
        return output

    agent, observer = observed(Agent(Script(said, "yes"), validators=[long_enough]), costs=costs)
    await agent.run("go")
    metrics = observer.metrics
    assert isinstance(metrics, InMemoryMetrics)
    assert metrics.counters() == {"infer": 2, "retry": 1, "run": 1}
    assert (metrics.tokens().input_tokens, metrics.tokens().output_tokens) == (10, 5)
    assert {layer: one.count for layer, one in metrics.latencies().items()} == {
        "inference": 2,
        "orchestrate": 1,
    }
    assert costs.cost_breakdown() == {"dear": 20, "test": None}
    broken, seen = observed(Agent(Script(EngineError("down"))))
    with pytest.raises(FlyballError, match="down"):
        await broken.run("go")
    assert isinstance(seen.metrics, InMemoryMetrics)
    assert seen.metrics.counters() == {"infer": 1, "infer_error": 1, "run": 1, "run_error": 1}


async def test_costs_of_another_kind() -> None:
    heard: list[Any] = []

    class Mine:
        total_cost = None

        def record_usage(self, model: str, usage: Any, *, provider: str = "", at: float | None = None) -> Any:
            heard.append((model, usage, provider, at is not None))

    observer = Observer(NoOpEventLog(), costs=Mine())
    await Agent(Script("hi"), features=[observer]).run("go")
    assert heard == [("test", None, "", True)]
    assert repr(observer) == "<Observer Mine>"


# Ids


async def test_a_system_request_gives_its_ids_to_all_events() -> None:
    agent, observer = observed(Agent(Script(call("add", {"x": 1, "y": 2}, "one"), "3"), tools=[add]))
    request = SystemRequest(request_id="r", session_id="s", trace_id="t", messages=(user("1 + 2?"),))
    await System(agent).handle(request)
    log = observer.events()
    assert {(e.correlation.request_id, e.correlation.session_id, e.correlation.trace_id) for e in log} == {
        ("r", "s", "t")
    }
    kept = observer.log
    assert isinstance(kept, InMemoryEventLog)
    assert kept.events(session_id="s") == log


async def test_inside_of_a_flow_all_events_have_the_step() -> None:
    observer = Observer(tracer=InMemoryTracer())

    @tool
    async def ask(ctx: RunContext[Any]) -> str:
        """Have another agent do it."""
        return (await helper.run("help", parent=ctx)).output

    helper = Agent(Script("helped"), name="helper", features=[observer])
    worker = Agent(Script(call("ask", {}, "one"), "done"), name="worker", tools=[ask], features=[observer])
    flow = Pipeline(TransformStep(str.upper, name="shout"), AgentStep(worker, name="work"), name="plan")
    journal = MemoryJournal()
    await flow.run("go", features=[observer], journal=journal, loop_id="flow")
    log = list(observer.events())
    assert {event.correlation.request_id for event in log} == {"flow"}
    steps = {event.correlation.loop_id: event.correlation.step_name for event in log}
    loops = list(steps)
    assert loops[0] == "flow"
    assert [steps[loop] for loop in loops[1:]] == ["work", "work"]
    for loop_id in loops:
        mine = [event for event in log if event.correlation.loop_id == loop_id]
        assert mine == list(event_log(await journal.read(loop_id)))
    assert [e.correlation.step_name for e in log if e.action == "step"] == ["shout", "work"]
    caused = {
        event.correlation.loop_id: event.correlation.caused_by for event in log if event.action == "run"
    }
    assert [caused[loop] for loop in loops] == ["", "work", "one"]
    tracer = observer.tracer
    assert isinstance(tracer, InMemoryTracer)
    above = {span.span_id: span.name for span in tracer.spans()}
    tree = {
        span.name: above.get(span.parent_span_id, "") for span in tracer.spans() if span.name != "chat test"
    }
    assert tree == {
        "invoke_workflow plan": "",
        "step shout": "invoke_workflow plan",
        "step work": "invoke_workflow plan",
        "invoke_agent worker": "step work",
        "execute_tool ask": "invoke_agent worker",
        "invoke_agent helper": "execute_tool ask",
    }


# Flows


async def ended(running: Awaitable[Any], ends: str) -> None:
    """Wait for a flow that ends well, or badly."""
    if ends != "error":
        await running
        return
    with pytest.raises(FlyballError, match="out of order"):
        await running


async def fails(_: Any) -> str:
    raise RuntimeError("out of order")


@pytest.mark.parametrize(
    ("flow", "ends"),
    [
        (Pipeline(TransformStep(str.upper), TransformStep(str.lower)), "complete"),
        (ParallelSteps(TransformStep(str.upper), TransformStep(str.lower)), "complete"),
        (ConditionalStep(str.isupper, TransformStep(str.lower), TransformStep(str.upper)), "complete"),
        (Pipeline(TransformStep(str.upper), TransformStep(fails, output=str, retries=1)), "error"),
    ],
    ids=["pipeline", "parallel", "conditional", "failing"],
)
async def test_the_log_of_a_flow_is_that_of_its_journal(flow: Any, ends: str) -> None:
    observer, journal = Observer(), MemoryJournal()
    await ended(flow.run("go", features=[observer], journal=journal, loop_id="flow"), ends)
    log, events = list(observer.events()), await journal.read("flow")
    assert log == list(event_log(events))
    moves = [one for one in timeline(events) if isinstance(one, LifecycleTransitionEvent)]
    assert moves == timeline_of_log(log)
    assert [str(move.to_state) for move in moves] == ["prepare", "execute", ends]
    again = Observer()
    await ended(flow.run("go", features=[again], journal=journal, loop_id="flow"), ends)
    assert list(again.events()) == [], "one that is over tells nothing"


async def test_a_flow_that_is_gone_on_with_tells_what_happens_from_then_on() -> None:
    journal, hangs, started = MemoryJournal(), asyncio.Event(), asyncio.Event()
    first, second = Observer(), Observer()

    async def waits(text: str) -> str:
        started.set()
        await hangs.wait()
        return text

    flow = Pipeline(TransformStep(str.upper, name="one"), TransformStep(waits, name="two"))
    running = asyncio.ensure_future(flow.run("go", features=[first], journal=journal, loop_id="flow"))
    await started.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    length = len(await journal.read("flow"))
    hangs.set()
    assert (await flow.run("go", features=[second], journal=journal, loop_id="flow")).output == "GO"
    events = await journal.read("flow")
    before = list(event_log(events[:length]))
    assert list(first.events()) == before
    assert list(second.events()) == list(event_log(events))[len(before) :]
    assert [event.action for event in second.events()] == ["step_start", "step", "transition", "run"]


async def test_a_flow_has_a_context_for_its_watchers_and_hooks() -> None:
    seen: list[Any] = []

    class Looks(Watcher):
        def tell(self, event: RuntimeEvent, context: Any) -> None:
            ctx = context()
            seen.append((event.type, ctx.run_id, ctx.deps, ctx.prompt, ctx.messages))

    begun: list[str] = []
    hook = Hook(on_run_start=lambda ctx, prompt: begun.append(prompt))
    flow = Pipeline(TransformStep(str.upper))
    await flow.run("go", features=[Looks(), hook], deps=7, loop_id="flow")
    assert begun == ["go"]
    assert {one[1:] for one in seen} == {("flow", 7, "go", ())}
    with pytest.raises(UserError, match=r"a flow takes features that watch it, .* not <CostTracker"):
        await flow.run("go", features=[CostTracker({})])


# What goes wrong


async def test_a_recorder_that_raises_harms_neither_the_run_nor_the_others() -> None:
    class Broken:
        def record(self, event: Event) -> None:
            raise RuntimeError("disk full")

        def events(self) -> tuple[Event, ...]:
            return ()

    metrics = InMemoryMetrics()
    observer = Observer(Broken(), metrics=metrics)
    with logged() as records:
        assert (await Agent(Script("hi"), features=[observer]).run("go")).output == "hi"
    assert metrics.counters() == {"infer": 1, "run": 1}
    assert records[0].getMessage() == "Broken failed when it was told run_started; the run goes on"


@pytest.mark.parametrize("name", ["log", "tracer", "metrics", "costs"])
def test_what_is_no_recorder_is_refused(name: str) -> None:
    wrong: dict[str, Any] = {name: object()}
    with pytest.raises(UserError, match=rf"Observer\({name}=…\) takes an object with the methods of"):
        Observer(**wrong)


async def test_runs_that_are_cut_off_are_not_remembered_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("flyball.observe.observer._MOST_OPEN", 3)
    tracer = InMemoryTracer()
    observer = Observer(tracer=tracer)
    begun = next(iter(await _told()))
    for n in range(9):
        ids = Correlation(trace_id="t", span_id=f"{n:016x}")
        observer.tell(replace(begun, run_id=str(n), correlation=ids), lambda: pytest.fail("not asked for"))
    assert len(observer._open) == 3  # pyright: ignore[reportPrivateUsage]
    assert len(tracer.spans()) == 9


async def _told() -> list[RuntimeEvent]:
    from flyball.orchestrate.projections.runtime_events import runtime_events

    return list(runtime_events(await (await Agent(Script("hi")).run("go")).events()))
