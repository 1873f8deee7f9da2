"""FlowDiagram: a flow as it is drawn: its steps in their structure, each with how it stands."""

from __future__ import annotations

from typing import Literal, TypeAlias

from msgspec import Struct

from flyball.core.encodable import as_text
from flyball.core.flow import FlowNode
from flyball.orchestrate.flow_loops import children_of, step_loop
from flyball.orchestrate.flow_state import FlowState
from flyball.orchestrate.projections.shortened import cut

Standing: TypeAlias = Literal["later", "running", "done", "failed", "skipped"]
"""How a step stands: its turn has not come, it is under way, it has its output, it failed, or its turn will
not come any more."""

_SHOWN = 2_000
"""Characters of an output, or of an input, that are shown."""


class DiagramNode(Struct, frozen=True):
    """A step. `loops` are those that were begun for it; `given` and `output` are cut where they are long."""

    path: str
    kind: str
    name: str = ""
    standing: Standing = "later"
    given: str = ""
    output: str = ""
    error: str = ""
    took: float | None = None
    attempt: int = 1
    loops: tuple[str, ...] = ()
    steps: tuple[DiagramNode, ...] = ()


def diagram(state: FlowState) -> DiagramNode:
    """A flow's steps as they stand. Pure."""
    return _node(state, state.flow, "")


def _node(state: FlowState, node: FlowNode, path: str) -> DiagramNode:
    given = "" if node.given is None else cut(as_text(node.given), _SHOWN)
    if node.steps:
        inner = f"{path}." if path else ""
        steps = tuple([_node(state, step, f"{inner}{number}") for number, step in enumerate(node.steps)])
        return DiagramNode(path, node.kind, node.name, _standing_of(state, steps), given, steps=steps)
    ended, ready = state.ended.get(path), state.ready.get(path)
    attempt = ready.attempt if ready is not None else 1 if ended is None else ended.attempt
    own = [step_loop(state.loop_id, path, number) for number in range(1, attempt + 1)]
    loops = children_of(state, own)
    if ready is not None and state.at != "done":
        return DiagramNode(path, node.kind, node.name, "running", given, attempt=attempt, loops=loops)
    if ended is None:
        standing: Standing = "later" if state.at != "done" else "skipped"
        return DiagramNode(path, node.kind, node.name, standing, given, loops=loops)
    error = "" if ended.error is None else f"{ended.error.code}: {cut(ended.error.message, _SHOWN)}"
    return DiagramNode(
        path,
        node.kind,
        node.name,
        "failed" if error else "done",
        given,
        "" if error else cut(as_text(ended.output), _SHOWN),
        error,
        ended.duration,
        attempt,
        loops,
    )


def _standing_of(state: FlowState, steps: tuple[DiagramNode, ...]) -> Standing:
    """How a step stands that is made of others."""
    found = {step.standing for step in steps}
    if "running" in found:
        return "running"
    if found <= {"later"} or found <= {"skipped"}:
        return steps[0].standing
    if "later" in found:
        return "running"
    return "done" if steps[-1].standing == "done" or "done" in found else "failed"
