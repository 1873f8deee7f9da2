"""Where a loop stands: its phase and its stage, as functions of its state."""

from __future__ import annotations

from collections.abc import Mapping

from flyball.core.events import Outcome, Stage
from flyball.core.spec import ARCHITECT
from flyball.orchestrate.calls import awaits_approval
from flyball.orchestrate.course import OVER
from flyball.orchestrate.lifecycle.phases import Phase
from flyball.orchestrate.state import State

ENDED: Mapping[Outcome, tuple[Phase, Stage]] = {
    Outcome.SUCCESS: (Phase.COMPLETE, Stage.COMPLETE),
    Outcome.FAILED: (Phase.ERROR, Stage.FAILED),
    Outcome.CANCELLED: (Phase.CANCELLED, Stage.CANCELLED),
}
"""The phase and the stage of each outcome: the terminal ones come together."""

_STAGES: Mapping[Phase, Stage] = {
    Phase.INIT: Stage.EXPLORING,
    Phase.PLAN: Stage.PLANNING,
    Phase.PREPARE: Stage.EXPLORING,
    Phase.EXECUTE: Stage.EXECUTING,
    Phase.VALIDATE: Stage.REVIEWING,
}


def phase_of(state: State) -> Phase:
    """The phase that a loop is in."""
    at = state.at
    if at in OVER:
        return ENDED[state.outcome or Outcome.FAILED][0]
    if at == "admit":
        return Phase.INIT
    if at in ("prepare", "compact") and not state.iterations:
        return Phase.PREPARE
    if at == "approve":
        return Phase.VALIDATE  # a person checks the answer; back to EXECUTE would be a retry
    # A loop that paused before a check has not begun it.
    return Phase.VALIDATE if at in ("settle", "repair") and not state.paused else Phase.EXECUTE


def stage_of(state: State) -> Stage:
    """The stage that a loop is in: an end, a wait, where somebody moved it, or what its phase says."""
    if state.at in OVER:
        return ENDED[state.outcome or Outcome.FAILED][1]
    if state.paused:
        return Stage.PAUSED
    if awaits_approval(state):
        return Stage.AWAITING_APPROVAL
    if state.stage is not None:
        return state.stage
    stage = _STAGES[phase_of(state)]
    if stage is Stage.EXECUTING and _role(state) == ARCHITECT:
        return Stage.ARCHITECTING
    return stage


def _role(state: State) -> str:
    """The task's, that of the spec, or the agent's name."""
    told = (state.metadata or {}).get("role")
    return told if isinstance(told, str) and told else state.spec.role or state.spec.agent
