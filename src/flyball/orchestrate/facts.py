"""What a user's function is told about the run, worked out from the state."""

from __future__ import annotations

from flyball.core.context import RunFacts
from flyball.core.effects import Execute
from flyball.orchestrate.state import State


def run_facts(state: State, at: float = 0.0) -> RunFacts:
    """What prompt functions and validators are told: they run beside the state, so the history is there."""
    return RunFacts(
        state.loop_id,
        state.turn,
        state.attempt,
        state.started_at,
        state.prompt.text if state.prompt is not None else "",
        state.usage,
        retry=state.retries,
        max_retries=state.spec.retries,
        parent_loop_id=state.parent_loop_id,
        metadata=state.metadata,
        correlation=state.correlation,
        history=tuple(state.history),
        depth=state.depth,
        max_depth=state.spec.limits.max_depth,
        at=at,
        spent=tuple(state.spent),
        tool_state=state.tool_state,
    )


def call_facts(state: State, effect: Execute) -> RunFacts:
    """What a tool is told; the history only if it was declared to read it, because it has to travel."""
    call = state.calls[effect.index]
    tool = state.spec.tools[call.name]
    return RunFacts(
        state.loop_id,
        state.turn,
        state.attempt,
        state.started_at,
        state.prompt.text if state.prompt is not None else "",
        state.usage,
        call.name,
        call.id,
        effect.id,
        state.tool_retries.get(call.name, 0),
        state.spec.retries if tool.retries is None else tool.retries,
        state.parent_loop_id,
        state.metadata,
        state.correlation,
        tuple(state.history) if tool.wants_history else None,
        state.depth,
        state.spec.limits.max_depth,
        tool_state=state.tool_state,
    )
