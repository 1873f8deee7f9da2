"""MetricsCollector: pagantic's numbers about many runs, and where they are kept: in memory, or nowhere."""

from __future__ import annotations

from threading import Lock
from typing import Protocol, runtime_checkable

from msgspec import Struct

from flyball.core.apart import apart
from flyball.core.usage import RunUsage, Usage
from flyball.observe.tracer import Attributes


@runtime_checkable
class MetricsCollector(Protocol):
    """Takes numbers. It may be used from many threads. `attributes` say what a number is of."""

    def record_latency(self, layer: str, duration: float, attributes: Attributes | None = None) -> None:
        """How many seconds something took in a layer."""
        ...

    def record_tokens(self, usage: Usage, attributes: Attributes | None = None) -> None:
        """What a model call used."""
        ...

    def increment_counter(self, name: str, delta: int = 1, attributes: Attributes | None = None) -> None:
        """Count something."""
        ...


class Latency(Struct, frozen=True):
    """How long things took, in seconds: how many there were, all together, the shortest and the longest."""

    count: int = 0
    total: float = 0.0
    shortest: float = 0.0
    longest: float = 0.0

    @property
    def mean(self) -> float:
        """How long one took; 0 where there were none."""
        return self.total / self.count if self.count else 0.0

    def with_one(self, duration: float) -> Latency:
        """After one more."""
        shortest = min(self.shortest, duration) if self.count else duration
        return Latency(self.count + 1, self.total + duration, shortest, max(self.longest, duration))


class InMemoryMetrics:
    """Keeps numbers in memory, for tests and development: added up, so that they take no more with time."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._latencies: dict[str, Latency] = {}
        self._tokens = RunUsage()
        self._counters: dict[str, int] = {}

    def __repr__(self) -> str:
        return f"<InMemoryMetrics {self.counters()}>"

    def record_latency(self, layer: str, duration: float, attributes: Attributes | None = None) -> None:
        """See `MetricsCollector.record_latency`."""
        with self._lock:
            self._latencies[layer] = self._latencies.get(layer, Latency()).with_one(duration)

    def record_tokens(self, usage: Usage, attributes: Attributes | None = None) -> None:
        """See `MetricsCollector.record_tokens`."""
        with self._lock:
            self._tokens = self._tokens.add_request(usage)

    def increment_counter(self, name: str, delta: int = 1, attributes: Attributes | None = None) -> None:
        """See `MetricsCollector.increment_counter`."""
        with self._lock:
            self._counters[name] = self._counters.get(name, 0) + delta

    def latencies(self) -> dict[str, Latency]:
        """How long things took, by layer."""
        with self._lock:
            return dict(self._latencies)

    def tokens(self) -> RunUsage:
        """What all model calls used; `requests` is how many said so."""
        with self._lock:
            return apart(self._tokens)

    def counters(self) -> dict[str, int]:
        """What was counted, by name."""
        with self._lock:
            return dict(self._counters)


class NoOpMetrics:
    """Takes numbers, and keeps none."""

    def record_latency(self, layer: str, duration: float, attributes: Attributes | None = None) -> None:
        """See `MetricsCollector.record_latency`."""

    def record_tokens(self, usage: Usage, attributes: Attributes | None = None) -> None:
        """See `MetricsCollector.record_tokens`."""

    def increment_counter(self, name: str, delta: int = 1, attributes: Attributes | None = None) -> None:
        """See `MetricsCollector.increment_counter`."""
