"""What a user's function failed with, as an error of the taxonomy; and what is no failure of the run."""

from __future__ import annotations

from flyball.core.errors import FlyballError, LoopTakenOver, RuleFailed
from flyball.tool.result import describe


def as_rule(error: Exception, what: str) -> FlyballError:
    """The error itself, if it is one of ours; else a RuleFailed that says what failed, and how.

    Raises:
        LoopTakenOver: see `heed_takeover`.
    """
    heed_takeover(error)
    if isinstance(error, FlyballError):
        return error
    failure = RuleFailed(f"{what}: {describe(error)}", retryable=False)
    failure.__cause__ = error
    return failure


def heed_takeover(error: Exception) -> None:
    """Do nothing, unless a loop that a function had begun was taken over.

    So somebody else is at the same thing, and what comes of it is his to record: it is no failure of the run.

    Raises:
        LoopTakenOver: it was.
    """
    if isinstance(error, LoopTakenOver):
        raise error
