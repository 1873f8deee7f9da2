"""LoopCreatedEvent and the three ways to end: what is told of a loop to whoever listens."""

from __future__ import annotations

from typing import ClassVar

from flyball.core.events import Outcome
from flyball.core.forms.semstreams.keyed import Always, Payload
from flyball.core.forms.semstreams.kinds import Moment
from flyball.core.forms.semstreams.types import Category


class LoopCreatedEvent(Payload, frozen=True, kw_only=True):
    """A loop was created."""

    NAME: ClassVar[str] = Category.LOOP_CREATED

    loop_id: Always[str] = ""
    task_id: Always[str] = ""
    role: Always[str] = ""
    model: Always[str] = ""
    workflow_slug: str = ""
    workflow_step: str = ""
    context_request_id: str = ""
    max_iterations: Always[int] = 0
    created_at: Always[Moment] = None

    def validate(self) -> None:
        """Check that it names the loop and the task; raises InvalidMessage."""
        self.require("loop_id", "task_id")


class LoopCompletedEvent(Payload, frozen=True, kw_only=True):
    """A loop ended well. Its parent stands under `parent_loop`, here alone."""

    NAME: ClassVar[str] = Category.LOOP_COMPLETED

    loop_id: Always[str] = ""
    task_id: Always[str] = ""
    outcome: Always[str] = Outcome.SUCCESS
    role: Always[str] = ""
    result: Always[str] = ""
    model: Always[str] = ""
    iterations: Always[int] = 0
    tokens_in: Always[int] = 0
    tokens_out: Always[int] = 0
    parent_loop: str = ""
    workflow_slug: str = ""
    workflow_step: str = ""
    completed_at: Always[Moment] = None
    channel_type: str = ""
    channel_id: str = ""
    user_id: str = ""

    def validate(self) -> None:
        """Check that it names the loop and the task, and what its outcome is; raises InvalidMessage."""
        self.require("loop_id", "task_id")
        self.require_one_of("outcome", (Outcome.SUCCESS,))


class LoopFailedEvent(Payload, frozen=True, kw_only=True):
    """A loop failed: `reason` is the error's code, where it is ours, and `error` says what happened."""

    NAME: ClassVar[str] = Category.LOOP_FAILED

    loop_id: Always[str] = ""
    task_id: Always[str] = ""
    outcome: Always[str] = Outcome.FAILED
    reason: Always[str] = ""
    error: Always[str] = ""
    role: Always[str] = ""
    model: Always[str] = ""
    iterations: Always[int] = 0
    tokens_in: Always[int] = 0
    tokens_out: Always[int] = 0
    workflow_slug: str = ""
    workflow_step: str = ""
    failed_at: Always[Moment] = None
    channel_type: str = ""
    channel_id: str = ""
    user_id: str = ""

    def validate(self) -> None:
        """Check that it names the loop and the task, and what its outcome is; raises InvalidMessage."""
        self.require("loop_id", "task_id")
        self.require_one_of("outcome", (Outcome.FAILED,))


class LoopCancelledEvent(Payload, frozen=True, kw_only=True):
    """A loop was cancelled: by a user, or by `timeout`."""

    NAME: ClassVar[str] = Category.LOOP_CANCELLED

    loop_id: Always[str] = ""
    task_id: Always[str] = ""
    outcome: Always[str] = Outcome.CANCELLED
    cancelled_by: Always[str] = ""
    workflow_slug: str = ""
    workflow_step: str = ""
    cancelled_at: Always[Moment] = None

    def validate(self) -> None:
        """Check that it names the loop and the task, and what its outcome is; raises InvalidMessage."""
        self.require("loop_id", "task_id")
        self.require_one_of("outcome", (Outcome.CANCELLED,))
