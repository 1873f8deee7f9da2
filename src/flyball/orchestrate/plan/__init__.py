"""Plans: typed steps as data, the policy they are run under, and who makes and runs them.

Making a plan and running it are apart. A `Planner` (or a person) gives an `ExecutionPlan`; a `PlanExecutor`
looks at it by its `PlanPolicy`, and runs it as a flow with a handler for each type of step. So plans are as
durable as flows are: what is recorded is gone on with, and what has ended is not done again.
"""

from flyball.orchestrate.plan.executor import PlanExecutor, PlanResult
from flyball.orchestrate.plan.handling import StepHandler
from flyball.orchestrate.plan.policy import PlanPolicy
from flyball.orchestrate.plan.steps import (
    INFER,
    RERANK,
    RETRIEVE,
    TOOL,
    VALIDATE,
    ExecutionPlan,
    PlanBranch,
    PlanItem,
    PlanParallel,
    PlanStep,
    PlanTrace,
)

__all__ = [
    "INFER",
    "RERANK",
    "RETRIEVE",
    "TOOL",
    "VALIDATE",
    "ExecutionPlan",
    "PlanBranch",
    "PlanExecutor",
    "PlanItem",
    "PlanParallel",
    "PlanPolicy",
    "PlanResult",
    "PlanStep",
    "PlanTrace",
    "StepHandler",
]
