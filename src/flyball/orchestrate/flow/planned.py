"""PlannedSteps: a part of a flow whose own structure is what its first step gives."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, field
from typing import Any

from flyball.core.flow import PLANNED, FlowNode
from flyball.orchestrate.flow.parts import Part
from flyball.orchestrate.flow.steps import Step


@dataclass(frozen=True, eq=False)
class PlannedSteps(Step[Any, Any]):
    """Asks a planner for steps, and runs them with what it was given itself.

    What the planner gives is written down as the output of its step, and is part of the flow from then on:
    whoever goes on with the flow goes on with the plan that was made.

    `planner` is a leaf whose output is a `FlowNode`, as JSON; `build` makes the steps that a node stands for.
    It is called whenever the flow is taken up, so it gives the same for the same node.
    """

    planner: Part
    build: Callable[[FlowNode], Part]
    name: str = "planned"
    steps: tuple[Part, ...] = ()
    kind: str = field(default=PLANNED, init=False, repr=False)

    def __post_init__(self) -> None:
        if not self.steps:
            object.__setattr__(self, "steps", (self.planner,))

    @property
    def inner(self) -> tuple[Part, ...]:
        """See `Part.inner`."""
        return self.steps

    def grown(self, node: FlowNode) -> Part:
        """See `Part.grown`."""
        if len(node.steps) == 1:
            return self
        grown = copy(self)
        object.__setattr__(grown, "steps", (self.planner, self.build(node.steps[1]).grown(node.steps[1])))
        return grown
