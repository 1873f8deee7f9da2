"""Trajectory and TrajectoryStep: the way that a loop has gone. Values: whatever adds to one gives another."""

from __future__ import annotations

from enum import StrEnum
from typing import ClassVar

from msgspec.structs import replace

from flyball.core.events import Outcome, Stage
from flyball.core.forms.semstreams.keyed import Always, Keyed
from flyball.core.forms.semstreams.kinds import Calls, Messages, Moment, Object

_OUTCOMES: dict[str, Outcome] = {
    **{str(outcome): outcome for outcome in Outcome},
    Stage.COMPLETE: Outcome.SUCCESS,
    "error": Outcome.FAILED,
}


class StepType(StrEnum):
    """What a step is."""

    MODEL_CALL = "model_call"
    TOOL_CALL = "tool_call"


class TrajectoryStep(Keyed, frozen=True, kw_only=True):
    """One step. `duration` is in milliseconds; `messages` and `tool_calls` are there in full detail only."""

    NAME: ClassVar[str] = "trajectory_step"

    timestamp: Always[Moment] = None
    step_type: Always[str] = ""
    request_id: str = ""
    prompt: str = ""
    response: str = ""
    tokens_in: int = 0
    tokens_out: int = 0
    tool_name: str = ""
    tool_arguments: Object = None
    tool_result: str = ""
    duration: Always[int] = 0
    messages: Messages = ()
    tool_calls: Calls = ()
    model: str = ""

    def validate(self) -> None:
        """Check that its type is known and that it has a time; raises InvalidMessage."""
        self.require_one_of("step_type", tuple(StepType))
        self.require("timestamp")


class Trajectory(Keyed, frozen=True, kw_only=True):
    """All steps of a loop, which are only ever added to, and their totals.

    `duration` is the sum of the steps' until the loop is complete, and from then on the time from its
    beginning to its end; `step_ms` is the sum in either case. `outcome` is as it was given: the examples
    say "complete" where the constants say "success".
    """

    NAME: ClassVar[str] = "trajectory"

    loop_id: Always[str] = ""
    start_time: Always[Moment] = None
    end_time: Moment = None
    steps: Always[tuple[TrajectoryStep, ...]] = ()
    outcome: str = ""
    total_tokens_in: Always[int] = 0
    total_tokens_out: Always[int] = 0
    duration: Always[int] = 0

    @classmethod
    def new(cls, loop_id: str, at: float) -> Trajectory:
        """The trajectory of a loop that begins."""
        return cls(loop_id=loop_id, start_time=at)

    def add_steps(self, *steps: TrajectoryStep) -> Trajectory:
        """The trajectory with more steps."""
        return replace(
            self,
            steps=(*self.steps, *steps),
            total_tokens_in=self.total_tokens_in + sum([step.tokens_in for step in steps]),
            total_tokens_out=self.total_tokens_out + sum([step.tokens_out for step in steps]),
            duration=self.duration + sum([step.duration for step in steps]),
        )

    def complete(self, outcome: str, at: float) -> Trajectory:
        """The trajectory of a loop that has ended."""
        took = max(0, round((at - (self.start_time or 0.0)) * 1000))
        return replace(self, outcome=str(outcome), end_time=at, duration=took)

    def summary(self) -> Trajectory:
        """The same without full messages and tool calls."""
        return replace(self, steps=tuple([replace(step, messages=(), tool_calls=()) for step in self.steps]))

    @property
    def step_ms(self) -> int:
        """How long the steps took together, in milliseconds."""
        return sum([step.duration for step in self.steps])

    @property
    def ended(self) -> Outcome | None:
        """The outcome in our words; None where there is none, or one that nobody knows."""
        return _OUTCOMES.get(self.outcome)

    def validate(self) -> None:
        """Check that it names the loop and when it began, and each of its steps; raises InvalidMessage."""
        self.require("loop_id", "start_time")
        for step in self.steps:
            step.validate()
