"""OpenTelemetry: the spans and the numbers of an agent's runs, after its conventions for generative AI."""

from __future__ import annotations

from typing import TYPE_CHECKING

from flyball.observe.event_log import EventLog, NoOpEventLog
from flyball.observe.observer import Observer

if TYPE_CHECKING:
    from opentelemetry.metrics import MeterProvider
    from opentelemetry.trace import TracerProvider


class OpenTelemetry(Observer):
    """Spans and metrics of runs, to OpenTelemetry's global providers, or to given ones.

    On an agent, `Agent(features=[OpenTelemetry()])`, and on a flow. `content` adds what was said to and by
    models and tools; without it, no prompt, answer, argument, result or error message leaves the process.
    `log` may be an event log besides.

    Raises:
        MissingExtra: opentelemetry-api is not installed.
    """

    name = "opentelemetry"

    def __init__(
        self,
        tracer_provider: TracerProvider | None = None,
        meter_provider: MeterProvider | None = None,
        *,
        content: bool = False,
        log: EventLog | None = None,
    ) -> None:
        from flyball.observe.otel import OpenTelemetryMetrics, OpenTelemetryTracer

        super().__init__(
            log or NoOpEventLog(),
            OpenTelemetryTracer(tracer_provider, content=content),
            OpenTelemetryMetrics(meter_provider),
            content=content,
        )
