"""Observer: the watcher that feeds an event log, spans, metrics and costs with what happens in runs."""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Callable, Sequence
from threading import Lock
from typing import Any

from flyball.core.errors import UserError
from flyball.core.usage import CallUsage
from flyball.observe.cost import CostTracker
from flyball.observe.cost_recorder import CostRecorder, NoOpCostTracker
from flyball.observe.counting import count
from flyball.observe.event_log import Event, EventLog, InMemoryEventLog, NoOpEventLog
from flyball.observe.events import ModelRespondedEvent, RuntimeEvent
from flyball.observe.log_events import log_event
from flyball.observe.metrics import MetricsCollector, NoOpMetrics
from flyball.observe.spans import Begun, Over, begun, over
from flyball.observe.tracer import NoOpTracer, Span, TraceRecorder
from flyball.observe.watcher import Contexts, Watcher

_log = logging.getLogger("flyball.observe")

_MOST_OPEN = 10_000
"""How many spans may be open: a run that is cut off tells no end, and must not be remembered for ever."""


class Observer(Watcher):
    """Records what happens in runs: `Agent(features=[Observer(...)])`, and `flow.run(..., features=[...])`.

    - `log` gets an event for all that is told; without one, they are kept in memory: `observer.events()`.
    - `tracer` gets a span for each run, model call, tool call and step of a flow, with the ids that follow
      from the journal: those of loops under others, of other processes too, fit together.
    - `metrics` gets latencies by layer, tokens, and counts. `costs` gets what each model call used; a
      CostTracker that stands on the agent itself hears of the calls anyway, and would count them twice here.
    - `content`: whether spans have what was said, to and by models and tools. They do not, unless asked to.

    It may stand on many agents and flows, and be told from many tasks and threads. A recorder that raises is
    logged, and neither the run nor the other recorders notice.
    """

    name = "observer"

    def __init__(
        self,
        log: EventLog | None = None,
        tracer: TraceRecorder | None = None,
        metrics: MetricsCollector | None = None,
        costs: CostRecorder | None = None,
        *,
        content: bool = False,
    ) -> None:
        """Make one; what is not given is a no-op, but for the log.

        Raises:
            UserError: something is given that is no recorder of its kind.
        """
        self.log: EventLog = _checked("log", log, EventLog, InMemoryEventLog)
        self.tracer: TraceRecorder = _checked("tracer", tracer, TraceRecorder, NoOpTracer)
        self.metrics: MetricsCollector = _checked("metrics", metrics, MetricsCollector, NoOpMetrics)
        self.costs: CostRecorder = _checked("costs", costs, CostRecorder, NoOpCostTracker)
        self.content = content
        self._lock = Lock()
        self._open: OrderedDict[str, Span] = OrderedDict()
        """The spans that are not over, by their ids."""
        self._recorders: list[tuple[object, Callable[[RuntimeEvent], None]]] = []
        if type(self.log) is not NoOpEventLog:
            self._recorders.append((self.log, self._record))
        if type(self.tracer) is not NoOpTracer:
            self._recorders.append((self.tracer, self._trace))
        if type(self.metrics) is not NoOpMetrics:
            self._recorders.append((self.metrics, self._count))
        if type(self.costs) is not NoOpCostTracker:
            self._recorders.append((self.costs, self._price))

    def __repr__(self) -> str:
        return f"<Observer {', '.join([type(recorder).__name__ for recorder, _ in self._recorders])}>"

    def events(self) -> Sequence[Event]:
        """What the log keeps: every action, in order."""
        return self.log.events()

    def tell(self, event: RuntimeEvent, context: Contexts) -> None:
        """See `Watcher.tell`."""
        for recorder, record in self._recorders:
            try:
                record(event)
            except Exception:
                _log.exception(
                    "%s failed when it was told %s; the run goes on", type(recorder).__name__, event.type
                )

    def _record(self, event: RuntimeEvent) -> None:
        self.log.record(log_event(event))

    def _count(self, event: RuntimeEvent) -> None:
        count(event, self.metrics)

    def _price(self, event: RuntimeEvent) -> None:
        if not isinstance(event, ModelRespondedEvent) or event.response is None:
            return
        answered, usage = event.response.model, event.response.usage
        if isinstance(self.costs, CostTracker):
            self.costs.note(CallUsage(event.at, answered, usage, event.asked, event.provider))
        else:
            self.costs.record_usage(event.model, usage, provider=event.provider, at=event.at)

    def _trace(self, event: RuntimeEvent) -> None:
        first = begun(event, content=self.content)
        if first is not None:
            self._keep(event.correlation.span_id, self._started(event, first))
        elif (last := over(event, content=self.content)) is not None:
            self._end(event, last)

    def _started(self, event: RuntimeEvent, first: Begun) -> Span:
        name, at, attributes = first
        return self.tracer.start_span(name, correlation=event.correlation, at=at, attributes=attributes)

    def _end(self, event: RuntimeEvent, last: Over) -> None:
        with self._lock:
            span = self._open.pop(event.correlation.span_id, None)
        if span is None:  # it was begun before this observer watched, or in another process
            span = self._started(event, last.begun)
        for key, value in last.attributes.items():
            span.set_attribute(key, value)
        if last.failure is not None:
            span.record_error(last.failure)
        span.end(last.at)

    def _keep(self, span_id: str, span: Span) -> None:
        with self._lock:
            self._open[span_id] = span
            self._open.move_to_end(span_id)
            if len(self._open) > _MOST_OPEN:
                self._open.popitem(last=False)


def _checked(name: str, given: Any, kind: Any, default: Callable[[], Any]) -> Any:
    if given is None:
        return default()
    if not isinstance(given, kind):
        raise UserError(
            f"Observer({name}=…) takes an object with the methods of {kind.__name__}, not {given!r}"
        )
    return given
