"""A request's plan as part of a flow: given with it, or made by a planner as the flow's first step.

In mode plan it is what is run. In the other modes, where a planner is configured, it is what the agent is
told to go by: the mode's own pattern runs, after the planner's step.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from msgspec import to_builtins
from msgspec.structs import replace

from flyball.core.encodable import NotEncodable
from flyball.core.errors import PlanRejected, StepMismatch
from flyball.core.flow import PLANNER, FlowNode
from flyball.orchestrate.awaiting import answer_of
from flyball.orchestrate.contracts import SystemRequest
from flyball.orchestrate.contracts.asked import asked_in
from flyball.orchestrate.flow.doing import Doing
from flyball.orchestrate.flow.parts import Done
from flyball.orchestrate.flow.planned import PlannedSteps
from flyball.orchestrate.flow.steps import Step
from flyball.orchestrate.lifecycle import Mode
from flyball.orchestrate.patterns.phases import PatternFlow
from flyball.orchestrate.plan.executor import PlanExecutor
from flyball.orchestrate.plan.forms import plan_from_json, plan_to_json
from flyball.orchestrate.plan.planner import Planner
from flyball.orchestrate.plan.shape import check_form
from flyball.orchestrate.plan.steps import ExecutionPlan, PlanTrace
from flyball.orchestrate.plan.telling import plan_text
from flyball.orchestrate.schema_output import SchemaOutput
from flyball.orchestrate.serving.contract import ContractStep


@dataclass(frozen=True, eq=False)
class PlanningStep(Step[Any, Any]):
    """Asks a planner for a request's plan, and gives it as it is recorded. A plan that may not be fails."""

    planner: Planner
    executor: PlanExecutor
    request: SystemRequest
    name: str = "plan"
    kind: str = field(default=PLANNER, init=False, repr=False)

    async def perform(self, doing: Doing, value: Any) -> Done:
        """See `Part.perform`."""
        plan = _checked(await _asked_for(self.planner, doing, self.request), doing)
        return Done(to_builtins(_asked(self.executor.written(plan), self.request)))


@dataclass(frozen=True, eq=False)
class AdvisingStep(Step[Any, Any]):
    """Asks a planner for a plan to go by, and gives it as JSON; None where there is none for the request."""

    planner: Planner
    request: SystemRequest
    name: str = "plan"
    kind: str = field(default=PLANNER, init=False, repr=False)

    async def perform(self, doing: Doing, value: Any) -> Done:
        """See `Part.perform`."""
        try:
            plan = await _asked_for(self.planner, doing, self.request)
        except PlanRejected:
            return Done(None)  # the mode does without one
        return Done(_in_json(_checked(plan, doing)) if plan.steps else None)


def advised(flow: PatternFlow, request: SystemRequest, planner: Planner) -> PatternFlow:
    """The flow of a request in another mode than plan, after the step that makes its plan."""
    steps = (AdvisingStep(planner, request), *flow.steps)
    return PatternFlow(*steps, name=flow.name, mode=flow.mode, tools=flow.tools)


def told_plan(plan: Any) -> str:
    """A plan that was made by an `AdvisingStep`, in words for those who go by it."""
    return plan_text(plan_from_json(plan))


async def _asked_for(planner: Planner, doing: Doing, request: SystemRequest) -> ExecutionPlan:
    plan: Any = await answer_of(planner.create_plan, doing.context, request)
    if not isinstance(plan, ExecutionPlan):
        raise StepMismatch(f"a planner gives an ExecutionPlan, not {plan!r:.200}")
    return plan


def _checked(plan: ExecutionPlan, doing: Doing) -> ExecutionPlan:
    """The plan of a planner, which is anybody's, with when it was made.

    Raises:
        PlanRejected: it is malformed.
    """
    check_form(plan)
    return _traced(plan, doing.context.facts.at)


def _in_json(plan: ExecutionPlan) -> Any:
    try:
        return plan_to_json(plan)
    except NotEncodable as error:
        raise PlanRejected(f"{error}: a plan must be recorded", limit="input") from error


def planned_flow(
    request: SystemRequest,
    planner: Planner,
    executor: PlanExecutor,
    schema: SchemaOutput | None,
    tools: Sequence[str],
) -> PatternFlow:
    """The flow of a request in mode plan: the plan, and the schema that its output is held to, if there is.

    Raises:
        InvalidRequest: the plan that it brings is malformed.
        PlanRejected: the plan that it brings breaks the policy.
    """
    if request.plan is None:
        steps = PlannedSteps(PlanningStep(planner, executor, request), executor.built, name="plan")
    else:
        plan = plan_from_json(request.plan)
        trace = plan.trace or PlanTrace("request")
        written = executor.written(replace(plan, trace=_counted(trace, plan)))
        steps = executor.built(_asked(written, request))
    held = () if schema is None else (ContractStep(schema),)
    return PatternFlow(steps, *held, name="plan", mode=Mode.PLAN, tools=tools)


def _asked(plan: FlowNode, request: SystemRequest) -> FlowNode:
    """The plan with what its first step takes, if that has no input of its own: the user's question."""
    return replace(plan, given=asked_in(request.to_json()))


def _traced(plan: ExecutionPlan, now: float) -> ExecutionPlan:
    """The plan with when it was made, and how long it is."""
    trace = plan.trace or PlanTrace()
    return replace(plan, trace=_counted(replace(trace, created_at=trace.created_at or now), plan))


def _counted(trace: PlanTrace, plan: ExecutionPlan) -> PlanTrace:
    return replace(trace, step_count=trace.step_count or len(plan.leaves))
