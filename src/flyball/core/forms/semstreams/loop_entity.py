"""LoopEntity: a loop as SemStreams keeps it. A value: whatever changes it gives another."""

from __future__ import annotations

from typing import ClassVar

from msgspec.structs import replace

from flyball.core.errors import IllegalTransition, InvalidMessage, IterationLimit
from flyball.core.events import Stage
from flyball.core.forms.semstreams.keyed import Always, Keyed
from flyball.core.forms.semstreams.kinds import Moment, Object, Results
from flyball.core.limits import Limits

MAX_ITERATIONS = Limits().max_iterations or 20
"""How many iterations a loop has where nobody says."""


class LoopEntity(Keyed, frozen=True, kw_only=True):
    """A loop. `state` is a `Stage` if it is valid; `pending_tool_results` are those of an unfinished turn."""

    NAME: ClassVar[str] = "loop_entity"

    id: Always[str] = ""
    task_id: Always[str] = ""
    state: Always[str] = ""
    role: Always[str] = ""
    model: Always[str] = ""
    iterations: Always[int] = 0
    max_iterations: Always[int] = 0
    pending_tool_results: Results = None
    started_at: Moment = None
    timeout_at: Moment = None
    parent_loop_id: str = ""
    depth: int = 0
    max_depth: int = 0
    pause_requested: bool = False
    pause_requested_by: str = ""
    state_before_pause: str = ""
    cancelled_by: str = ""
    cancelled_at: Moment = None
    user_id: str = ""
    channel_type: str = ""
    channel_id: str = ""
    workflow_slug: str = ""
    workflow_step: str = ""
    outcome: str = ""
    result: str = ""
    error: str = ""
    completed_at: Moment = None
    identity: Object = None

    @classmethod
    def new(cls, id: str, task_id: str, role: str, model: str, max_iterations: int = 0) -> LoopEntity:  # noqa: A002 - the field's name
        """A loop that begins; without a positive number of iterations it has 20."""
        most = max_iterations if max_iterations > 0 else MAX_ITERATIONS
        return cls(id=id, task_id=task_id, state=Stage.EXPLORING, role=role, model=model, max_iterations=most)

    @property
    def is_over(self) -> bool:
        """Whether its state is a terminal one."""
        return self.state in list(Stage) and Stage(self.state).is_terminal

    def increment_iteration(self) -> LoopEntity:
        """The loop after one more iteration.

        Raises:
            IterationLimit: it has had all of them.
        """
        if self.iterations >= self.max_iterations:
            raise IterationLimit(
                f"max iterations ({self.max_iterations}) reached in loop {self.id!r}",
                limit="max_iterations",
                allowed=self.max_iterations,
            )
        return replace(self, iterations=self.iterations + 1)

    def transition_to(self, state: str) -> LoopEntity:
        """The loop in another state; in its own it stays as it is.

        Raises:
            InvalidMessage: there is no such state.
            IllegalTransition: its state is a terminal one.
        """
        moved = replace(self, state=state)
        moved.require_one_of("state", tuple(Stage))
        if self.is_over and state != self.state:
            raise IllegalTransition(
                f"cannot transition from terminal state {self.state!s} to {state!s} in loop {self.id!r}",
                before=self.state,
                after=state,
            )
        return moved

    def validate(self) -> None:
        """Check that it has an id, a valid state, and iterations; raises InvalidMessage."""
        self.require("id")
        self.require_one_of("state", tuple(Stage))
        if self.max_iterations <= 0:
            raise InvalidMessage(
                f"max_iterations in a loop_entity must be greater than 0; it is {self.max_iterations}",
                field="max_iterations",
            )
