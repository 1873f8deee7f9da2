"""What every recorder of `observe` promises: event logs, tracers, metrics, costs. Tests for their authors.

    class TestMyLog(EventLogConformance):
        def make_log(self) -> EventLog:
            return MyLog(...)

A suite whose `keeps` is False is for one that keeps nothing: then it must take all, and give nothing back.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from typing import Any

from flyball.core.correlation import Correlation
from flyball.core.errors import ToolExecutionFailed
from flyball.core.usage import Usage
from flyball.observe.cost_recorder import CostRecorder
from flyball.observe.event_log import Event, EventLog
from flyball.observe.metrics import MetricsCollector
from flyball.observe.tracer import SpanRecord, TraceRecorder

TRACE, SPAN, PARENT = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331", "00f067aa0ba902b7"
_THREADS, _EACH = 4, 50


def _at_once(work: Any) -> None:
    """Do the same in several threads."""
    with ThreadPoolExecutor(_THREADS) as pool:
        for done in [pool.submit(work) for _ in range(_THREADS)]:
            done.result()


class EventLogConformance:
    """The promises of `EventLog`."""

    keeps = True

    def make_log(self) -> EventLog:
        """An empty log."""
        raise NotImplementedError

    def test_it_is_an_event_log(self) -> None:
        """It has the methods."""
        assert isinstance(self.make_log(), EventLog)

    def test_events_come_back_in_their_order(self) -> None:
        """As they were recorded."""
        log = self.make_log()
        events = [
            Event(float(n), "tool", "tool", {"n": n}, 0.5, "no", Correlation(request_id="r"))
            for n in range(9)
        ]
        for event in events:
            log.record(event)
        assert list(log.events()) == (events if self.keeps else [])

    def test_what_goes_in_and_what_comes_out_are_copies(self) -> None:
        """Nobody changes what is recorded."""
        log, data = self.make_log(), {"list": [1]}
        log.record(Event(1.0, "context", "context", data))
        data["list"].append(2)
        for event in log.events():
            event.data["list"].append(3)
        assert [event.data for event in log.events()] == ([{"list": [1]}] if self.keeps else [])

    def test_from_many_threads(self) -> None:
        """None is lost."""
        log = self.make_log()

        def work() -> None:
            for n in range(_EACH):
                log.record(Event(float(n), "tool", "tool"))
                log.events()

        _at_once(work)
        assert len(log.events()) == (_THREADS * _EACH if self.keeps else 0)


class TraceRecorderConformance:
    """The promises of `TraceRecorder`."""

    keeps = True

    def make_tracer(self) -> TraceRecorder:
        """A tracer that has recorded nothing."""
        raise NotImplementedError

    def recorded(self, tracer: TraceRecorder) -> list[SpanRecord]:
        """The spans that are over, in the order of their ends or beginnings."""
        raise NotImplementedError

    def test_it_is_a_trace_recorder(self) -> None:
        """It has the methods."""
        assert isinstance(self.make_tracer(), TraceRecorder)

    def test_a_span_has_its_ids_times_and_attributes(self) -> None:
        """As they were given."""
        tracer = self.make_tracer()
        ids = Correlation(trace_id=TRACE, span_id=SPAN, parent_span_id=PARENT)
        span = tracer.start_span("work", correlation=ids, at=10.0, attributes={"a": 1, "b": "x"})
        span.set_attribute("a", 2)
        span.end(12.5)
        span.set_attribute("a", 3)
        span.end(99.0)
        if not self.keeps:
            assert self.recorded(tracer) == []
            return
        (one,) = self.recorded(tracer)
        assert (one.name, one.start, one.end, one.duration) == ("work", 10.0, 12.5, 2.5)
        assert (one.trace_id, one.span_id, one.parent_span_id) == (TRACE, SPAN, PARENT)
        assert one.attributes == {"a": 2, "b": "x"}
        assert one.error == ""

    def test_blocks_are_nested(self) -> None:
        """What is begun inside of a block is under it."""
        tracer = self.make_tracer()
        with tracer.start_span("outer"), tracer.start_span("inner"):
            pass
        with tracer.start_span("apart"):
            pass
        spans = {span.name: span for span in self.recorded(tracer)}
        if not self.keeps:
            assert not spans
            return
        outer, inner, apart = spans["outer"], spans["inner"], spans["apart"]
        assert (inner.parent_span_id, inner.trace_id) == (outer.span_id, outer.trace_id)
        assert outer.parent_span_id == apart.parent_span_id == ""
        assert outer.trace_id != apart.trace_id

    def test_errors_are_recorded_by_their_type(self) -> None:
        """The taxonomy's code, or the exception's name; a block goes on raising it."""
        tracer = self.make_tracer()
        try:
            with tracer.start_span("fails"):
                raise ToolExecutionFailed("out of order")
        except ToolExecutionFailed:
            raised = True
        else:
            raised = False
        assert raised
        span = tracer.start_span("breaks")
        span.record_error(ValueError("no"))
        span.end()
        errors = {one.name: one.error for one in self.recorded(tracer)}
        wanted = {"fails": "TOOL_EXECUTION_FAILED", "breaks": "ValueError"}
        assert errors == (wanted if self.keeps else {})

    def test_from_many_threads(self) -> None:
        """None is lost, and none gets under another thread's."""
        tracer = self.make_tracer()

        def work() -> None:
            for _ in range(_EACH):
                with tracer.start_span("work"):
                    pass

        _at_once(work)
        spans = self.recorded(tracer)
        assert len(spans) == (_THREADS * _EACH if self.keeps else 0)
        assert not [span for span in spans if span.parent_span_id]


