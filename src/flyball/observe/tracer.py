"""TraceRecorder: pagantic's spans, and where they are kept: in memory, or nowhere.

A span is something that took time, with a name, attributes, and a place in a tree. `Observer` records those
of runs, whose ids follow from their journals; your own are begun around your own work:

    with tracer.start_span("load") as span:
        span.set_attribute("rows", 3)

What is begun inside of the block is under it. An error that leaves the block is recorded.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextvars import ContextVar, Token
from threading import Lock
from types import TracebackType
from typing import Any, Protocol, Self, TypeAlias, runtime_checkable

from msgspec import Struct
from msgspec.structs import replace

from flyball.core.apart import apart
from flyball.core.correlation import Correlation
from flyball.core.errors import FlyballError, SystemError  # noqa: A004 - pagantic's name for it
from flyball.core.ids import new_id

Attribute: TypeAlias = str | bool | int | float | list[str]
"""What a span may be told about itself."""
Attributes: TypeAlias = Mapping[str, Attribute]
Failure: TypeAlias = "BaseException | SystemError | str"
"""An error, as an exception, as it is recorded, or in words."""


def error_type(error: Failure) -> str:
    """What kind of error it is: the taxonomy's code, or the exception's name."""
    if isinstance(error, FlyballError | SystemError):
        return error.code
    return type(error).__name__ if isinstance(error, BaseException) else "_OTHER"


@runtime_checkable
class Span(Protocol):
    """Something that takes time. It may be ended from another thread; after its end nothing changes it."""

    def end(self, at: float | None = None) -> None:
        """It is over: now, or at this time (seconds since the epoch). Only the first end counts."""
        ...

    def set_attribute(self, key: str, value: Attribute) -> None:
        """Say something about it; said twice, the later counts."""
        ...

    def record_error(self, error: Failure) -> None:
        """Say that it failed."""
        ...

    def __enter__(self) -> Self:
        """What is begun from here on is under it."""
        ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Record the error, if there is one, and end."""
        ...


@runtime_checkable
class TraceRecorder(Protocol):
    """Takes spans. It may be used from many threads."""

    def start_span(
        self,
        name: str,
        *,
        correlation: Correlation | None = None,
        at: float | None = None,
        attributes: Attributes | None = None,
    ) -> Span:
        """Begin a span, now or at a time.

        Its ids and its parent are those of `correlation`; without one, it is under the span whose block this
        is in, or begins a trace.
        """
        ...


class SpanRecord(Struct, frozen=True, repr_omit_defaults=True):
    """A span, as it was recorded. `end` is None of one that is not over; `error` is its error's type."""

    name: str
    start: float
    trace_id: str
    span_id: str
    parent_span_id: str = ""
    end: float | None = None
    attributes: dict[str, Any] = {}
    error: str = ""
    message: str = ""
    """The error in words."""

    @property
    def duration(self) -> float:
        """How many seconds it took; 0 of one that is not over."""
        return 0.0 if self.end is None else max(0.0, self.end - self.start)


class InMemoryTracer:
    """Keeps spans in memory, for tests and development. What comes out are copies."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._spans: list[_KeptSpan] = []

    def __repr__(self) -> str:
        return f"<InMemoryTracer with {len(self._spans)} spans>"

    def start_span(
        self,
        name: str,
        *,
        correlation: Correlation | None = None,
        at: float | None = None,
        attributes: Attributes | None = None,
    ) -> Span:
        """See `TraceRecorder.start_span`."""
        ids = under_current() if correlation is None else correlation
        start = time.time() if at is None else at
        record = SpanRecord(name, start, ids.trace_id, ids.span_id, ids.parent_span_id)
        span = _KeptSpan(self._lock, replace(record, attributes=apart(dict(attributes or {}))))
        with self._lock:
            self._spans.append(span)
        return span

    def spans(self) -> tuple[SpanRecord, ...]:
        """All spans, in the order of their beginning, also those that are not over."""
        with self._lock:
            return tuple([apart(span.record) for span in self._spans])

    def clear(self) -> None:
        """Forget all of them."""
        with self._lock:
            self._spans.clear()


class NoOpTracer:
    """Takes spans, and keeps none."""

    def start_span(
        self,
        name: str,
        *,
        correlation: Correlation | None = None,
        at: float | None = None,
        attributes: Attributes | None = None,
    ) -> Span:
        """See `TraceRecorder.start_span`."""
        return _NO_SPAN


_current: ContextVar[Correlation | None] = ContextVar("flyball_span", default=None)
"""The ids of the span whose block this is in."""


def under_current() -> Correlation:
    """Ids for a new span: under the one whose block this is in, or of a trace of its own."""
    above, span_id = _current.get(), new_id()[-16:]
    if above is None:
        return Correlation(trace_id=new_id(), span_id=span_id)
    return Correlation(trace_id=above.trace_id, span_id=span_id, parent_span_id=above.span_id)


class Entered:
    """The block of a span: keeps what is begun inside of it under it. For whoever writes a span."""

    __slots__ = ("_token",)

    def __init__(self) -> None:
        self._token: Token[Correlation | None] | None = None

    def enter(self, ids: Correlation) -> None:
        """The block begins."""
        self._token = _current.set(ids)

    def leave(self) -> None:
        """The block is left."""
        if self._token is not None:
            _current.reset(self._token)
            self._token = None


class _KeptSpan:
    def __init__(self, lock: Lock, record: SpanRecord) -> None:
        self.record = record
        self._lock = lock
        self._block = Entered()

    def end(self, at: float | None = None) -> None:
        self._change(end=time.time() if at is None else at)

    def set_attribute(self, key: str, value: Attribute) -> None:
        with self._lock:
            if self.record.end is None:
                self.record.attributes[key] = apart(value)

    def record_error(self, error: Failure) -> None:
        words = error.message if isinstance(error, SystemError) else str(error)
        self._change(error=error_type(error), message=words)

    def _change(self, **fields: Any) -> None:
        with self._lock:
            if self.record.end is None:
                self.record = replace(self.record, **fields)

    def __enter__(self) -> Self:
        record = self.record
        self._block.enter(Correlation(trace_id=record.trace_id, span_id=record.span_id))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._block.leave()
        if error is not None:
            self.record_error(error)
        self.end()


class _NoSpan:
    def end(self, at: float | None = None) -> None:
        pass

    def set_attribute(self, key: str, value: Attribute) -> None:
        pass

    def record_error(self, error: Failure) -> None:
        pass

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        pass


_NO_SPAN = _NoSpan()
