"""The timeline of a journal, and the log of it: what an event log of the run holds, from the journal alone.

Both are views of what is told of the loop (`runtime_events`): whoever watched the whole run has the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from flyball.core.events import Event
from flyball.observe.event_log import Event as LogEvent
from flyball.observe.log_events import log_event
from flyball.observe.timeline import TimelineEvent, timeline_event
from flyball.orchestrate.projections.runtime_events import runtime_events


def timeline(events: Iterable[Event]) -> list[TimelineEvent]:
    """The timeline of a journal, an agent's or a flow's.

    Raises:
        JournalCorrupt: the events are no journal.
    """
    told = [timeline_event(event) for event in runtime_events(events)]
    return [event for event in told if event is not None]


def event_log(events: Iterable[Event]) -> Iterator[LogEvent]:
    """What an event log of the run holds.

    Raises:
        JournalCorrupt: the events are no journal.
    """
    return (log_event(event) for event in runtime_events(events))
