"""Recorders that speak to OpenTelemetry. They need the extra `otel`: importing this does.

The ids of the spans follow from the journal, so that loops under others, in other processes too, have their
places in one tree: the trace is the request's. A run that is begun inside of a span of your own, and that
was given no trace, is under that one.
"""

from __future__ import annotations

import time
from contextvars import ContextVar
from hashlib import sha256
from threading import Lock
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self
from weakref import WeakValueDictionary

from flyball.core.correlation import Correlation, is_hex
from flyball.core.errors import MissingExtra
from flyball.core.usage import Usage
from flyball.observe import genai
from flyball.observe.tracer import Attribute, Attributes, Entered, Failure, Span, error_type, under_current

try:
    from opentelemetry import context as otel_context
    from opentelemetry import metrics as otel_metrics
    from opentelemetry import trace as otel_trace
except ImportError as error:
    raise MissingExtra(
        "OpenTelemetry needs the package opentelemetry-api: pip install 'flyball[otel]'", extra="otel"
    ) from error

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.metrics import MeterProvider
    from opentelemetry.trace import SpanContext, Tracer, TracerProvider

SCOPE = "flyball"
_NANOSECONDS = 1_000_000_000
_TOKEN_BUCKETS = (1, 4, 16, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216, 67108864)
_SECOND_BUCKETS = (0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92)
"""The buckets that the conventions ask for."""

_wanted: ContextVar[tuple[int, int] | None] = ContextVar("flyball_otel_ids", default=None)
"""The trace and the span that are about to begin."""


class OpenTelemetryTracer:
    """A TraceRecorder whose spans are OpenTelemetry's.

    With `content`, an error's message is recorded beside its type.
    """

    def __init__(self, provider: TracerProvider | None = None, *, content: bool = False) -> None:
        self._provider = provider
        self._content = content
        self._tracer: Tracer | None = None
        self._lock = Lock()
        self._known: WeakValueDictionary[str, _OtelSpan] = WeakValueDictionary()
        """The spans that were begun here and that somebody still holds, by the ids that flyball gave them."""

    def start_span(
        self,
        name: str,
        *,
        correlation: Correlation | None = None,
        at: float | None = None,
        attributes: Attributes | None = None,
    ) -> Span:
        """See `TraceRecorder.start_span`. A span without ids is under OpenTelemetry's current one."""
        tracer = self._resolved()
        ids = under_current() if correlation is None else correlation
        above = self._above(ids)
        kind = otel_trace.SpanKind.INTERNAL
        if (attributes or {}).get(genai.OPERATION) == genai.CHAT:
            kind = otel_trace.SpanKind.CLIENT
        token = _wanted.set((_trace_number(ids.trace_id), _span_number(ids.span_id)))
        try:
            span = tracer.start_span(
                name, above, kind, attributes=dict(attributes or {}), start_time=_nanoseconds(at)
            )
        finally:
            _wanted.reset(token)
        made = _OtelSpan(span, ids, content=self._content)
        with self._lock:
            self._known[ids.span_id] = made
        return made

    def _above(self, ids: Correlation) -> Context:
        """What a span is under: one that was begun here, or elsewhere, or OpenTelemetry's current one."""
        here = otel_context.get_current()
        if not ids.parent_span_id:
            return here
        with self._lock:
            known = self._known.get(ids.parent_span_id)
        if known is not None:
            return otel_trace.set_span_in_context(known.span, here)
        return otel_trace.set_span_in_context(
            otel_trace.NonRecordingSpan(span_context(ids, parent=True)), here
        )

    def _resolved(self) -> Tracer:
        """The tracer: made when it is first needed, so that the program may set its provider until then."""
        with self._lock:
            if self._tracer is None:
                provider = self._provider or otel_trace.get_tracer_provider()
                self._tracer = tracer = provider.get_tracer(SCOPE)
                _give_ids(tracer)
            return self._tracer


