"""What a plan must be made of, whoever made it: of the right types, and not too deep."""

from __future__ import annotations

from math import isfinite
from typing import Any, cast

from typing_extensions import TypeIs

from flyball.core.errors import PlanRejected
from flyball.inference.retry_policy import RetryPolicy
from flyball.orchestrate.plan.retries import retries_to_json
from flyball.orchestrate.plan.steps import ExecutionPlan, PlanBranch, PlanParallel, PlanStep, PlanTrace

MOST_DEEP = 32
"""How deep parallels and branches may stand in each other."""


def check_form(plan: ExecutionPlan) -> None:
    """Check that a plan is made of what plans are made of.

    Raises:
        PlanRejected: something in it is not; the message says what.
    """
    trace: Any = plan.trace
    if trace is not None and not isinstance(trace, PlanTrace):
        raise _malformed(f"its trace should be a PlanTrace, not {trace!r:.100}")
    _check_items(plan.steps, 0)


def is_whole(value: Any) -> bool:
    """Whether something is a whole number, and no truth value."""
    return isinstance(value, int) and not isinstance(value, bool)


def is_policy(value: Any) -> TypeIs[RetryPolicy]:
    """Whether something is a RetryPolicy."""
    return isinstance(value, RetryPolicy)


def _check_items(items: Any, depth: int) -> None:
    if depth > MOST_DEEP:
        raise _malformed(f"its steps stand more than {MOST_DEEP} deep in each other", "depth")
    if not isinstance(items, tuple | list):
        raise _malformed(f"steps are a tuple of them, not {items!r:.100}")
    for item in cast("tuple[Any, ...]", items):
        if isinstance(item, PlanStep):
            _check_step(item)
        elif isinstance(item, PlanParallel):
            most: Any = item.concurrency
            if not item.steps or (most is not None and not (is_whole(most) and most > 0)):
                raise _malformed(f"{item.name!r} needs steps, and a concurrency from 1", "parallel")
            _check_items(item.steps, depth + 1)
        elif isinstance(item, PlanBranch):
            if not isinstance(item.test, PlanStep):  # pyright: ignore[reportUnnecessaryIsInstance] - anybody's
                raise _malformed(f"the test of {item.name!r} should be a PlanStep, not {item.test!r:.100}")
            _check_step(item.test)
            _check_items(item.then, depth + 1)
            _check_items(item.otherwise, depth + 1)
        else:
            raise _malformed(f"it holds {item!r:.100}, which is no step")


def _check_step(step: PlanStep) -> None:
    name, kind, retries, timeout = cast("tuple[Any, ...]", (step.name, step.type, step.retries, step.timeout))
    if not isinstance(name, str) or not name or not isinstance(kind, str) or not kind:
        raise _malformed(
            f"a step has a name and a type, which are texts, not {name!r:.100} and {kind!r:.100}"
        )
    if retries is not None and not (is_whole(retries) and retries >= 0) and not is_policy(retries):
        raise _malformed(
            f"step {name!r} has retries={retries!r:.100}: it is a number from 0, or a RetryPolicy"
        )
    retries_to_json(retries)  # which a policy with a function of its own cannot
    known = isinstance(timeout, int | float) and isfinite(timeout) and timeout > 0
    if timeout is not None and not known:
        raise _malformed(f"step {name!r} has timeout={timeout!r:.100}: it is seconds, more than 0")


def _malformed(what: str, limit: str = "step") -> PlanRejected:
    return PlanRejected(f"the plan is malformed: {what}", limit=limit)
