"""PlanExecutor: runs plans, and never makes them.

A plan is run as a flow: what each step gave is recorded, so a plan whose process died goes on with the step
that it had come to, and a step that has ended is not done again.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from msgspec import Struct
from typing_extensions import Unpack

from flyball.core.errors import FailureCategory, FlyballError, UserError
from flyball.core.events import FlowStarted, Outcome
from flyball.core.flow import FlowNode, node_at
from flyball.core.usage import RunUsage
from flyball.orchestrate.flow.options import FlowOptions
from flyball.orchestrate.flow.parts import Part
from flyball.orchestrate.flow.result import FlowResult
from flyball.orchestrate.flow.retrying import Retries, sensible_retries
from flyball.orchestrate.flow.running import resume_flow, run_flow
from flyball.orchestrate.plan.handling import StepHandler, handler_of
from flyball.orchestrate.plan.naming import names_in
from flyball.orchestrate.plan.parts import Handlers, parts_of
from flyball.orchestrate.plan.policy import PlanPolicy
from flyball.orchestrate.plan.steps import ExecutionPlan, PlanStep
from flyball.orchestrate.plan.written import Customs, node_of, plan_from

RECOVERED = (FailureCategory.CONSTRAINT, FailureCategory.VALIDATION, FailureCategory.TOOL)
"""The failures after which a step is tried again where it does not say: those of pagantic's matrix."""


class PlanResult(Struct, frozen=True, eq=False):
    """What came of a plan: the steps that were done, in their order, with their outputs; and the last output.

    Of a plan that failed, which has it as `error.partial`, `output` is None and `steps` are those that were
    done before.
    """

    plan: ExecutionPlan
    steps: tuple[PlanStep, ...]
    output: Any
    flow: FlowResult[Any]

    @property
    def loop_id(self) -> str:
        """The id by which it can be gone on with."""
        return self.flow.loop_id

    @property
    def usage(self) -> RunUsage:
        """What all model calls under it used."""
        return self.flow.usage

    @property
    def outcome(self) -> Outcome:
        """How it ended."""
        return self.flow.outcome

    def __getitem__(self, name: str) -> Any:
        """What the step of a name gave. If several have it, the first does; the second is `name (2)`.

        Raises:
            KeyError: no step of that name was done.
        """
        names = names_in(self.flow.state.flow)
        for step in self.flow.steps:
            if step.error is None and names[step.path] == name:
                return step.output
        raise KeyError(name)


class PlanExecutor:
    """Runs plans with a handler for each type of step.

    Args:
        handlers: what does the steps of each type: see `plan.handling` and `plan.handlers`.
        policy: what a plan may be.
        retries: how often a step that says nothing of it is tried again after a failed constraint, validation
            or tool that is retryable: of tools, what the idempotent ones fail with. A step that says
            `retries=` is tried again after any failure. A RetryPolicy says itself after which, and how long
            is waited.
        last: what does a step of a type whose output is the plan's own, where that is something else.

    Raises:
        UserError: a handler is none.
    """

    def __init__(
        self,
        handlers: Mapping[str, StepHandler],
        *,
        policy: PlanPolicy | None = None,
        retries: Retries = 1,
        last: Mapping[str, StepHandler] | None = None,
    ) -> None:
        if not isinstance(handlers, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise UserError(f"PlanExecutor takes handlers by the type of step, not {handlers!r}")
        self.policy = policy or PlanPolicy()
        self._handlers = {str(kind): handler_of(handler, str(kind)) for kind, handler in handlers.items()}
        own = {str(kind): handler_of(handler, str(kind)) for kind, handler in (last or {}).items()}
        self._bound = Handlers(self._handlers, own, retries)
        recovered = tuple([str(category) for category in RECOVERED])
        retries = sensible_retries(retries)
        self._customs = Customs(retries, recovered, self.policy.timeout_per_step)

    @property
    def step_types(self) -> tuple[str, ...]:
        """The types of steps that it can do, and may."""
        allowed = self.policy.allowed_step_types
        return tuple([kind for kind in self._handlers if not allowed or kind in allowed])

    async def execute(
        self,
        plan: ExecutionPlan,
        input: Any = None,  # noqa: A002 - as flows have it
        **options: Unpack[FlowOptions],
    ) -> PlanResult:
        """Run a plan to its end. `input` is what its first step takes, if that has none of its own.

        With a journal and a `loop_id` that it holds already, the plan goes on where it stood.

        Raises:
            PlanRejected: the plan breaks the policy; nothing was run.
            UserError: an agent of a step may come to wait for approval, which without a journal nobody could
                give; nothing was run. Of one that a handler does not tell of, it is the step's failure.
            FlyballError: a step failed, which is named, or the plan was cancelled; `partial` is a PlanResult
                with all steps that were done.
        """
        return await self._told(run_flow(self.built(self.written(plan)), input, options))

    async def resume(self, loop_id: str, /, **options: Unpack[FlowOptions]) -> PlanResult:
        """Go on with a plan that is recorded, by what is recorded of it; one that is over is told again.

        Raises:
            LoopNotFound: the journal holds no such loop.
            LoopMismatch: it is something else than a plan.
            FlyballError: see `execute`.
        """
        return await self._told(resume_flow(self._recorded, loop_id, options))

    def written(self, plan: ExecutionPlan) -> FlowNode:
        """A plan as it is recorded.

        Raises:
            PlanRejected: it breaks the policy.
        """
        if not isinstance(plan, ExecutionPlan):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise UserError(f"PlanExecutor runs an ExecutionPlan, not {plan!r}")
        return node_of(self.policy.check(plan, self._handlers), self._customs)

    def built(self, node: FlowNode) -> Part:
        """The steps that a recorded plan stands for."""
        return parts_of(node, self._bound)

    def _recorded(self, started: FlowStarted) -> Part:
        return self.built(started.flow)

    async def _told(self, running: Any) -> PlanResult:
        try:
            return told_of(await running)
        except FlyballError as error:
            if isinstance(reached := error.partial, FlowResult):
                error.partial = told_of(cast("FlowResult[Any]", reached))
            raise


def told_of(flow: FlowResult[Any]) -> PlanResult:
    """A flow that was a plan, as the plan's result."""
    plan = plan_from(flow.state.flow)
    done = [step for step in flow.steps if step.error is None]
    done.sort(key=lambda step: [int(part) for part in step.path.split(".")])
    given = [node_at(flow.state.flow, step.path).given for step in done]
    steps = [PlanStep(step.name, step.kind, own, step.output) for step, own in zip(done, given, strict=True)]
    return PlanResult(plan, tuple(steps), flow.output, flow)
