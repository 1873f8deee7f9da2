"""How sure one may be of a run's answer, from what is recorded of it: pagantic's confidence, and its source.

- `voting`: how much of the replicas agree; that is the vote's own to say (`patterns.redundant`).
- `validation`: which part of the rules hold; where rules of the user's looked at the answer.
- `retrieval`: how relevant what was looked up is; where knowledge was asked.
The first of them that there is counts. A chat without any of them has none.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from flyball.core.errors import RuleFailed, SystemError, ValidationFailure  # noqa: A004 - pagantic's name
from flyball.core.events import Admitted, Event, TurnPrepared, TurnSettled

VOTING = "voting"
VALIDATION = "validation"
RETRIEVAL = "retrieval"


def confidence_in(
    events: Sequence[Event], error: SystemError | None, *, ruled: bool
) -> tuple[float | None, str]:
    """The confidence in what a run gave, and where it comes from; None and an empty text if there is none.

    `ruled`: rules of the user's have a say about its answers. Of a run that failed (`error`) there is one
    only where an answer was found wanting.
    """
    settled = next((event for event in reversed(events) if isinstance(event, TurnSettled)), None)
    if ruled and settled is not None and (error is None or error.category == ValidationFailure.category):
        return (1.0 if error is None else _holding(error)), VALIDATION
    if error is None and (relevance := _relevance(events)) is not None:
        return relevance, RETRIEVAL
    return None, ""


def _holding(error: SystemError) -> float:
    """Which part of the rules an answer follows that was refused; nothing is known of one without rules."""
    details: dict[str, Any] = error.details or {}
    broken, asked = details.get("rules"), details.get("asked")
    if error.code != RuleFailed.code or not isinstance(broken, list) or not isinstance(asked, int):
        return 0.0
    return max(0.0, 1 - len(broken) / asked) if asked else 0.0  # pyright: ignore[reportUnknownArgumentType]


def _relevance(events: Sequence[Event]) -> float | None:
    """How relevant what the answer was given with is: that of its turn, or else that of the run."""
    for event in reversed(events):
        if isinstance(event, TurnPrepared | Admitted) and event.relevance is not None:
            return event.relevance
    return None
