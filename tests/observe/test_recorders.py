"""The recorders of `observe`, in memory and as no-ops, under the suites that every recorder must pass."""

from __future__ import annotations

from typing import cast

import pytest

from flyball import (
    EventLog,
    InMemoryCostTracker,
    InMemoryEventLog,
    InMemoryMetrics,
    InMemoryTracer,
    MetricsCollector,
    ModelPricing,
    NoOpCostTracker,
    NoOpEventLog,
    NoOpMetrics,
    NoOpTracer,
    TraceRecorder,
)
from flyball.core.correlation import Correlation
from flyball.core.errors import UserError
from flyball.observe.cost_recorder import CostRecorder
from flyball.observe.event_log import Event
from flyball.observe.metrics import Latency
from flyball.observe.tracer import SpanRecord
from flyball.testing.conformance import (
    CostRecorderConformance,
    EventLogConformance,
    MetricsConformance,
    TraceRecorderConformance,
)


class TestInMemoryEventLog(EventLogConformance):
    def make_log(self) -> EventLog:
        return InMemoryEventLog()


class TestNoOpEventLog(EventLogConformance):
    keeps = False

    def make_log(self) -> EventLog:
        return NoOpEventLog()


class TestInMemoryTracer(TraceRecorderConformance):
    def make_tracer(self) -> TraceRecorder:
        return InMemoryTracer()

    def recorded(self, tracer: TraceRecorder) -> list[SpanRecord]:
        return [span for span in cast("InMemoryTracer", tracer).spans() if span.end is not None]


class TestNoOpTracer(TraceRecorderConformance):
    keeps = False

    def make_tracer(self) -> TraceRecorder:
        return NoOpTracer()

    def recorded(self, tracer: TraceRecorder) -> list[SpanRecord]:
        return []


class TestInMemoryMetrics(MetricsConformance):
    def make_metrics(self) -> MetricsCollector:
        return InMemoryMetrics()

    def latencies(self, metrics: MetricsCollector) -> dict[str, tuple[int, float]]:
        kept = cast("InMemoryMetrics", metrics).latencies()
        return {layer: (one.count, one.total) for layer, one in kept.items()}

    def tokens(self, metrics: MetricsCollector) -> tuple[int, int]:
        used = cast("InMemoryMetrics", metrics).tokens()
        return used.input_tokens, used.output_tokens

    def counters(self, metrics: MetricsCollector) -> dict[str, int]:
        return cast("InMemoryMetrics", metrics).counters()


class TestNoOpMetrics(MetricsConformance):
    keeps = False

    def make_metrics(self) -> MetricsCollector:
        return NoOpMetrics()

    def latencies(self, metrics: MetricsCollector) -> dict[str, tuple[int, float]]:
        return {}

    def tokens(self, metrics: MetricsCollector) -> tuple[int, int]:
        return 0, 0

    def counters(self, metrics: MetricsCollector) -> dict[str, int]:
        return {}


class TestInMemoryCostTracker(CostRecorderConformance):
    def make_recorder(self) -> CostRecorder:
        return InMemoryCostTracker({"dear": ModelPricing(1, 1)})


class TestNoOpCostTracker(CostRecorderConformance):
    keeps = False

    def make_recorder(self) -> CostRecorder:
        return NoOpCostTracker()


# What those in memory have besides


def test_a_log_by_request_and_by_session() -> None:
    log = InMemoryEventLog()
    for request, session in (("r1", "s1"), ("r2", "s1"), ("r3", "")):
        log.record(Event(1.0, "tool", "tool", correlation=Correlation(request, session)))
    assert [event.correlation.request_id for event in log.events(session_id="s1")] == ["r1", "r2"]
    assert [event.correlation.request_id for event in log.events(request_id="r3")] == ["r3"]
    assert log.events(request_id="r1", session_id="s2") == ()
    assert (len(log), repr(log)) == (3, "<InMemoryEventLog with 3 events>")
    log.clear()
    assert log.events() == ()


def test_a_log_that_forgets_the_oldest() -> None:
    log = InMemoryEventLog(2)
    for n in range(4):
        log.record(Event(float(n), "tool", "tool"))
    assert [event.timestamp for event in log.events()] == [2.0, 3.0]
    with pytest.raises(UserError, match="limit= takes a number of events, 1 or more, not 0"):
        InMemoryEventLog(0)


def test_spans_that_are_not_over_are_there_too() -> None:
    tracer = InMemoryTracer()
    span = tracer.start_span("work", attributes={"list": ["a"]})
    (one,) = tracer.spans()
    assert (one.end, one.duration) == (None, 0.0)
    one.attributes["list"].append("b")
    assert tracer.spans()[0].attributes == {"list": ["a"]}, "what comes out is a copy"
    span.record_error("in words")
    assert (tracer.spans()[0].error, tracer.spans()[0].message) == ("_OTHER", "in words")
    assert repr(tracer) == "<InMemoryTracer with 1 spans>"
    tracer.clear()
    assert tracer.spans() == ()


def test_latencies() -> None:
    assert Latency().mean == 0
    both = Latency().with_one(2.0).with_one(1.0)
    assert (both.mean, both.shortest, both.longest) == (1.5, 1.0, 2.0)
    metrics = InMemoryMetrics()
    metrics.increment_counter("tool")
    assert repr(metrics) == "<InMemoryMetrics {'tool': 1}>"
