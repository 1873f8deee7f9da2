"""What a recorded plan's structure stands for, with the code behind it: the parts of a flow."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from flyball.core.errors import LoopMismatch
from flyball.core.flow import CONDITIONAL, PARALLEL, PIPELINE, FlowNode
from flyball.orchestrate.agent import Agent
from flyball.orchestrate.flow.doing import Doing
from flyball.orchestrate.flow.functions import Function
from flyball.orchestrate.flow.leaves import FunctionLeaf
from flyball.orchestrate.flow.parts import Done, Part
from flyball.orchestrate.flow.retrying import Retries, retries_of, worth_another_try
from flyball.orchestrate.flow.steps import Step
from flyball.orchestrate.flow.values import Values
from flyball.orchestrate.plan.handling import BoundStep
from flyball.orchestrate.plan.steps import PlanStep


@dataclass(frozen=True, init=False, eq=False)
class PlannedStep(FunctionLeaf, Step[Any, Any]):
    """One step of a plan, run by its handler. One that decides gives whether what it gave is true."""

    recorded: FlowNode
    function: Function
    decides: bool
    timeout: float | None
    name: str
    kind: str

    retries: Retries

    def __init__(
        self, node: FlowNode, handler: Function, *, decides: bool = False, retries: Retries = 0
    ) -> None:
        step = PlanStep(node.name, node.kind, retries=retries_of(node), timeout=node.timeout)
        bound = Function(
            BoundStep(step, handler),
            node.name,
            takes_context=True,
            takes=handler.takes,
            gives=handler.gives,
            agent=handler.agent,
        )
        for name, value in (
            ("recorded", node),
            ("function", bound),
            ("decides", decides),
            ("retries", retries),
            ("timeout", node.timeout),
            ("name", node.name),
            ("kind", node.kind),
        ):
            object.__setattr__(self, name, value)

    @property
    def gives(self) -> Values:
        """See `Part.gives`."""
        return Values(bool if self.decides else self.function.gives)

    def asks(self) -> Agent[Any, Any] | None:
        """See `Part.asks`."""
        return self.function.agent

    def node(self) -> FlowNode:
        """See `Part.node`."""
        return self.recorded

    def worth_another_try(self, error: Exception) -> bool:
        """See `Part.worth_another_try`."""
        return worth_another_try(self.retries, error)

    async def perform(self, doing: Doing, value: Any) -> Done:
        """See `Part.perform`."""
        done = await super().perform(doing, value)
        return Done(bool(done.output)) if self.decides else done


@dataclass(frozen=True, eq=False)
class PlannedGroup(Step[Any, Any]):
    """Steps of a plan that belong together: one after the other, side by side, or one of two."""

    recorded: FlowNode
    steps: tuple[Part, ...]

    @property
    def kind(self) -> str:  # pyright: ignore[reportIncompatibleVariableOverride] - it is never set
        """See `Part`."""
        return self.recorded.kind

    @property
    def name(self) -> str:  # pyright: ignore[reportIncompatibleVariableOverride] - it is never set
        """See `Part`."""
        return self.recorded.name

    @property
    def inner(self) -> tuple[Part, ...]:
        """See `Part.inner`."""
        return self.steps

    def node(self) -> FlowNode:
        """See `Part.node`."""
        return self.recorded


class Handlers:
    """What does the steps of a plan, by their types; `last` has a say first where a step gives the plan's own
    output. `retries` judges the failures of steps that are to be judged.
    """

    __slots__ = ("by_type", "last", "retries")

    def __init__(
        self, by_type: Mapping[str, Function], last: Mapping[str, Function], retries: Retries
    ) -> None:
        self.by_type = by_type
        self.last = last
        self.retries = retries

    def of(self, kind: str, *, is_last: bool) -> Function:
        """What does a step of a type.

        Raises:
            LoopMismatch: nobody does.
        """
        if kind not in self.by_type:
            raise LoopMismatch(
                f"there is a step of the type {kind!r}, which is not handled here; handled are: "
                f"{', '.join(self.by_type) or 'none'}",
                differs=["flow"],
            )
        return self.last.get(kind, self.by_type[kind]) if is_last else self.by_type[kind]


def parts_of(node: FlowNode, handlers: Handlers, *, decides: bool = False, is_last: bool = True) -> Part:
    """The part of a flow that a plan's node stands for.

    `is_last`: what the node gives is what the plan gives. Of steps side by side none does by itself.

    Raises:
        LoopMismatch: a step is of a type that nobody handles.
    """
    kind, count = node.kind, len(node.steps)
    if kind not in (PIPELINE, PARALLEL, CONDITIONAL):
        handler = handlers.of(kind, is_last=is_last)
        return PlannedStep(node, handler, decides=decides, retries=handlers.retries)
    inner = [
        parts_of(
            step,
            handlers,
            decides=kind == CONDITIONAL and not index,
            is_last=is_last
            and (index > 0 if kind == CONDITIONAL else kind == PIPELINE and index + 1 == count),
        )
        for index, step in enumerate(node.steps)
    ]
    return PlannedGroup(node, tuple(inner))
