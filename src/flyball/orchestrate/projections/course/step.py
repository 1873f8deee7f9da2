"""CourseStep: one thing that happened in a loop."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum

from msgspec import Struct

from flyball.core.events import Event, Forked, Outcome, Reopened, Resumed, SignalReceived
from flyball.core.phases import Phase
from flyball.core.usage import Usage
from flyball.orchestrate.projections.shortened import one_line, short

SHOWN = 60
"""Characters of a call's arguments, and of its result, that are shown."""


class StepKind(StrEnum):
    """What kinds of steps there are."""

    MODEL_CALL = "model_call"
    TOOL_CALL = "tool_call"
    WAIT = "wait"
    """A call whose result is to come from outside, and has not."""
    NOT_RUN = "not_run"
    """A tool call that was answered without being run: there is no such tool, or it may not be called."""
    FLOW_STEP = "flow_step"
    CHECK = "check"
    """An answer that was sent back: the model was asked again."""
    SIGNAL = "signal"
    CHILD = "child"
    CHILD_ENDED = "child_ended"
    RESUMED = "resumed"
    RETRIED = "retried"
    FORKED = "forked"
    END = "end"

    @property
    def takes_time(self) -> bool:
        """Whether it lasts; the others are moments."""
        return self in _LAST


_LAST = frozenset({StepKind.MODEL_CALL, StepKind.TOOL_CALL, StepKind.WAIT, StepKind.FLOW_STEP})


class CourseStep(Struct, frozen=True):
    """One step: what happened, and what is to be said about it.

    - `at` is when it began; `took` how many seconds it took, 0 for a moment, None while it is under way.
    - `ended` says whether its end is recorded: else it is under way, or was cut off when the loop ended.
    - `ok` says whether it came to what it was for; None while that is open.
    - `usage` is there where the model said what was used; `model` is who answered, or is asked.
    - `turn` is the number of the turn that it belongs to, `path` the place of a flow's step in the flow.
    - `call_id` is the tool call that it is about, `loop_id` the loop that was begun by it, is over, or was
      forked from.
    """

    at: float
    kind: StepKind
    what: str
    about: str = ""
    took: float | None = 0.0
    ok: bool | None = True
    ended: bool = True
    usage: Usage | None = None
    turn: int = 0
    model: str = ""
    path: str = ""
    call_id: str = ""
    loop_id: str = ""
    phase: Phase | None = None
    """The phase that an end is: complete, error or cancelled."""


ENDS = {Outcome.SUCCESS: Phase.COMPLETE, Outcome.FAILED: Phase.ERROR, Outcome.CANCELLED: Phase.CANCELLED}


def ordered(steps: Iterable[CourseStep]) -> tuple[CourseStep, ...]:
    """Steps in the order in which they began; of one time, what lasts, then the moments, then the end."""
    return tuple(sorted(steps, key=lambda step: (step.at, not step.kind.takes_time, step.phase is not None)))


def is_taken_over(event: Event, before: Event | None) -> bool:
    """Whether somebody went on with a loop that was under way; `before` is the event before.

    Who tries it again or forks it has to take it over, too: that is no news. Which process it is, a journal
    does not tell.
    """
    return isinstance(event, Resumed) and not isinstance(before, Reopened | Forked)


def said_to_it(event: Event, before: Event | None) -> CourseStep | None:
    """The step that is somebody's doing, and not the loop's own: it was taken over, tried again, told."""
    if is_taken_over(event, before):
        return CourseStep(event.at, StepKind.RESUMED, "resumed", "somebody went on with it")
    if isinstance(event, Reopened):
        return CourseStep(event.at, StepKind.RETRIED, "tried again", event.by and f"by {event.by}")
    if isinstance(event, Forked):
        about = f"from {short(event.source)} after turn {event.turn}"
        return CourseStep(event.at, StepKind.FORKED, "forked", about, turn=event.turn, loop_id=event.source)
    if isinstance(event, SignalReceived):
        signal = event.signal
        words = (signal.by and f"by {signal.by}", one_line(signal.text, 100))
        about = ": ".join([text for text in words if text])
        return CourseStep(event.at, StepKind.SIGNAL, str(signal.type), about, call_id=signal.call_id or "")
    return None
