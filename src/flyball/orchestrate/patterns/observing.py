"""An event log on a pattern."""

from __future__ import annotations

from flyball.core.feature import Feature
from flyball.observe.event_log import EventLog


def watching(log: EventLog | None) -> list[Feature]:
    """The feature that tells a log what happens, if there is one."""
    if log is None:
        return []
    from flyball.observe.observer import Observer

    return [Observer(log=log)]
