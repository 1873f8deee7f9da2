"""OpenTelemetry, with its real SDK: the spans and numbers of runs, their tree, and what does not leave."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from typing import Any, cast

import pytest
from opentelemetry import trace as otel_trace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF
from opentelemetry.semconv._incubating.attributes import (  # pyright: ignore[reportMissingTypeStubs] - it has none
    gen_ai_attributes,
)
from opentelemetry.semconv._incubating.metrics import (  # pyright: ignore[reportMissingTypeStubs] - it has none
    gen_ai_metrics,
)
from opentelemetry.trace import SpanKind, StatusCode

from flyball import (
    Agent,
    Correlation,
    LocalRuntime,
    MemoryJournal,
    MetricsCollector,
    ModelSettings,
    OpenTelemetry,
    RunContext,
    TraceRecorder,
    tool,
)
from flyball.core.errors import EngineError, FlyballError, MissingExtra
from flyball.core.messages import Message, Role, Text
from flyball.core.usage import Usage
from flyball.inference.answers import tool_call
from flyball.inference.scripted import FunctionEngine, ScriptedEngine
from flyball.observe import genai, genai_content
from flyball.observe.otel import OpenTelemetryMetrics, OpenTelemetryTracer, current_correlation
from flyball.observe.tracer import SpanRecord
from flyball.orchestrate.correlation import span_id_of, trace_id_of
from flyball.orchestrate.flow.steps import AgentStep, Pipeline
from flyball.testing import FakeClock
from flyball.testing.conformance import MetricsConformance, TraceRecorderConformance
from flyball.testing.split import ROUGH, SplitDriver
from tests.orchestrate.models import Script

SECRET = "swordfish"
TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"


class Telemetry:
    """Providers of the SDK's that keep in memory what they are given."""

    def __init__(self, **options: Any) -> None:
        self.exporter = InMemorySpanExporter()
        self.tracers = TracerProvider(**options)
        self.tracers.add_span_processor(SimpleSpanProcessor(self.exporter))
        self.reader = InMemoryMetricReader()
        self.meters = MeterProvider([self.reader])

    def feature(self, **options: Any) -> OpenTelemetry:
        return OpenTelemetry(self.tracers, self.meters, **options)

    @property
    def spans(self) -> Sequence[ReadableSpan]:
        return self.exporter.get_finished_spans()

    def named(self, name: str) -> ReadableSpan:
        (span,) = [span for span in self.spans if span.name == name]
        return span

    def points(self, name: str) -> list[Any]:
        data = cast("Any", self.reader.get_metrics_data())
        if data is None:
            return []
        metrics = [one for of in data.resource_metrics for scope in of.scope_metrics for one in scope.metrics]
        return [point for metric in metrics if metric.name == name for point in metric.data.data_points]


def ids_of(span: ReadableSpan) -> tuple[str, str, str]:
    context = cast("Any", span.context)
    parent = "" if span.parent is None else f"{span.parent.span_id:016x}"
    return f"{context.trace_id:032x}", f"{context.span_id:016x}", parent


def told(span: ReadableSpan) -> dict[str, Any]:
    return dict(span.attributes or {})


class TestOpenTelemetryTracer(TraceRecorderConformance):
    def make_tracer(self) -> TraceRecorder:
        self.telemetry = Telemetry()
        return OpenTelemetryTracer(self.telemetry.tracers)

    def recorded(self, tracer: TraceRecorder) -> list[SpanRecord]:
        records: list[SpanRecord] = []
        for span in self.telemetry.spans:
            attributes = told(span)
            error = attributes.pop("error.type", "")
            assert (span.status.status_code is StatusCode.ERROR) is bool(error)
            start, end = cast("int", span.start_time) / 1e9, cast("int", span.end_time) / 1e9
            trace, own, parent = ids_of(span)
            records.append(SpanRecord(span.name, start, trace, own, parent, end, attributes, str(error)))
        return records


