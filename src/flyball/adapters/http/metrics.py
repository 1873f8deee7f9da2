"""Numbers for Prometheus: of the requests that came, and of what their runs used."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST

from flyball.orchestrate.contracts import SystemResponse

MEDIA_TYPE = CONTENT_TYPE_LATEST
_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0)


class Metrics:
    """The numbers of one server. Their labels are few: operations, statuses, agents, models, codes."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._requests = Counter(
            "flyball_http_requests",
            "Requests that were answered.",
            ("operation", "method", "status"),
            registry=self.registry,
        )
        self._seconds = Histogram(
            "flyball_http_request_seconds",
            "How long answers took; streams are not among them.",
            ("operation",),
            buckets=_SECONDS,
            registry=self.registry,
        )
        self.under_way = Gauge(
            "flyball_http_requests_under_way", "Requests under way.", registry=self.registry
        )
        self.streams = Gauge("flyball_http_streams", "Event streams that are open.", registry=self.registry)
        self._runs = Counter(
            "flyball_runs",
            "Runs that were asked for here, and ended.",
            ("agent", "outcome"),
            registry=self.registry,
        )
        self._tokens = Counter(
            "flyball_tokens",
            "Tokens that these runs used.",
            ("agent", "model", "kind"),
            registry=self.registry,
        )
        self._tool_calls = Counter(
            "flyball_tool_calls", "Tool calls that these runs made.", ("agent",), registry=self.registry
        )

    def answered(self, operation: str, method: str, status: int, seconds: float, *, streamed: bool) -> None:
        """A request was answered."""
        self._requests.labels(operation, method, str(status)).inc()
        if not streamed:
            self._seconds.labels(operation).observe(seconds)

    def ran(self, agent: str, response: SystemResponse) -> None:
        """A run that was asked for here ended so; what was refused was none."""
        if not response.loop_id:
            return
        outcome = "complete" if response.error is None else response.error.code
        self._runs.labels(agent, outcome).inc()
        usage = response.usage
        if usage.input_tokens:
            self._tokens.labels(agent, response.model, "input").inc(usage.input_tokens)
        if usage.output_tokens:
            self._tokens.labels(agent, response.model, "output").inc(usage.output_tokens)
        if usage.tool_calls:
            self._tool_calls.labels(agent).inc(usage.tool_calls)

    def text(self) -> bytes:
        """All of them, as Prometheus reads them."""
        return generate_latest(self.registry)
