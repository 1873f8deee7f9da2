"""What is told of a flow to those who watch it: runtime events, from its journal. See `runtime_events`.

A step is told to begin when what is recorded first owes it, and again when a driver finds it owed that takes
the flow over. One that nobody waits for any more has no end.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from flyball.core.correlation import Correlation
from flyball.core.effects import RunStep
from flyball.core.encodable import as_text
from flyball.core.errors import JournalCorrupt
from flyball.core.events import Ended, Event, FlowStarted, Outcome, Reopened, Resumed, StepEnded
from flyball.core.flow import node_at
from flyball.observe.events import (
    PhaseChangedEvent,
    RunCompletedEvent,
    RunStartedEvent,
    RuntimeEvent,
    StepEndedEvent,
    StepStartedEvent,
)
from flyball.orchestrate.correlation import effect_correlation, loop_correlation
from flyball.orchestrate.flow_machine import owed, start, step_effect, take
from flyball.orchestrate.flow_state import FlowState
from flyball.orchestrate.lifecycle.flows import FlowCourse


class FlowNarrator:
    """Tells of a flow, event by event, from where a state has it; without one, from its beginning."""

    def __init__(self) -> None:
        self.state: FlowState | None = None
        """What it has come to; nobody else changes it."""
        self._course = FlowCourse()
        self._begun: set[str] = set()
        """The steps that were told to begin, since a driver last took over."""
        self._ids = Correlation()

    @classmethod
    def after(cls, events: Sequence[Event], place: str = "journal") -> FlowNarrator:
        """One who goes on telling where a journal stands; of what is in it he tells nothing.

        Raises:
            JournalCorrupt: the events are no journal of a flow.
        """
        narrator = cls()
        for event in events:
            narrator.pass_by(event)
        return narrator

    def pass_by(self, event: Event) -> None:
        """Fold one more event, and tell nothing.

        Raises:
            JournalCorrupt: it does not fit.
        """
        self.told(event)

    def passed_by(self) -> FlowNarrator:
        """One who goes on from here, after events that were folded and not told."""
        return self

    def told(self, event: Event) -> list[RuntimeEvent]:
        """Fold one more event; what is told of it, in the order in which it happened.

        Raises:
            JournalCorrupt: it does not fit.
        """
        state = self._folded(event)
        of: dict[str, Any] = {
            "run_id": state.loop_id,
            "parent_run_id": state.parent_loop_id,
            "agent": state.flow.name,
            "correlation": self._ids,
        }
        told: list[RuntimeEvent] = []
        if isinstance(event, FlowStarted | Reopened):
            told.append(RunStartedEvent(**of, prompt=as_text(state.input), started_at=event.at, kind="flow"))
        elif isinstance(event, StepEnded):
            told.append(self._ended(event, state, of))
        elif isinstance(event, Resumed):
            self._begun.clear()
        told += self._moves(event, state, of)
        told += self._begins(event.at, state, of)
        if isinstance(event, Ended):
            told.append(_completed(event, state, of))
        return told

    def _folded(self, event: Event) -> FlowState:
        state, kind = self.state, type(event)
        if state is None:
            if not isinstance(event, FlowStarted):
                raise JournalCorrupt(f"journal: begins with {kind.__name__}, not with FlowStarted")
            state = self.state = start(event)
            self._ids = loop_correlation(state)
        elif not take(state, event):
            raise JournalCorrupt(
                f"flow {state.loop_id!r}: {kind.__name__} does not fit at {state.at!r}", loop_id=state.loop_id
            )
        return state

    def _moves(self, event: Event, state: FlowState, of: dict[str, Any]) -> Iterator[RuntimeEvent]:
        """From phase to phase."""
        for move in self._course.moves(event, state):
            yield PhaseChangedEvent(
                **of,
                at=move.at,
                from_state=move.from_,
                to_state=move.to,
                attempt=move.attempt,
                reason=move.reason,
            )

    def _begins(self, at: float, state: FlowState, of: dict[str, Any]) -> Iterator[RuntimeEvent]:
        """The steps that are owed now and were not before."""
        if state.at != "run":
            return
        for effect in owed(state):
            if not isinstance(effect, RunStep) or effect.id in self._begun:
                continue
            self._begun.add(effect.id)
            node = node_at(state.flow, effect.path)
            yield StepStartedEvent(
                **self._of_step(effect.id, node.name, of),
                at=at,
                path=effect.path,
                name=node.name,
                kind=node.kind,
                attempt=effect.attempt,
            )

    def _ended(self, event: StepEnded, state: FlowState, of: dict[str, Any]) -> StepEndedEvent:
        node = node_at(state.flow, event.path)
        effect_id = step_effect(state, event.path, event.attempt)
        return StepEndedEvent(
            **self._of_step(effect_id, node.name, of),
            at=event.at,
            path=event.path,
            name=node.name,
            kind=node.kind,
            attempt=event.attempt,
            error="" if event.error is None else event.error.message,
            failure=event.error,
            duration=event.duration,
            loop_id=event.loop_id,
            usage=event.usage,
        )

    def _of_step(self, effect_id: str, name: str, of: dict[str, Any]) -> dict[str, Any]:
        ids = effect_correlation(self._ids, effect_id, step_name=name, caused_by=name)
        return {**of, "correlation": ids}


def _completed(event: Ended, state: FlowState, of: dict[str, Any]) -> RunCompletedEvent:
    return RunCompletedEvent(
        **of,
        success=event.outcome is Outcome.SUCCESS,
        error="" if event.error is None else event.error.message,
        started_at=state.started_at,
        completed_at=event.at,
        failure=event.error,
        usage=state.usage,
        kind="flow",
    )
