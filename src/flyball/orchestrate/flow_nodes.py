"""What the nodes of a flow come to: each begins with an input, and gives its output to the one above it.

Leaves are made ready to be run; what the others come to follows from what their leaves gave, and nothing of
it is journaled. Each step forward moves only what it concerns. As pure as the machine, whose part this is.
"""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec.structs import replace

from flyball.core.errors import (
    StepMismatch,
    SystemError,  # noqa: A004 - pagantic's name for it
)
from flyball.core.events import Outcome
from flyball.core.flow import (
    COMPOSED,
    CONDITIONAL,
    PIPELINE,
    PLANNED,
    REDUNDANT,
    UNTIL,
    FlowNode,
    grafted,
    inner_path,
    parent_path,
)
from flyball.orchestrate.flow_loops import step_loop
from flyball.orchestrate.flow_state import FlowState, Left, Opened, Ready


def begin(state: FlowState, node: FlowNode, path: str, given: Any, history: str) -> None:
    """A node has its input."""
    if node.given is not None:
        given = node.given
    if node.kind not in COMPOSED:
        state.ready[path] = Ready(path, given, history, state.tried.get(path, 0) + 1)
        return
    count = len(node.steps)
    if not count:
        gave(state, path, given if node.kind == PIPELINE else [], history)
        return
    state.opened[path] = opened = Opened(node, given, history)
    if node.kind in (PIPELINE, CONDITIONAL, PLANNED):
        opened.begun = 1
        begin(state, node.steps[0], inner_path(path, 0), given, history)
        return
    opened.outputs, opened.ended = [None] * count, [False] * count
    begin_more(state, path, opened)


def begin_more(state: FlowState, path: str, opened: Opened) -> None:
    """Begin as many steps of a parallel (or a redundant) as may be open; first those to be tried again."""
    node, count = opened.node, len(opened.node.steps)
    most = node.concurrency or count
    # One that has nothing to run ends as it begins, and may be the last.
    while state.opened.get(path) is opened and opened.begun - opened.over - len(opened.held) < most:
        if opened.held:
            index, *held = opened.held
            opened.held = tuple(held)
            _take_up(state, inner_path(path, index))
        elif opened.begun < count:
            index = opened.begun
            opened.begun += 1
            begin(state, node.steps[index], inner_path(path, index), opened.input, opened.history)
        else:
            return


def _take_up(state: FlowState, path: str) -> None:
    """Go on with a step that had failed, from where it stood: what had ended in it is not run again."""
    left = state.left.pop(path)
    state.opened |= left.opened
    for leaf in left.ready:
        again(state, leaf, 0)


def gave(state: FlowState, path: str, output: Any, history: str) -> None:
    """A node has its output."""
    if not path:
        state.output, state.outcome, state.at = output, Outcome.SUCCESS, "end"
        return
    above, _, part = path.rpartition(".")
    opened = state.opened[above]
    node = opened.node
    if part == UNTIL:
        _judged(state, above, opened, enough=output is True)
        return
    index = int(part)
    if node.kind == PIPELINE:
        if index + 1 < len(node.steps):
            opened.begun = index + 2
            begin(state, node.steps[index + 1], inner_path(above, index + 1), output, history)
        else:
            _close(state, above, output, history)
    elif node.kind == CONDITIONAL:
        if index == 0:
            chosen = 1 if output is True else 2
            begin(state, node.steps[chosen], inner_path(above, chosen), opened.input, opened.history)
        else:
            _close(state, above, output, history)
    elif node.kind == PLANNED:
        if index == 0:
            _planned(state, above, opened, msgspec.convert(output, FlowNode))
        else:
            _close(state, above, output, history)
    elif node.kind == REDUNDANT:
        _has_outcome(state, above, index, {"output": output})
    else:
        _kept(opened, index, output)
        if opened.over == len(opened.ended):
            _close(state, above, opened.outputs, "")
        else:
            begin_more(state, above, opened)