class OpenTelemetryMetrics:
    """A MetricsCollector whose numbers are OpenTelemetry's.

    Latencies and tokens are the conventions' histograms `gen_ai.client.operation.duration` and
    `gen_ai.client.token.usage`; counters are called `flyball.` and their name.
    """

    def __init__(self, provider: MeterProvider | None = None) -> None:
        meter = (provider or otel_metrics.get_meter_provider()).get_meter(SCOPE)
        self._meter = meter
        self._durations = meter.create_histogram(
            "gen_ai.client.operation.duration",
            "s",
            "GenAI operation duration.",
            explicit_bucket_boundaries_advisory=_SECOND_BUCKETS,
        )
        self._tokens = meter.create_histogram(
            "gen_ai.client.token.usage",
            "{token}",
            "Number of input and output tokens used.",
            explicit_bucket_boundaries_advisory=_TOKEN_BUCKETS,
        )
        self._lock = Lock()
        self._counters: dict[str, Any] = {}

    def record_latency(self, layer: str, duration: float, attributes: Attributes | None = None) -> None:
        """See `MetricsCollector.record_latency`."""
        self._durations.record(duration, {**(attributes or {}), "flyball.layer": layer})

    def record_tokens(self, usage: Usage, attributes: Attributes | None = None) -> None:
        """See `MetricsCollector.record_tokens`."""
        of = dict(attributes or {})
        self._tokens.record(usage.input_tokens, {**of, genai.TOKEN_TYPE: "input"})
        self._tokens.record(usage.output_tokens, {**of, genai.TOKEN_TYPE: "output"})

    def increment_counter(self, name: str, delta: int = 1, attributes: Attributes | None = None) -> None:
        """See `MetricsCollector.increment_counter`."""
        with self._lock:
            counter = self._counters.get(name)
            if counter is None:
                counter = self._counters[name] = self._meter.create_up_down_counter(f"flyball.{name}")
        counter.add(delta, dict(attributes or {}))


def current_correlation(**ids: str) -> Correlation:
    """The ids of OpenTelemetry's current span, for `agent.run(..., correlation=...)`: the run is under it.

    In one process a run finds that span by itself; this is for runs that are driven elsewhere. `ids` are
    others that go with them, such as `request_id` and `session_id`.
    """
    current = otel_trace.get_current_span().get_span_context()
    if not current.is_valid:
        return Correlation(**ids)
    return Correlation(
        **ids,
        trace_id=otel_trace.format_trace_id(current.trace_id),
        span_id=otel_trace.format_span_id(current.span_id),
    )


def span_context(ids: Correlation, *, parent: bool = False) -> SpanContext:
    """The span that some ids are of, or its parent, as OpenTelemetry's: recorded, and from elsewhere."""
    return otel_trace.SpanContext(
        _trace_number(ids.trace_id),
        _span_number(ids.parent_span_id if parent else ids.span_id),
        is_remote=True,
        trace_flags=otel_trace.TraceFlags(otel_trace.TraceFlags.SAMPLED),
    )


class _OtelSpan:
    def __init__(self, span: otel_trace.Span, ids: Correlation, *, content: bool) -> None:
        self.span = span
        self._ids = ids
        self._content = content
        self._block = Entered()
        self._token: Any = None

    def end(self, at: float | None = None) -> None:
        if self.span.is_recording():
            self.span.end(_nanoseconds(at))

    def set_attribute(self, key: str, value: Attribute) -> None:
        if self.span.is_recording():
            self.span.set_attribute(key, value)

    def record_error(self, error: Failure) -> None:
        if not self.span.is_recording():
            return
        kind, words = error_type(error), None
        if self._content:
            words = getattr(error, "message", None) or str(error)
        self.span.set_attribute(genai.ERROR_TYPE, kind)
        self.span.set_status(otel_trace.Status(otel_trace.StatusCode.ERROR, words))

    def __enter__(self) -> Self:
        self._block.enter(self._ids)
        self._token = otel_context.attach(otel_trace.set_span_in_context(self.span))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        otel_context.detach(self._token)
        self._block.leave()
        if error is not None:
            self.record_error(error)
        self.end()


def _give_ids(tracer: Tracer) -> None:
    """Have the SDK's tracer give spans the ids that are wanted. Any other gives them its own."""
    inner = getattr(tracer, "id_generator", None)
    if inner is None or isinstance(inner, _Ids):
        return
    tracer.id_generator = _Ids(inner)  # pyright: ignore[reportAttributeAccessIssue] - the SDK's has it


class _Ids:
    """An id generator of the SDK's that gives what is wanted, and what another gives otherwise."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    def generate_span_id(self) -> int:
        wanted = _wanted.get()
        return self._inner.generate_span_id() if wanted is None else wanted[1]

    def generate_trace_id(self) -> int:
        wanted = _wanted.get()
        return self._inner.generate_trace_id() if wanted is None else wanted[0]

    def is_trace_id_random(self) -> bool:
        return _wanted.get() is None and self._inner.is_trace_id_random()


def _trace_number(text: str) -> int:
    """A trace id as a number; one that is not of W3C's form stands for a number of its own."""
    plain = text.replace("-", "").lower()
    if is_hex(plain, 32) and plain.strip("0"):
        return int(plain, 16)
    return int(sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32], 16)


def _span_number(text: str) -> int:
    if is_hex(text, 16) and text.strip("0"):
        return int(text, 16)
    return int(sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16], 16)


def _nanoseconds(at: float | None) -> int:
    return round((time.time() if at is None else at) * _NANOSECONDS)