class TestOpenTelemetryMetrics(MetricsConformance):
    def make_metrics(self) -> MetricsCollector:
        self.telemetry = Telemetry()
        return OpenTelemetryMetrics(self.telemetry.meters)

    def latencies(self, metrics: MetricsCollector) -> dict[str, tuple[int, float]]:
        kept: dict[str, tuple[int, float]] = {}
        for point in self.telemetry.points("gen_ai.client.operation.duration"):
            count, total = kept.get(layer := point.attributes["flyball.layer"], (0, 0.0))
            kept[layer] = count + point.count, total + point.sum
        return kept

    def tokens(self, metrics: MetricsCollector) -> tuple[int, int]:
        points = self.telemetry.points("gen_ai.client.token.usage")
        kinds = [(point.attributes["gen_ai.token.type"], point.sum) for point in points]
        both = [sum([count for kind, count in kinds if kind == wanted]) for wanted in ("input", "output")]
        return both[0], both[1]

    def counters(self, metrics: MetricsCollector) -> dict[str, int]:
        points = self.telemetry.points("flyball.tool")
        return {"tool": sum([point.value for point in points])} if points else {}


# Names


def test_the_names_are_those_of_the_conventions() -> None:
    known = {value for name, value in vars(gen_ai_attributes).items() if name.startswith("GEN_AI_")}
    told = [value for value in vars(genai).values() if isinstance(value, str) and value.startswith("gen_ai.")]
    said = [value for value in vars(genai_content).values() if str(value).startswith("gen_ai.")]
    assert told
    assert said
    assert {*told, *said} <= known
    values = gen_ai_attributes.GenAiOperationNameValues  # pyright: ignore[reportDeprecated] - moved, not changed
    operations = {one.value for one in values}
    assert {genai.CHAT, genai.EXECUTE_TOOL, genai.INVOKE_AGENT, genai.INVOKE_WORKFLOW} <= operations
    assert gen_ai_metrics.GEN_AI_CLIENT_OPERATION_DURATION == "gen_ai.client.operation.duration"
    assert gen_ai_metrics.GEN_AI_CLIENT_TOKEN_USAGE == "gen_ai.client.token.usage"


# A run


@tool
async def look(where: str) -> str:
    """Look somewhere."""
    return f"nothing but {SECRET}"


def answer(text: str, usage: Usage) -> Message:
    return Message(Role.ASSISTANT, (Text(text),), usage=usage, model="gpt-5-2025-08-07")


def agent(*features: Any, **options: Any) -> Agent[Any, str]:
    engine = Script(
        tool_call("look", {"where": SECRET}, "one"),
        answer(f"it is {SECRET}", Usage(7, 3, reasoning_tokens=1, cache_read_tokens=2)),
    )
    return Agent(
        engine, tools=[look], name="spy", instructions=f"Find {SECRET}.", features=features, **options
    )


async def test_the_spans_of_a_run() -> None:
    telemetry = Telemetry()
    settings = ModelSettings(temperature=0.5, max_tokens=9, top_p=0.9, seed=4, stop=("end",))
    clock = FakeClock(100.0)
    await agent(telemetry.feature(), settings=settings).run(
        "go", loop_id="loop", clock=clock, correlation=Correlation(session_id="talk")
    )
    assert [span.name for span in telemetry.spans] == [
        "chat test",
        "execute_tool look",
        "chat test",
        "invoke_agent spy",
    ]
    first, called, last, run = telemetry.spans
    trace, own, parent = ids_of(run)
    assert (trace, own, parent) == (trace_id_of("loop"), span_id_of("loop"), "")
    assert [ids_of(span)[2] for span in (first, called, last)] == [own] * 3
    assert [span.kind for span in telemetry.spans] == [
        SpanKind.CLIENT,
        SpanKind.INTERNAL,
        SpanKind.CLIENT,
        SpanKind.INTERNAL,
    ]
    assert told(last) == {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "test",
        "gen_ai.request.model": "test",
        "gen_ai.response.model": "gpt-5-2025-08-07",
        "gen_ai.agent.name": "spy",
        "gen_ai.conversation.id": "talk",
        "gen_ai.request.temperature": 0.5,
        "gen_ai.request.max_tokens": 9,
        "gen_ai.request.top_p": 0.9,
        "gen_ai.request.seed": 4,
        "gen_ai.request.stop_sequences": ("end",),
        "gen_ai.response.finish_reasons": ("stop",),
        "gen_ai.usage.input_tokens": 7,
        "gen_ai.usage.output_tokens": 3,
        "gen_ai.usage.reasoning.output_tokens": 1,
        "gen_ai.usage.cache_read.input_tokens": 2,
        "flyball.purpose": "turn",
    }
    assert told(called) == {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "look",
        "gen_ai.tool.call.id": "one",
        "gen_ai.tool.type": "function",
        "gen_ai.agent.name": "spy",
    }
    assert told(run)["gen_ai.agent.name"] == "spy"
    assert told(run)["gen_ai.conversation.id"] == "talk"
    assert told(run)["gen_ai.usage.input_tokens"] == 7


