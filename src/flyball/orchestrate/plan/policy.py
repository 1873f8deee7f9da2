"""PlanPolicy: what a plan may be. It is looked at before any step runs."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from msgspec import Struct

from flyball.core.errors import PlanRejected, UserError
from flyball.core.flow import COMPOSED
from flyball.orchestrate.plan.shape import check_form, is_policy, is_whole
from flyball.orchestrate.plan.steps import ExecutionPlan, PlanItem, PlanParallel, PlanStep
from flyball.orchestrate.sensible import sensible_timeout


class PlanPolicy(Struct, frozen=True):
    """The limits of plans. None, and an empty list, are no limit.

    `max_steps` counts all steps, also those inside of branches and parallels. A step that takes longer than
    `timeout_per_step` is stopped and fails, which ends the plan unless it is tried again, as often as its own
    `retries` say, which may be `max_retries` at most.
    """

    max_steps: int | None = None
    allowed_step_types: tuple[str, ...] = ()
    require_linear: bool = False
    timeout_per_step: float | None = None
    max_retries: int = 10

    def __post_init__(self) -> None:
        if self.max_steps is not None and not (is_whole(self.max_steps) and self.max_steps > 0):
            raise UserError(f"max_steps should be more than 0, or None for no limit, not {self.max_steps!r}")
        sensible_timeout(self.timeout_per_step, "timeout_per_step=")
        if not is_whole(self.max_retries) or self.max_retries < 0:
            raise UserError(f"max_retries should be a number from 0, not {self.max_retries!r}")
        types: Any = self.allowed_step_types
        if isinstance(types, str) or not all(isinstance(one, str) for one in types):
            raise UserError(f"allowed_step_types are texts, such as ('infer', 'tool'), not {types!r}")
        if not isinstance(self.require_linear, bool):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise UserError(f"require_linear is True or False, not {self.require_linear!r}")

    def check(self, plan: ExecutionPlan, handled: Collection[str]) -> ExecutionPlan:
        """Return the plan if it may be run by those who handle these types of steps.

        Raises:
            PlanRejected: it may not; the message names the limit and the step.
        """
        check_form(plan)
        steps = plan.leaves
        if not steps:
            raise PlanRejected("the plan has no steps", limit="empty")
        if self.max_steps is not None and len(steps) > self.max_steps:
            raise PlanRejected(
                f"the plan has {len(steps)} steps, and max_steps is {self.max_steps}",
                limit="max_steps",
                steps=len(steps),
            )
        if self.require_linear and not plan.is_linear:
            crooked = next(item for item in plan.steps if not isinstance(item, PlanStep))
            raise PlanRejected(
                f"the plan must be linear, and {crooked.name!r} is a {_kind(crooked)}", limit="require_linear"
            )
        for step in steps:
            self._check_type(step, handled)
            wanted = step.retries.max_retries if is_policy(step.retries) else step.retries or 0
            if wanted > self.max_retries:
                raise PlanRejected(
                    f"step {step.name!r} wants {wanted} retries, and max_retries is {self.max_retries}",
                    limit="max_retries",
                    step=step.name,
                )
        return plan

    def _check_type(self, step: PlanStep, handled: Collection[str]) -> None:
        if self.allowed_step_types and step.type not in self.allowed_step_types:
            raise PlanRejected(
                f"step {step.name!r} is of the type {step.type!r}; allowed are: "
                f"{', '.join(self.allowed_step_types)}",
                limit="allowed_step_types",
                step=step.name,
            )
        if step.type in COMPOSED or step.type not in handled:
            raise PlanRejected(
                f"step {step.name!r} is of the type {step.type!r}, which nobody handles; there are handlers "
                f"for: {', '.join(handled) or 'nothing'}",
                limit="handlers",
                step=step.name,
            )


def _kind(item: PlanItem) -> str:
    return "parallel" if isinstance(item, PlanParallel) else "branch"
