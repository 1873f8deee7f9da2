"""How often a step of a plan is tried again, as JSON: a number, or an object with what a policy says."""

from __future__ import annotations

from typing import Any, cast

from msgspec.structs import asdict

from flyball.core.errors import PlanRejected, UserError
from flyball.core.forms.fields import Fields, malformed
from flyball.core.messages import JSON
from flyball.inference.retry_policy import RetryPolicy
from flyball.orchestrate.flow.retrying import Retries

_NUMBERS = ("max_retries", "backoff", "factor", "max_backoff", "jitter")
"""What a step is tried again by; all else of a policy is about model calls."""


def retries_to_json(retries: Retries | None) -> JSON:
    """Retries as JSON: `retries_from_json` gives the same back.

    Raises:
        PlanRejected: they have a retry_if, which is a function.
    """
    if not isinstance(retries, RetryPolicy):
        return retries
    if retries.retry_if is not None:
        raise PlanRejected(
            "a RetryPolicy of a plan can have no retry_if, which cannot be written down: give it to the "
            "executor",
            limit="retries",
        )
    return {name: value for name, value in asdict(retries).items() if name in _NUMBERS and value is not None}


def retries_from_json(fields: Fields, key: str) -> Retries | None:
    """Retries from JSON; None where there are none.

    Raises:
        InvalidMessage: they are malformed.
    """
    given: Any = fields.peek(key)
    if not isinstance(given, dict):
        return fields.whole(key)
    inner = Fields(fields.any(key), fields.place(key))
    numbers: dict[str, Any] = {"max_retries": inner.whole("max_retries")}
    numbers |= {name: inner.number(name) for name in _NUMBERS[1:]}
    if unknown := inner.rest():
        name = next(iter(unknown))
        raise malformed(inner.place(name), "left out: there is no such key here", unknown[name])
    try:
        return RetryPolicy(**{name: value for name, value in numbers.items() if value is not None})
    except UserError as error:
        raise malformed(fields.place(key), f"a policy ({error.message})", cast("JSON", given)) from error
