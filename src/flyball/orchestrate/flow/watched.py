"""Flows that are watched: their driver tells what is recorded, as soon as it is. See `watching`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from flyball.core.context import RunContext, RunFacts
from flyball.core.encodable import as_text
from flyball.core.events import Event, FlowStarted
from flyball.observe.events import RuntimeEvent
from flyball.orchestrate.children import Parent
from flyball.orchestrate.features import Stages
from flyball.orchestrate.flow.driver import FlowDrive, Place
from flyball.orchestrate.flow.parts import Part
from flyball.orchestrate.flow.values import Values
from flyball.orchestrate.flow_state import FlowState
from flyball.orchestrate.journal import Journal
from flyball.orchestrate.projections.flow_events import FlowNarrator
from flyball.orchestrate.watched import WatchedLedger
from flyball.orchestrate.watching import Watch


class FlowWatch(Watch):
    """The watch over a flow."""

    def __init__(self, stages: Stages, journal: Journal, loop_id: str, deps: Any) -> None:
        super().__init__(stages, journal, loop_id)
        self._deps = deps

    def _after(self, before: Sequence[Event]) -> FlowNarrator:
        return FlowNarrator.after(before)

    def context(self, event: RuntimeEvent) -> RunContext[Any]:
        """See `Watch.context`."""
        assert self._narrator is not None
        state = self._narrator.state
        assert isinstance(state, FlowState)
        facts = RunFacts(
            state.loop_id,
            0,
            state.attempt,
            state.started_at,
            as_text(state.input),
            state.usage,
            parent_loop_id=state.parent_loop_id,
            metadata=state.metadata,
            correlation=state.correlation,
            history=(),
            depth=state.depth,
            max_depth=state.max_depth,
            at=event.occurred_at,
            deadline=state.deadline,
        )
        context = RunContext(self._deps, facts)
        if self._stages.bus is not None:
            context.event_bus = self._stages.bus
        return context


class WatchedFlowDrive(WatchedLedger, FlowDrive):
    """A flow's drive that tells all that is recorded of it, by itself or by others."""

    def __init__(self, root: Part, flow_input: Values, place: Place, state: FlowState, length: int) -> None:
        super().__init__(root, flow_input, place, state, length)
        self.watch = FlowWatch(place.stages, place.journal, state.loop_id, place.deps)

    @classmethod
    async def begin(
        cls,
        root: Part,
        flow_input: Values,
        place: Place,
        started: FlowStarted,
        parent: Parent | None = None,
    ) -> FlowDrive:
        """See `FlowDrive.begin`."""
        drive = await super().begin(root, flow_input, place, started, parent)
        if isinstance(drive, WatchedFlowDrive) and drive.state.epoch == 0 and drive.state.at != "done":
            # Nobody has taken it over: it was begun just now.
            first = await place.journal.read(started.loop_id)
            drive.watch.heard(0, first[: drive.length])
            await drive.watch.tell()
        return drive

    def recorded(self, first: int, events: list[Event]) -> None:
        """See `Ledger.recorded`."""
        super().recorded(first, events)
        self.watch.heard(first, events)