async def test_the_numbers_of_a_run() -> None:
    telemetry = Telemetry()
    await agent(telemetry.feature()).run("go")
    durations = telemetry.points("gen_ai.client.operation.duration")
    counts = {point.attributes["gen_ai.operation.name"]: 0 for point in durations}
    for point in durations:
        counts[point.attributes["gen_ai.operation.name"]] += point.count
    assert counts == {"chat": 2, "execute_tool": 1, "invoke_agent": 1}
    tokens = telemetry.points("gen_ai.client.token.usage")
    assert {(point.attributes["gen_ai.token.type"], point.sum) for point in tokens} == {
        ("input", 7),
        ("output", 3),
    }
    assert tokens[0].explicit_bounds[:3] == (1, 4, 16)
    assert tokens[0].attributes["gen_ai.response.model"] == "gpt-5-2025-08-07"
    assert sum([point.value for point in telemetry.points("flyball.infer")]) == 2


async def test_what_fails_has_its_code() -> None:
    telemetry = Telemetry()

    @tool
    async def breaks() -> str:
        raise RuntimeError(SECRET)

    engine = ScriptedEngine(tool_call("breaks"), EngineError(f"no {SECRET}"))
    with pytest.raises(FlyballError, match=SECRET):
        await Agent(engine, tools=[breaks], features=[telemetry.feature()]).run("go")
    failed = {span.name: told(span).get("error.type") for span in telemetry.spans}
    assert failed == {
        "chat test": "INFERENCE_ENGINE_ERROR",
        "execute_tool breaks": "TOOL_EXECUTION_FAILED",
        "invoke_agent agent": "INFERENCE_ENGINE_ERROR",
    }
    assert SECRET not in str([span.to_json() for span in telemetry.spans])
    errors = [point.attributes["error.type"] for point in telemetry.points("flyball.infer_error")]
    assert errors == ["INFERENCE_ENGINE_ERROR"]
    loud = Telemetry()
    with pytest.raises(FlyballError, match=SECRET):
        await Agent(ScriptedEngine(EngineError(SECRET)), features=[loud.feature(content=True)]).run("go")
    assert loud.named("chat test").status.description == SECRET


async def test_what_was_said_leaves_only_when_asked_for() -> None:
    quiet, loud = Telemetry(), Telemetry()
    await agent(quiet.feature(), loud.feature(content=True)).run(f"Where is {SECRET}?")
    assert SECRET not in str([span.to_json() for span in quiet.spans])
    assert SECRET not in str(quiet.reader.get_metrics_data())
    first, called, last, run = [told(span) for span in loud.spans]
    assert first["gen_ai.system_instructions"] == f'[{{"type":"text","content":"Find {SECRET}."}}]'
    assert first["gen_ai.input.messages"] == (
        f'[{{"role":"user","parts":[{{"type":"text","content":"Where is {SECRET}?"}}]}}]'
    )
    assert first["gen_ai.output.messages"] == (
        f'[{{"role":"assistant","parts":[{{"type":"tool_call","id":"one","name":"look",'
        f'"arguments":{{"where":"{SECRET}"}}}}],"finish_reason":"tool_call"}}]'
    )
    assert called["gen_ai.tool.call.arguments"] == f'{{"where":"{SECRET}"}}'
    assert called["gen_ai.tool.call.result"] == f"nothing but {SECRET}"
    assert '"role":"tool","parts":[{"type":"tool_call_response","id":"one"' in last["gen_ai.input.messages"]
    assert not [name for name in run if "messages" in name]
    assert SECRET not in str(loud.reader.get_metrics_data())


# The tree


