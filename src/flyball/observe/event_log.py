"""EventLog: pagantic's record of what happened, and where it is kept: in memory, or nowhere.

An `Event` says which layer did what, when it began and how long it took. Whoever does something may record
one; `Observer` records what is told of runs (see `log_events`, which also gives their timeline back).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from threading import Lock
from typing import Any, Protocol, runtime_checkable

from msgspec import Struct

from flyball.core.apart import apart
from flyball.core.correlation import Correlation
from flyball.core.errors import UserError


class Event(Struct, frozen=True, repr_omit_defaults=True):
    """Something that a layer did.

    `timestamp` is when it began, in seconds since the epoch, and `duration` how many seconds it took: what is
    recorded when it is over has both. `data` is JSON, and has nothing of what was said. `error` is empty
    where nothing went wrong. `correlation` says what it belongs to.
    """

    timestamp: float
    layer: str
    action: str
    data: dict[str, Any] = {}
    duration: float = 0.0
    error: str = ""
    correlation: Correlation = Correlation()


@runtime_checkable
class EventLog(Protocol):
    """Keeps events, in the order in which they were recorded. It may be used from many threads."""

    def record(self, event: Event) -> None:
        """Take an event."""
        ...

    def events(self) -> Sequence[Event]:
        """All that it keeps. What is done to it changes nothing in the log."""
        ...


class InMemoryEventLog:
    """An event log in memory, for tests and development. What goes in and what comes out are copies.

    With `limit`, only so many of the newest are kept.
    """

    def __init__(self, limit: int | None = None) -> None:
        if limit is not None and (type(limit) is not int or limit < 1):
            raise UserError(f"limit= takes a number of events, 1 or more, not {limit!r}")
        self._lock = Lock()
        self._events: deque[Event] = deque(maxlen=limit)

    def __len__(self) -> int:
        return len(self._events)

    def __repr__(self) -> str:
        return f"<InMemoryEventLog with {len(self)} events>"

    def record(self, event: Event) -> None:
        """See `EventLog.record`."""
        kept = apart(event)
        with self._lock:
            self._events.append(kept)

    def events(self, *, request_id: str = "", session_id: str = "") -> tuple[Event, ...]:
        """See `EventLog.events`; with an id, those of one request, or of all requests of a conversation."""
        with self._lock:
            kept = list(self._events)
        return tuple([apart(event) for event in _of(kept, request_id, session_id)])

    def clear(self) -> None:
        """Forget all of them."""
        with self._lock:
            self._events.clear()


class NoOpEventLog:
    """An event log that keeps nothing."""

    def record(self, event: Event) -> None:
        """See `EventLog.record`."""

    def events(self) -> tuple[Event, ...]:
        """See `EventLog.events`: none."""
        return ()


def _of(events: Iterable[Event], request_id: str, session_id: str) -> list[Event]:
    return [
        event
        for event in events
        if (not request_id or event.correlation.request_id == request_id)
        and (not session_id or event.correlation.session_id == session_id)
    ]
