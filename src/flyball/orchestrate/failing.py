"""What a user's function failed with, as an error of the taxonomy."""

from __future__ import annotations

from flyball.core.errors import FlyballError, RuleFailed
from flyball.tool.result import describe


def as_rule(error: Exception, what: str) -> FlyballError:
    """The error itself, if it is one of ours; else a RuleFailed that says what failed, and how."""
    if isinstance(error, FlyballError):
        return error
    failure = RuleFailed(f"{what}: {describe(error)}", retryable=False)
    failure.__cause__ = error
    return failure
