"""Explaining a loop, an agent's or a flow."""

from __future__ import annotations

from collections.abc import Sequence

from flyball.core.events import Event
from flyball.orchestrate.flow_machine import fold as fold_flow
from flyball.orchestrate.lifecycle import phase_of, stage_of
from flyball.orchestrate.machine import fold
from flyball.orchestrate.machines import is_flow
from flyball.orchestrate.projections.explanation.flows import explained_flow
from flyball.orchestrate.projections.explanation.outlook import next_of, verdict_of
from flyball.orchestrate.projections.explanation.told import Explanation
from flyball.orchestrate.projections.explanation.turns import turns_of
from flyball.orchestrate.provenance import provenance_of


def explain(events: Sequence[Event]) -> Explanation:
    """Explain a loop, an agent's or a flow.

    Its `stage` is what its own journal says: `standing` knows more of one that is not over.

    Raises:
        JournalCorrupt: the events are no journal.
    """
    if is_flow(events):
        return explained_flow(events, fold_flow(events))
    state = fold(events)
    turns, before = turns_of(events)
    return Explanation(
        run=state.loop_id,
        agent=state.spec.agent,
        model=provenance_of(events, state).model,
        phase=str(phase_of(state)),
        stage=str(stage_of(state)),
        verdict=verdict_of(state, turns[-1].decided if turns else ()),
        turns=turns,
        next=next_of(state),
        error=state.error,
        before=before,
    )
