"""What filters found in a loop's requests and answers, and what was done about it."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import Any

from msgspec import Struct

from flyball.core.events import AnswerReviewed, Event, Forked, Started, TurnPrepared
from flyball.core.violation import Action, Finding, Severity
from flyball.orchestrate.permissions import channel_of, owner_of


class Direction(StrEnum):
    """Where it was found."""

    REQUEST = "request"
    RESPONSE = "response"


class PolicyViolation(Struct, frozen=True):
    """One violation of a policy. The text that it is about is not in it.

    `id` is the same each time: the loop, the event's number in its journal, and which of that event's it is.
    `by` is the interceptor in which the filter stands. `user_id`, `session_id` and `channel` are empty where
    they are not known.
    """

    id: str
    loop_id: str
    number: int
    turn: int
    at: float
    direction: Direction
    by: str
    filter: str
    kind: str
    severity: Severity
    action: Action
    count: int = 1
    user_id: str = ""
    session_id: str = ""
    channel: str = ""


def violations(events: Iterable[Event]) -> tuple[PolicyViolation, ...]:
    """The violations of an agent's journal, in their order.

    What stays in the history is looked at in every turn: it is told once, when it is found first, and again
    only where it was blocked. A fork has those since it was forked.
    """
    told: list[PolicyViolation] = []
    known: set[tuple[str, str, str]] = set()
    loop_id = session_id = ""
    metadata: dict[str, Any] | None = None
    for number, event in enumerate(events):
        match event:
            case Started():
                loop_id, metadata = event.loop_id, event.metadata
                session_id = event.correlation.session_id
            case Forked():
                loop_id = event.loop_id
                metadata = metadata if event.metadata is None else event.metadata
                told.clear()  # those were the other loop's
                known.clear()
            case TurnPrepared(violations=found) | AnswerReviewed(violations=found) if found:
                direction = Direction.REQUEST if isinstance(event, TurnPrepared) else Direction.RESPONSE
                for place, one in enumerate(found):
                    if _is_old(one, known):
                        continue
                    told.append(
                        PolicyViolation(
                            f"{loop_id}/{number}/{place}",
                            loop_id,
                            number,
                            event.turn,
                            event.at,
                            direction,
                            one.by,
                            one.filter,
                            one.kind,
                            one.severity,
                            one.action,
                            one.count,
                            owner_of(metadata),
                            session_id,
                            channel_of(metadata),
                        )
                    )
                known.update([(one.by, one.filter, one.kind) for one in found])
            case _:
                pass
    return tuple(told)


def _is_old(found: Finding, known: set[tuple[str, str, str]]) -> bool:
    """Whether it was told in an earlier turn: `again` alone is not enough, the filter may be new here."""
    if not found.again or found.action is Action.BLOCKED:
        return False
    return (found.by, found.filter, found.kind) in known
