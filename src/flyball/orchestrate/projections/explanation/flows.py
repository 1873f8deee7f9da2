"""A flow explained: how each step ended, which are open, and where to look further."""

from __future__ import annotations

from collections.abc import Sequence

from flyball.core.events import Event, Outcome, StepEnded
from flyball.core.flow import node_at
from flyball.core.usage import RunUsage
from flyball.orchestrate.flow_loops import step_loop
from flyball.orchestrate.flow_state import FlowState
from flyball.orchestrate.lifecycle.flows import flow_phase
from flyball.orchestrate.machines import stage
from flyball.orchestrate.projections.explanation.told import Explanation, FlowStep, FlowTold, Next
from flyball.orchestrate.provenance import provenance_of


def explained_flow(events: Sequence[Event], state: FlowState) -> Explanation:
    """A flow in words and numbers."""
    steps = flow_steps(events, state)
    wanted = [
        step.run for step in steps if step.run in state.children and (step.error is not None or step.open)
    ]
    return Explanation(
        run=state.loop_id,
        agent=state.flow.name,
        model=provenance_of(events, state).model,
        phase=str(flow_phase(state)),
        stage=str(stage(state)),
        verdict=_verdict(state),
        turns=(),
        next=tuple([_look_at(loop_id) for loop_id in wanted or state.children[-1:]]),
        error=state.error,
        flow=FlowTold(state.input, state.output, state.usage, tuple(steps)),
    )


def _look_at(loop_id: str) -> Next:
    return Next("explain", f"look at the loop {loop_id} under it", loop_id=loop_id)


def _verdict(state: FlowState) -> str:
    if state.outcome is Outcome.SUCCESS:
        return "It has its output: all of its steps that were to be run have ended."
    if state.error is not None:
        return f"It ended by {state.error.code} ({state.error.category}): {state.error.message}"
    if state.paused:
        return "It is paused: a signal asked for that."
    names = ", ".join([f"{node_at(state.flow, path).name} ({path})" for path in state.ready])
    return f"It is not over: nothing is recorded of {names}. It goes on when the flow is run again by its id."


def flow_steps(events: Sequence[Event], state: FlowState) -> list[FlowStep]:
    """The steps that have ended, in the order in which they did, and then those that are owed."""
    steps: list[FlowStep] = []
    for event in events:
        if isinstance(event, StepEnded):
            node = node_at(state.flow, event.path)
            steps.append(
                FlowStep(
                    event.path,
                    node.name,
                    node.kind,
                    event.at - event.duration,
                    event.duration,
                    event.attempt,
                    event.loop_id,
                    event.output,
                    event.error,
                    event.usage or RunUsage(),
                )
            )
    if state.at == "run":
        for leaf in state.ready.values():
            node, run = node_at(state.flow, leaf.path), step_loop(state.loop_id, leaf.path, leaf.attempt)
            begun = run if run in state.children else ""
            steps.append(
                FlowStep(leaf.path, node.name, node.kind, attempt=leaf.attempt, run=begun, open=True)
            )
    return steps
