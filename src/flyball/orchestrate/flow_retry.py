"""What a retry of a flow does about redundant nodes. As pure as the machine, whose part this is.

A step of a redundant node that fails does not end the flow: it is an outcome, and whoever takes the outcomes
makes what it can of them. If that fails, too (a vote without a single candidate, say), a retry that only had
the vote repeated would come to the same. So the steps that had failed are tried again, from where they stood
and as many at once as the node allows; then their outcomes are taken anew. Those that gave an output are not
run again.
"""

from __future__ import annotations

from flyball.core.flow import CONDITIONAL, PIPELINE, PLANNED, inner_path, node_at, parent_path
from flyball.orchestrate.flow_nodes import begin_more, drop, is_under
from flyball.orchestrate.flow_state import FlowState, Opened


def reask(state: FlowState) -> None:
    """Have the failed steps of redundant nodes tried again, where nothing could be made of the outcomes."""
    for path in tuple(state.wanting):
        taker = _taker(state, path)
        if taker is not None and _made_nothing(state, taker):
            _reopen(state, path, taker)


def _taker(state: FlowState, path: str) -> str | None:
    """The path of what is given a node's output; None where that is not one node alone."""
    while path:
        above, _, part = path.rpartition(".")
        node, index = node_at(state.flow, above), int(part)
        if node.kind == PIPELINE and index + 1 < len(node.steps):
            return inner_path(above, index + 1)
        if node.kind not in (PIPELINE, CONDITIONAL, PLANNED):
            return None
        path = above
    return None


def _made_nothing(state: FlowState, taker: str) -> bool:
    """Whether a node is under way in which something has failed, and nothing has ended well."""
    errors = [event.error for name, event in state.ended.items() if is_under(name, taker)]
    return bool(errors) and None not in errors and any(is_under(name, taker) for name in state.ready)


def _reopen(state: FlowState, path: str, taker: str) -> None:
    for name, leaf in state.ready.items():
        if is_under(name, taker):
            state.tried[name] = leaf.attempt
    drop(state, taker)
    above = parent_path(path)
    while above != parent_path(taker):  # what the node was the last part of is not over any more
        state.opened[above] = Opened(node_at(state.flow, above), None)
        above = parent_path(above)
    closed = state.wanting.pop(path)
    outcomes = closed.outputs[: closed.begun]
    again = tuple([at for at, one in enumerate(outcomes) if one is None or "error" in one])
    opened = Opened(
        closed.node,
        closed.input,
        closed.history,
        [None if at in again else one for at, one in enumerate(closed.outputs)],
        [ended and at not in again for at, ended in enumerate(closed.ended)],
        closed.begun,
        closed.over - len([at for at in again if closed.ended[at]]),
        closed.asked,
        again,
    )
    state.opened[path] = opened
    begin_more(state, path, opened)
