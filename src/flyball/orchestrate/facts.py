"""What a user's function is told about the run, worked out from the state."""

from __future__ import annotations

from typing import Any

from flyball.core.context import RunContext, RunFacts
from flyball.core.effects import Execute
from flyball.orchestrate.bindings import Bindings
from flyball.orchestrate.snapshot import carried_of
from flyball.orchestrate.spending import spent
from flyball.orchestrate.state import State


def run_facts(state: State, at: float = 0.0) -> RunFacts:
    """What prompt functions and validators are told: they run beside the state, so the history is there."""
    return RunFacts(
        state.loop_id,
        state.turn,
        state.attempt,
        state.started_at,
        asked(state),
        state.usage,
        retry=state.retries,
        max_retries=state.spec.retries,
        parent_loop_id=parent_of(state),
        metadata=state.metadata,
        correlation=state.correlation,
        history=tuple(state.history),
        depth=state.depth,
        max_depth=state.spec.limits.max_depth,
        at=at,
        carried=carried_of(state),
        spent=spent(state),
        tool_state=state.tool_state,
        deadline=state.deadline,
        identity=state.identity,
    )


def context_of(state: State, bindings: Bindings, deps: Any, at: float, home: Any = None) -> RunContext[Any]:
    """The context of a function that runs beside the state, at a time; `home` is for what it begins."""
    return in_context(run_facts(state, at), bindings, deps, home)


def in_context(facts: RunFacts, bindings: Bindings, deps: Any, home: Any = None) -> RunContext[Any]:
    """The context of a function that is told these facts."""
    context = RunContext(deps, facts, home)
    if bindings.bus is not None:
        context.event_bus = bindings.bus
    if bindings.acting is not None:
        context.acting = bindings.acting
    return context


def call_facts(state: State, effect: Execute) -> RunFacts:
    """What a tool is told; the history only if it was declared to read it, because it has to travel."""
    call = state.calls[effect.index]
    tool = state.spec.tools[call.name]
    return RunFacts(
        state.loop_id,
        state.turn,
        state.attempt,
        state.started_at,
        asked(state),
        state.usage,
        call.name,
        call.id,
        effect.id,
        state.tool_retries.get(call.name, 0),
        state.spec.retries if tool.retries is None else tool.retries,
        parent_of(state),
        state.metadata,
        state.correlation,
        tuple(state.history) if tool.wants_history else None,
        state.depth,
        state.spec.limits.max_depth,
        carried=carried_of(state) if tool.wants_history else None,
        detached=effect.index in state.detached,
        tool_state=state.tool_state,
        deadline=state.deadline,
        identity=state.identity,
    )


def asked(state: State) -> str:
    """The text of the prompt: this loop's, or that of the run which it goes on from."""
    if state.prompt is not None:
        return state.prompt.text
    return "" if state.carried is None else state.carried.prompt


def parent_of(state: State) -> str:
    """The run that this one was begun from, or that one was which it goes on from."""
    if state.parent_loop_id or state.carried is None:
        return state.parent_loop_id
    return state.carried.parent_run_id
