"""What is told of a loop to whoever listens: that it was created, and how it ended."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

from flyball.core.events import Event, Outcome
from flyball.core.forms.semstreams import (
    LoopCancelledEvent,
    LoopCompletedEvent,
    LoopCreatedEvent,
    LoopFailedEvent,
)
from flyball.orchestrate.course import OVER
from flyball.orchestrate.machine import fold
from flyball.orchestrate.projections.loop_entity import cancelled_by, loop_entity, result_of
from flyball.orchestrate.state import State
from flyball.orchestrate.task_facts import (
    max_iterations_of,
    role_of,
    task_id_of,
    told_of,
)

LoopEnded: TypeAlias = LoopCompletedEvent | LoopFailedEvent | LoopCancelledEvent
"""How a loop may end."""

_TAGS = frozenset({"workflow_slug", "workflow_step"})
_ROUTED = _TAGS | {"channel_type", "channel_id", "user_id"}


def lifecycle_payloads(events: Iterable[Event]) -> tuple[LoopCreatedEvent | LoopEnded, ...]:
    """What is told of a loop: its creation, and its end if that is decided (that of its last attempt).

    Raises:
        JournalCorrupt: the events are no journal.
    """
    journal = list(events)
    state = fold(journal)
    ended = loop_ended(state, loop_entity(journal).completed_at or state.started_at)
    return (loop_created(state),) if ended is None else (loop_created(state), ended)


def loop_created(state: State) -> LoopCreatedEvent:
    """That a loop was created."""
    return LoopCreatedEvent(
        loop_id=state.loop_id,
        task_id=task_id_of(state),
        role=role_of(state),
        model=state.spec.model,
        max_iterations=max_iterations_of(state),
        created_at=state.started_at,
        **told_of(state, _TAGS | {"context_request_id"}),
    )


def loop_ended(state: State, at: float) -> LoopEnded | None:
    """How a loop ended, at this time; None of one whose outcome is not decided."""
    if state.at not in OVER:
        return None
    if state.outcome is Outcome.CANCELLED:
        return LoopCancelledEvent(
            loop_id=state.loop_id,
            task_id=task_id_of(state),
            cancelled_by=cancelled_by(state),
            cancelled_at=at,
            **told_of(state, _TAGS),
        )
    if state.outcome is Outcome.SUCCESS:
        return LoopCompletedEvent(
            loop_id=state.loop_id,
            task_id=task_id_of(state),
            role=role_of(state),
            result=result_of(state),
            model=state.spec.model,
            iterations=state.iterations,
            tokens_in=state.usage.input_tokens,
            tokens_out=state.usage.output_tokens,
            parent_loop=state.parent_loop_id,
            completed_at=at,
            **told_of(state, _ROUTED),
        )
    return LoopFailedEvent(
        loop_id=state.loop_id,
        task_id=task_id_of(state),
        reason=state.error.code if state.error is not None else "",
        error=state.error.message if state.error is not None else "",
        role=role_of(state),
        model=state.spec.model,
        iterations=state.iterations,
        tokens_in=state.usage.input_tokens,
        tokens_out=state.usage.output_tokens,
        failed_at=at,
        **told_of(state, _ROUTED),
    )
