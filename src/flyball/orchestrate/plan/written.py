"""A plan as a flow's structure, which is how it is recorded; and back."""

from __future__ import annotations

from typing import Any

from msgspec import Struct, convert, to_builtins

from flyball.core.encodable import NotEncodable, to_json
from flyball.core.errors import PlanRejected
from flyball.core.flow import CONDITIONAL, PARALLEL, PIPELINE, FlowNode
from flyball.orchestrate.flow.retrying import Retries, retries_of, retry_rule
from flyball.orchestrate.plan.steps import (
    ExecutionPlan,
    PlanBranch,
    PlanItem,
    PlanParallel,
    PlanStep,
    PlanTrace,
)

PLAN = "plan"


class Customs(Struct, frozen=True):
    """What holds for steps that say nothing of it: how often, after which failures, and for how long.

    After which failures a policy says itself.
    """

    retries: Retries = 0
    retried: tuple[str, ...] | None = None
    timeout: float | None = None

    def rule(self) -> dict[str, Any]:
        """What a node of such a step says of its retries."""
        return {"retried": self.retried, **retry_rule(self.retries)}


def node_of(plan: ExecutionPlan, customs: Customs) -> FlowNode:
    """How a plan is written down: all that its run depends on is in it.

    Raises:
        PlanRejected: a step's input has no JSON form.
    """
    note: dict[str, Any] = {"mode": PLAN}
    if plan.trace is not None:
        note["trace"] = to_builtins(plan.trace)
    return FlowNode(PIPELINE, PLAN, _nodes(plan.steps, customs), note=note)


def plan_from(node: FlowNode) -> ExecutionPlan:
    """The plan that was written down."""
    trace = (node.note or {}).get("trace")
    steps = tuple([_item(step) for step in node.steps])
    return ExecutionPlan(steps, None if trace is None else convert(trace, PlanTrace))


def _nodes(items: tuple[PlanItem, ...], customs: Customs) -> tuple[FlowNode, ...]:
    return tuple([_node(item, customs) for item in items])


def _node(item: PlanItem, customs: Customs) -> FlowNode:
    if isinstance(item, PlanStep):
        return FlowNode(
            item.type,
            item.name,
            given=_plain(item),
            timeout=customs.timeout if item.timeout is None else item.timeout,
            **(customs.rule() if item.retries is None else retry_rule(item.retries)),
        )
    if isinstance(item, PlanParallel):
        return FlowNode(PARALLEL, item.name, _nodes(item.steps, customs), concurrency=item.concurrency)
    ways = [
        FlowNode(PIPELINE, name, _nodes(items, customs))
        for name, items in (("then", item.then), ("otherwise", item.otherwise))
    ]
    return FlowNode(CONDITIONAL, item.name, (_node(item.test, customs), *ways))


def _item(node: FlowNode) -> PlanItem:
    if node.kind == PARALLEL:
        return PlanParallel(tuple([_item(step) for step in node.steps]), node.name, node.concurrency)
    if node.kind == CONDITIONAL:
        test, then, otherwise = node.steps
        ways = [tuple([_item(step) for step in way.steps]) for way in (then, otherwise)]
        return PlanBranch(_step(test), ways[0], ways[1], node.name)
    return _step(node)


def _step(node: FlowNode) -> PlanStep:
    return PlanStep(node.name, node.kind, node.given, retries=retries_of(node), timeout=node.timeout)


def _plain(step: PlanStep) -> Any:
    try:
        return to_json(step.input, f"the input of step {step.name!r}")
    except NotEncodable as error:
        raise PlanRejected(f"{error}: a plan must be recorded", limit="input", step=step.name) from error
