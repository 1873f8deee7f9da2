"""The trace of a loop, for agents that trace: from its journal, whoever has driven it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from flyball.core.events import Event
from flyball.orchestrate.features import Stages
from flyball.orchestrate.journal import Journal

if TYPE_CHECKING:
    from flyball.observe.trace import RunTrace


def trace_from(events: Sequence[Event], stages: Stages) -> RunTrace | None:
    """The trace of a journal; None if the agent does not trace."""
    if not stages.tracings:
        return None
    from flyball.orchestrate.projections.runtime_events import run_trace

    return run_trace(events)


async def trace_recorded(journal: Journal, loop_id: str, stages: Stages) -> RunTrace | None:
    """The trace of a recorded loop; None if the agent does not trace. The journal is read only if it does."""
    return trace_from(await journal.read(loop_id), stages) if stages.tracings else None