class MetricsConformance:
    """The promises of `MetricsCollector`."""

    keeps = True

    def make_metrics(self) -> MetricsCollector:
        """A collector that has counted nothing."""
        raise NotImplementedError

    def latencies(self, metrics: MetricsCollector) -> dict[str, tuple[int, float]]:
        """By layer: how many, and how long all together."""
        raise NotImplementedError

    def tokens(self, metrics: MetricsCollector) -> tuple[int, int]:
        """Input and output."""
        raise NotImplementedError

    def counters(self, metrics: MetricsCollector) -> dict[str, int]:
        """By name."""
        raise NotImplementedError

    def test_it_is_a_metrics_collector(self) -> None:
        """It has the methods."""
        assert isinstance(self.make_metrics(), MetricsCollector)

    def test_numbers_add_up(self) -> None:
        """By layer, by name, and all tokens."""
        metrics = self.make_metrics()
        metrics.record_latency("tool", 0.5)
        metrics.record_latency("tool", 1.5, {"gen_ai.tool.name": "add"})
        metrics.record_latency("inference", 2.0)
        metrics.record_tokens(Usage(10, 3))
        metrics.record_tokens(Usage(1, 1), {"gen_ai.request.model": "small"})
        metrics.increment_counter("tool")
        metrics.increment_counter("tool", 2, {"gen_ai.tool.name": "add"})
        if not self.keeps:
            assert (self.latencies(metrics), self.tokens(metrics), self.counters(metrics)) == ({}, (0, 0), {})
            return
        assert self.latencies(metrics) == {"tool": (2, 2.0), "inference": (1, 2.0)}
        assert self.tokens(metrics) == (11, 4)
        assert self.counters(metrics) == {"tool": 3}

    def test_from_many_threads(self) -> None:
        """None is lost."""
        metrics = self.make_metrics()

        def work() -> None:
            for _ in range(_EACH):
                metrics.increment_counter("tool")
                metrics.record_latency("tool", 1.0)
                metrics.record_tokens(Usage(1, 2))

        _at_once(work)
        count = _THREADS * _EACH if self.keeps else 0
        assert self.counters(metrics).get("tool", 0) == count
        assert self.tokens(metrics) == (count, 2 * count)
        assert self.latencies(metrics).get("tool", (0, 0.0)) == (count, float(count))


class CostRecorderConformance:
    """The promises of `CostRecorder`."""

    keeps = True

    def make_recorder(self) -> CostRecorder:
        """One that has recorded nothing, and for which a token of the model `dear` costs 1."""
        raise NotImplementedError

    def test_it_is_a_cost_recorder(self) -> None:
        """It has the methods, and begins with nothing."""
        recorder = self.make_recorder()
        assert isinstance(recorder, CostRecorder)
        assert recorder.total_cost == 0

    def test_costs_add_up_exactly(self) -> None:
        """From many threads, too."""
        recorder = self.make_recorder()

        def work() -> None:
            for _ in range(_EACH):
                recorder.record_usage("dear", Usage(1, 2))

        _at_once(work)
        assert recorder.total_cost == (Decimal(3 * _THREADS * _EACH) if self.keeps else 0)
