"""FlowNode: a flow's structure, written down: names and kinds. The code behind it is bound."""

from __future__ import annotations

from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from flyball.core.backoff import Backoff

PIPELINE, PARALLEL, CONDITIONAL, REDUNDANT, PLANNED = (
    "pipeline",
    "parallel",
    "conditional",
    "redundant",
    "planned",
)
COMPOSED = frozenset({PIPELINE, PARALLEL, CONDITIONAL, REDUNDANT, PLANNED})
"""The kinds of nodes that are made of others. A node of any other kind is a leaf: something to be run."""
PLANNER = "planner"
"""The kind of a leaf that makes a plan: of what follows it in a planned node, or for those who go by it."""
UNTIL = "until"
"""Where in a path the step stands that says whether a redundant node has enough; the others are numbered."""


class FlowNode(Struct, frozen=True, omit_defaults=True, repr_omit_defaults=True):
    """One step of a flow, with those that it is made of.

    - A pipeline gives what its last step gives; each takes what the one before gave.
    - A parallel gives what its steps gave, in their order.
    - A conditional has three steps: the test, what follows if it is true, and what follows if not.
    - A redundant is a parallel that is not sunk by a step that fails: it gives an outcome for each step,
      `{"output": …}` or `{"error": …}`. If it has an `until`, that is asked after each of them, with the
      outcomes so far, and may end it early: then those that are still open have the outcome None.
    - A planned has one step at first, whose output is a node: that is then the second one, is given what the
      planned itself was given, and what it gives is what the planned gives.

    `concurrency` is how many steps of a parallel or a redundant may be open at once. A node that has a
    `given` takes that, whatever the one before it gave. `timeout` (seconds, for each try of a leaf) and
    `note` are for those who run it: nothing follows from them here.

    A leaf that fails is tried again, as often as `retries` says, each time after its `backoff`: after which
    failures, `retried` says. None is after any; else the failure must be retryable, and in one of these
    categories, if there are some. What is `judged` is tried again where the code behind it says so.
    """

    kind: str
    name: str = ""
    steps: tuple[FlowNode, ...] = ()
    until: FlowNode | None = None
    concurrency: int | None = None
    retries: int = 0
    retried: tuple[str, ...] | None = None
    given: Any = None
    timeout: float | None = None
    note: dict[str, Any] | None = None
    backoff: Backoff | None = None
    judged: bool = False


def node_at(flow: FlowNode, path: str) -> FlowNode:
    """The node of a flow that stands at a path, which is that of its parent with a number added: `2.0.1`.

    Raises:
        LookupError: there is none.
    """
    node = flow
    for part in path.split(".") if path else ():
        inner = node.until if part == UNTIL else node.steps[int(part)]
        if inner is None:
            raise LookupError(path)
        node = inner
    return node


def replicas_at(flow: FlowNode) -> int | None:
    """Where in a vote its replicas stand: first, or after a planner; None if the flow is none.

    The step after them votes.
    """
    for at, node in enumerate(flow.steps):
        if node.kind == REDUNDANT:
            return at
        if node.kind != PLANNER:
            return None
    return None


def grafted(flow: FlowNode, path: str, node: FlowNode) -> FlowNode:
    """The flow with another node at a path."""
    if not path:
        return node
    above = parent_path(path)
    parent, index = node_at(flow, above), int(path.rpartition(".")[2])
    steps = (*parent.steps[:index], node, *parent.steps[index + 1 :])
    return grafted(flow, above, replace(parent, steps=steps))


def parent_path(path: str) -> str:
    """The path of the node that a node is part of; the flow itself has the empty one."""
    return path.rpartition(".")[0]


def inner_path(path: str, part: int | str) -> str:
    """The path of a part of a node."""
    return f"{path}.{part}" if path else f"{part}"