def family(feature: OpenTelemetry) -> Agent[Any, str]:
    """An agent whose tool has another one do it, whose tool has a third one do it."""

    def asks(other: Agent[Any, str]) -> Any:
        @tool
        async def ask(ctx: RunContext[Any], what: str) -> str:
            """Have another agent do it."""
            return (await other.run(what, parent=ctx)).output

        return ask

    async def says(request: Any) -> Any:
        done = request.messages[-1].role is not Role.USER or bool(request.messages[-1].tool_results)
        return "done" if done else tool_call("ask", {"what": "it"}, "call")

    last = Agent(FunctionEngine(lambda _: _said("bottom")), name="last", features=[feature])
    middle = Agent(FunctionEngine(says), tools=[asks(last)], name="middle", features=[feature])
    return Agent(FunctionEngine(says), tools=[asks(middle)], name="top", features=[feature])


async def _said(text: str) -> str:
    return text


def check_family(telemetry: Telemetry, trace: str, above: str) -> None:
    by_id = {ids_of(span)[1]: span for span in telemetry.spans}
    assert {ids_of(span)[0] for span in telemetry.spans} == {trace}
    runs = {name: telemetry.named(f"invoke_agent {name}") for name in ("top", "middle", "last")}
    assert ids_of(runs["top"])[2] == above
    for under, over in (("middle", "top"), ("last", "middle")):
        call = by_id[ids_of(runs[under])[2]]
        assert call.name == "execute_tool ask"
        assert by_id[ids_of(call)[2]] is runs[over]
    assert {told(span).get("flyball.request_id") for span in runs.values()} == {"request"}


async def test_loops_under_others_are_under_their_calls() -> None:
    telemetry = Telemetry()
    ids = Correlation.from_traceparent(f"00-{TRACE}-{SPAN}-01", request_id="request")
    await family(telemetry.feature()).run("go", correlation=ids)
    check_family(telemetry, TRACE, SPAN)


async def test_a_run_inside_of_a_span_is_under_it() -> None:
    telemetry = Telemetry()
    tracer = telemetry.tracers.get_tracer("mine")
    with tracer.start_as_current_span("mine") as mine:
        await family(telemetry.feature()).run("go", correlation=Correlation(request_id="request"))
    context = mine.get_span_context()
    assert ids_of(telemetry.named("mine"))[2] == ""
    spans = [span for span in telemetry.spans if span.name != "mine"]
    telemetry.exporter.clear()
    telemetry.exporter.export(spans)
    check_family(telemetry, f"{context.trace_id:032x}", f"{context.span_id:016x}")


@pytest.mark.parametrize("seed", range(3))
async def test_in_parts_that_share_nothing_the_tree_is_the_same(seed: int) -> None:
    telemetry = Telemetry()
    with telemetry.tracers.get_tracer("mine").start_as_current_span("mine") as mine:
        ids = current_correlation(request_id="request")
    context = mine.get_span_context()
    assert ids == Correlation(
        "request", trace_id=f"{context.trace_id:032x}", span_id=f"{context.span_id:016x}"
    )
    telemetry.exporter.clear()
    await family(telemetry.feature()).run("go", correlation=ids, runtime=SplitDriver(seed, ROUGH))
    seen = {ids_of(span)[1]: span for span in telemetry.spans}
    telemetry.exporter.clear()
    telemetry.exporter.export(list(seen.values()))  # what was done twice there was told twice
    check_family(telemetry, ids.trace_id, ids.span_id)


async def test_without_a_current_span_there_are_no_ids() -> None:
    assert current_correlation(request_id="r") == Correlation("r")


async def test_another_observer_goes_on_with_the_tree() -> None:
    """The run of a process that died is finished by another, whose spans fit."""
    first, second, journal = Telemetry(), Telemetry(), MemoryJournal()

    def made(telemetry: Telemetry, *tools: Any) -> Agent[Any, str]:
        return Agent(
            Script(tool_call("look", {"where": "here"}), "done"),
            tools=tools,
            features=[telemetry.feature()],
        )

    started, hangs = asyncio.Event(), asyncio.Event()

    @tool(name="look")
    async def hanging(where: str) -> str:
        """Look somewhere."""
        started.set()
        await hangs.wait()
        return where

    running = asyncio.ensure_future(made(first, hanging).run("go", journal=journal, loop_id="loop"))
    await started.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    hangs.set()
    assert [span.name for span in first.spans] == ["chat test"], "what has no end is not exported"
    await made(second, hanging).resume("loop", journal)
    assert [span.name for span in second.spans] == ["execute_tool look", "chat test", "invoke_agent agent"]
    assert {ids_of(span)[0] for span in (*first.spans, *second.spans)} == {trace_id_of("loop")}
    assert ids_of(second.named("invoke_agent agent"))[1] == ids_of(first.spans[0])[2]


