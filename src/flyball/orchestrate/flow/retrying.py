"""How often a step is tried again, as it is given and as it is written down.

A number is as often, after any failure, and at once. A `RetryPolicy` says after which failures, too, and how
long is waited. Of its `retry_if` only what it said is recorded.
"""

from __future__ import annotations

from typing import Any, TypeAlias

from flyball.core.flow import FlowNode
from flyball.inference.retry_policy import RetryPolicy
from flyball.orchestrate.sensible import sensible_count

Retries: TypeAlias = int | RetryPolicy
"""How often something is tried again, or by which policy."""


def sensible_retries(given: Any) -> Retries:
    """Retries that can be meant.

    Raises:
        UserError: they are neither a number from 0 nor a policy.
    """
    return given if isinstance(given, RetryPolicy) else sensible_count("retries", given)


def retry_rule(retries: Retries) -> dict[str, Any]:
    """What a node says of it."""
    if not isinstance(retries, RetryPolicy):
        return {"retries": retries}
    return {
        "retries": retries.max_retries,
        "retried": (),
        "backoff": retries.waits if retries.backoff else None,
        "judged": retries.retry_if is not None,
    }


def retries_of(node: FlowNode) -> Retries:
    """What was given for a node to be written down so; without the `retry_if` of a policy."""
    if node.retried != () and node.backoff is None:
        return node.retries
    waits = node.backoff
    if waits is None:
        return RetryPolicy(node.retries)
    return RetryPolicy(node.retries, waits.seconds, waits.factor, waits.most, waits.jitter)


def worth_another_try(retries: Retries, error: Exception) -> bool:
    """Whether a failure is, by a policy that is asked: see `FlowNode.judged`."""
    judge = retries.retry_if if isinstance(retries, RetryPolicy) else None
    return judge is not None and bool(judge(error))