def no_plan(state: FlowState, path: str, output: Any) -> SystemError | None:
    """What is wrong with what a leaf gave that was to give a plan; None for all others."""
    above, _, part = path.rpartition(".")
    if part != "0" or state.opened[above].node.kind != PLANNED:
        return None
    try:
        msgspec.convert(output, FlowNode)
    except msgspec.ValidationError as error:
        return StepMismatch(f"what it gave is no plan: {error}").record()
    return None


def _planned(state: FlowState, path: str, opened: Opened, plan: FlowNode) -> None:
    """A planned node has its plan: it is part of the flow from here on, and begins."""
    opened.node = replace(opened.node, steps=(opened.node.steps[0], plan))
    state.flow = grafted(state.flow, path, opened.node)
    opened.begun = 2
    begin(state, plan, inner_path(path, 1), opened.input, opened.history)


def _close(state: FlowState, path: str, output: Any, history: str) -> None:
    del state.opened[path]
    gave(state, path, output, history)


def _kept(opened: Opened, index: int, output: Any) -> None:
    opened.outputs[index], opened.ended[index] = output, True
    opened.over += 1


def _has_outcome(state: FlowState, path: str, index: int, outcome: dict[str, Any]) -> None:
    """A step of a redundant node has ended, in whatever way."""
    opened = state.opened[path]
    _kept(opened, index, outcome)
    if opened.over == len(opened.ended):
        drop(state, inner_path(path, UNTIL))  # there is nothing left to be decided
        _has_all(state, path, opened)
    elif opened.node.until is None:
        begin_more(state, path, opened)
    else:
        # Nothing more is begun until it is known whether these are enough. What was asked before is void.
        asked = inner_path(path, UNTIL)
        drop(state, asked)
        opened.asked += 1
        state.ready[asked] = Ready(asked, list(opened.outputs), "", opened.asked)


def _judged(state: FlowState, path: str, opened: Opened, *, enough: bool) -> None:
    if not enough:
        begin_more(state, path, opened)
        return
    for index, ended in enumerate(opened.ended):
        if not ended:
            step = inner_path(path, index)
            if index < opened.begun:
                state.left[step] = _standing(state, step)
            drop(state, step)
    _has_all(state, path, opened)


def _has_all(state: FlowState, path: str, opened: Opened) -> None:
    """A redundant node has all outcomes that are waited for."""
    if any(outcome is not None and "error" in outcome for outcome in opened.outputs):
        state.wanting[path] = opened
    _close(state, path, opened.outputs, "")


def is_under(name: str, path: str) -> bool:
    """Whether a path is that of a node, or of something that the node is made of."""
    return name == path or name.startswith(f"{path}.")


def _standing(state: FlowState, path: str) -> Left:
    """What a node has come to, as far as it is not over."""
    opened = {name: one for name, one in state.opened.items() if is_under(name, path)}
    return Left(opened, tuple([leaf for name, leaf in state.ready.items() if is_under(name, path)]))


def drop(state: FlowState, path: str) -> None:
    """Nobody waits for a node any more, nor for anything that it is made of."""
    for name in [name for name in state.opened if is_under(name, path)]:
        del state.opened[name]
    for name in [name for name in state.ready if is_under(name, path)]:
        leaf = state.ready.pop(name)
        state.dropped = (*state.dropped, step_loop(state.loop_id, name, leaf.attempt))


def again(state: FlowState, leaf: Ready, tries: int, after: float = 0.0) -> None:
    """Have a leaf tried once more; as something new, so that nothing of the former attempt answers it."""
    state.ready[leaf.path] = renewed = replace(leaf, attempt=leaf.attempt + 1, tries=tries, after=after)
    above, _, part = leaf.path.rpartition(".")
    if part == UNTIL:
        state.opened[above].asked = renewed.attempt


def outlived(state: FlowState, leaf: str, error: SystemError) -> bool:
    """A leaf has failed for good: whether a redundant node above it takes that for an outcome."""
    path = leaf
    while path:
        above = parent_path(path)
        if state.opened[above].node.kind == REDUNDANT and not path.endswith(UNTIL):
            state.left[path] = _standing(state, path)
            state.ready.pop(leaf)
            drop(state, path)
            _has_outcome(state, above, int(path.rpartition(".")[2]), {"error": msgspec.to_builtins(error)})
            return True
        path = above
    return False