async def test_many_runs_at_once_do_not_mix() -> None:
    telemetry = Telemetry()
    made = agent(telemetry.feature())
    async with LocalRuntime() as runtime:
        await asyncio.gather(
            *[made.run("go", loop_id=f"run {n}") for n in range(8)],
            *[made.run("go", loop_id=f"held {n}", runtime=runtime) for n in range(8)],
        )
    runs = [span for span in telemetry.spans if span.name == "invoke_agent spy"]
    assert len(runs) == 16
    for run in runs:
        trace, own, _ = ids_of(run)
        under = [span for span in telemetry.spans if ids_of(span)[2] == own]
        assert {ids_of(span)[0] for span in under} == {trace}
        assert trace == trace_id_of(str(told(run)["flyball.run_id"]))
        assert sorted(span.name for span in under) == ["chat test", "chat test", "execute_tool look"]


async def test_a_flow_and_its_steps() -> None:
    telemetry = Telemetry()
    feature = telemetry.feature()
    flow = Pipeline(AgentStep(Agent(ScriptedEngine("one"), name="first", features=[feature])), name="chain")
    await flow.run("go", features=[feature], loop_id="flow")
    names = [span.name for span in telemetry.spans]
    assert names == ["chat test", "invoke_agent first", "step first", "invoke_workflow chain"]
    chat, run, step, whole = [ids_of(span) for span in telemetry.spans]
    assert (chat[2], run[2], step[2], whole[2]) == (run[1], step[1], whole[1], "")
    assert told(telemetry.spans[3])["gen_ai.workflow.name"] == "chain"


# Its own ways


async def test_what_is_not_sampled_is_not_exported() -> None:
    telemetry = Telemetry(sampler=ALWAYS_OFF)
    assert (await agent(telemetry.feature()).run("go")).output
    assert telemetry.spans == ()


async def test_without_a_provider_nothing_happens() -> None:
    assert (await agent(OpenTelemetry()).run("go")).output, "the API alone has no-ops"


def test_other_spans_of_the_same_scope_have_ids_of_their_own() -> None:
    telemetry = Telemetry()
    mine = OpenTelemetryTracer(telemetry.tracers)
    mine.start_span("one", correlation=Correlation(trace_id="odd", span_id="odd")).end()
    OpenTelemetryTracer(telemetry.tracers).start_span("two").end()
    telemetry.tracers.get_tracer("flyball").start_span("three").end()
    one, two, three = [ids_of(span) for span in telemetry.spans]
    assert len({one[0], two[0], three[0]}) == 3
    mine.start_span("four", correlation=Correlation(trace_id="odd", span_id="even")).end()
    assert ids_of(telemetry.spans[3])[0] == one[0], "an id that is not W3C's stands for one that is"
    dashed = "4bf92f35-77b3-4da6-a3ce-929d0e0e4736"
    mine.start_span("five", correlation=Correlation(trace_id=dashed, span_id=SPAN)).end()
    assert ids_of(telemetry.spans[4])[:2] == (TRACE, SPAN)


def test_blocks_are_opentelemetrys_current_span() -> None:
    telemetry = Telemetry()
    tracer = OpenTelemetryTracer(telemetry.tracers)
    with tracer.start_span("outer"), telemetry.tracers.get_tracer("mine").start_as_current_span("inner"):
        assert otel_trace.get_current_span().is_recording()
    assert ids_of(telemetry.named("inner"))[2] == ids_of(telemetry.named("outer"))[1]


def test_without_the_extra_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "flyball.observe.otel")
    monkeypatch.setitem(sys.modules, "opentelemetry", None)
    with pytest.raises(MissingExtra, match=r"pip install 'flyball\[otel\]'"):
        OpenTelemetry()
