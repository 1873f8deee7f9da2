"""Events: the recorded facts of a loop. A journal is a list of them, and everything else follows from it.

An event says what happened, never what follows from it: the machine works that out, the same way each time.
All carry `at`, the time in seconds since the epoch. `VERSION` stands in every event that begins a driver's
writing (Started, FlowStarted, Forked, Resumed), so that a reader knows before it reads on whether it can.

Releases write to one loop in turns, while a cluster is brought up to date. So what an earlier one would
misread gets a kind of its own, or a version: a kind that a reader does not have is one of a newer flyball's,
and is left to those who have it. A field that an earlier one may overlook needs neither.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any, TypeAlias

from msgspec import UNSET, Struct, UnsetType

from flyball.core.around import Around
from flyball.core.carried import Carried
from flyball.core.compaction import CompactionPlan, ContextCompaction
from flyball.core.correlation import Correlation
from flyball.core.edits import Edit
from flyball.core.errors import SystemError  # noqa: A004 - pagantic's name for it
from flyball.core.flow import FlowNode
from flyball.core.messages import Message, ToolResult
from flyball.core.signals import Signal
from flyball.core.spec import LoopSpec, Purpose
from flyball.core.tools import ToolDefinition
from flyball.core.usage import CallUsage, RunUsage
from flyball.core.violation import Finding

VERSION = 1
"""The version of the journal's format. A journal with a greater one is refused."""


class Outcome(StrEnum):
    """How a loop ended."""

    SUCCESS = "success"
    FAILED = "failed"
    CANCELLED = "cancelled"


class Stage(StrEnum):
    """SemStreams' ten stages: fluid, except that the terminal ones are final."""

    EXPLORING = "exploring"
    PLANNING = "planning"
    ARCHITECTING = "architecting"
    EXECUTING = "executing"
    REVIEWING = "reviewing"
    PAUSED = "paused"
    AWAITING_APPROVAL = "awaiting_approval"
    COMPLETE = "complete"
    FAILED = "failed"
    CANCELLED = "cancelled"

    @property
    def is_terminal(self) -> bool:
        """Whether nothing can follow, but an explicit retry."""
        return self in (Stage.COMPLETE, Stage.FAILED, Stage.CANCELLED)


class _Event(Struct, frozen=True, omit_defaults=True, repr_omit_defaults=True, tag_field="event", gc=False):
    at: float


class Started(_Event, frozen=True, tag="started"):
    """The loop began: its prompt, the history before it, and its policy."""

    version: int
    loop_id: str
    spec: LoopSpec
    prompt: Message | None = None
    history: tuple[Message, ...] = ()
    correlation: Correlation = Correlation()
    metadata: dict[str, Any] | None = None
    parent_loop_id: str = ""
    depth: int = 0
    carried: Carried | None = None
    """What it takes over from a run that it goes on from; that run's history is `history`."""
    tool_state: dict[str, Any] | None = None
    """What stateful tools begin with, by the names of their states."""
    deadline: float | None = None
    """When the run that it is begun from must be over: it may not take longer than that either."""
    paused: bool = False
    """Whether the run that it is begun from is paused: then it begins so."""
    identity: dict[str, Any] | None = None
    """As whom it acts, with what was handed on to it, as SemStreams writes an identity."""


class Forked(_Event, frozen=True, tag="forked"):
    """From here on this is a loop of its own, which goes on from another's history, with what is changed."""

    version: int
    loop_id: str
    source: str
    turn: int
    spec: LoopSpec
    prompt: Message | None = None
    identity: dict[str, Any] | None = None
    """As whom it acts: what the other was handed on is not its own."""
    metadata: dict[str, Any] | None = None
    """What it is about, where that is not what the other was about."""


class Resumed(_Event, frozen=True, tag="resumed"):
    """A driver took the loop over. The former one can append nothing more."""

    version: int
    epoch: int


class Admitted(_Event, frozen=True, tag="admitted"):
    """The input was looked at: what the model is told, the prompt as it is now, or the refusal.

    `instructions` are what the prompt functions and the knowledge bases said. `passed` are the guardrails
    that let it through; `degraded` says which knowledge is missing, and why, `relevance` how much what was
    found has to do with the prompt, from 0 to 1, where those who were asked say so.
    """

    instructions: tuple[str, ...] = ()
    prompt: Message | None = None
    error: SystemError | None = None
    passed: tuple[str, ...] = ()
    degraded: tuple[str, ...] = ()
    relevance: float | None = None


class TurnPrepared(_Event, frozen=True, tag="turn_prepared"):
    """What a turn's request differs in from what the spec and the history give.

    `tools` are those on offer, `definitions` those of them that the model is told otherwise than the spec has
    it. `edits` are against what was sent last, with what has been said since (see `sending.base`). `skipped`
    says why the model is not called in this turn. `passed` are the guardrails that let it through,
    `notes` say who changed what, and `compactions` how much shorter somebody made it. `degraded` says which
    knowledge is missing, and why, `relevance` how much what was found has to do with what the user said, from
    0 to 1, where those who were asked say so. `compact`: first a model is to sum up what was said, with these
    `edits` of what is remembered; then the turn is prepared again. `violations` are what filters found in
    what was to be sent.
    """

    turn: int
    tools: tuple[str, ...] | None = None
    error: SystemError | None = None
    definitions: tuple[ToolDefinition, ...] = ()
    edits: tuple[Edit, ...] = ()
    skipped: str = ""
    passed: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    compactions: tuple[ContextCompaction, ...] = ()
    degraded: tuple[str, ...] = ()
    compact: CompactionPlan | None = None
    relevance: float | None = None
    violations: tuple[Finding, ...] = ()


class ModelAnswered(_Event, frozen=True, tag="model_answered"):
    """The model's finished message. `notes` say what was made sound in it (such as doubled call ids).

    Only what was said for the purpose of a turn joins the history.
    `around` says what middleware did, if it did anything to the request.
    """

    turn: int
    message: Message
    duration: float = 0.0
    request_id: str | None = None
    notes: tuple[str, ...] = ()
    purpose: Purpose = "turn"
    around: Around | None = None


class ModelFailed(_Event, frozen=True, tag="model_failed"):
    """The model call failed, with whatever had come by then. `around`: as in ModelAnswered."""

    turn: int
    error: SystemError
    partial: Message | None = None
    duration: float = 0.0
    purpose: Purpose = "turn"
    around: Around | None = None


class AnswerReviewed(_Event, frozen=True, tag="answer_reviewed"):
    """The answer was looked at before anything follows from it.

    `message` takes its place, if it was changed. `dropped` says why it is as if it had not been given, `stop`
    why the run ends with it. `notes` say who changed what, `violations` what filters found in it.
    """

    turn: int
    message: Message | None = None
    dropped: str = ""
    stop: str = ""
    error: SystemError | None = None
    notes: tuple[str, ...] = ()
    violations: tuple[Finding, ...] = ()


class Verdict(Struct, frozen=True, omit_defaults=True, repr_omit_defaults=True, gc=False):
    """What was decided about one call: run it (with these arguments, if they were changed), or why not.

    `by` names the filter that refused it, or that gave it its arguments.
    """

    index: int
    allowed: bool
    reason: str = ""
    args_json: str | None = None
    by: str = ""


class CallsJudged(_Event, frozen=True, tag="calls_judged"):
    """The turn's calls were judged, before any of them runs."""

    turn: int
    verdicts: tuple[Verdict, ...]
    error: SystemError | None = None


class ToolStarted(_Event, frozen=True, tag="tool_started"):
    """An at_most_once call is about to run. Written before it does."""

    turn: int
    index: int


class ToolReturned(_Event, frozen=True, tag="tool_returned"):
    """A call's result. `state` is its tool's after it, where that is another than before."""

    turn: int
    index: int
    result: ToolResult
    duration: float = 0.0
    state: Any | UnsetType = UNSET


class TurnSettled(_Event, frozen=True, tag="turn_settled"):
    """The answer was parsed and validated.

    Accepted: `index` is the output call that carries it (None: the text), and `output` stands there only
    if code of the user's made or changed it. Not accepted: `feedback` goes back to the model. `error`:
    nothing more to be done; with feedback, once the retries are used up. `unread` is the number of the
    first candidate that could not be read at all, where a model may be asked to put that right.
    `reflected` is what a reflection had against an output that was valid: the model reads the feedback
    and tries again; if it is accepted all the same, it has tried enough. `kind` names the type of an output
    that waits for approval, where it may be of several.
    """

    turn: int
    accepted: bool
    index: int | None = None
    output: Any | UnsetType = UNSET
    feedback: tuple[str, ...] = ()
    repairs: tuple[str, ...] = ()
    error: SystemError | None = None
    unread: int | None = None
    reflected: str = ""
    kind: str = ""


class StageMoved(_Event, frozen=True, tag="stage_moved"):
    """Somebody moved the stage by hand."""

    stage: Stage


class SignalReceived(_Event, frozen=True, tag="signal_received"):
    """A signal came."""

    signal: Signal


class ChildStarted(_Event, frozen=True, tag="child_started"):
    """A loop is begun under this one. Written before the child's own Started: no child is unknown."""

    loop_id: str
    agent: str = ""


class ChildEnded(_Event, frozen=True, tag="child_ended"):
    """A loop that was begun under this one is over, and what it used counts here.

    Written before the child's own Ended: whoever has seen that one end finds it counted. `call_id` is the
    call that it was begun from, if one was. `spent` are its model calls and those of the loops under it, and
    `requests` how many it made in all: those that failed before anything came have no other trace.
    """

    loop_id: str
    call_id: str = ""
    spent: tuple[CallUsage, ...] = ()
    requests: int = 0


class TimePassed(_Event, frozen=True, tag="time_passed"):
    """The deadline passed."""


class Delivered(_Event, frozen=True, tag="delivered"):
    """What had to happen at the end has happened (or could not: `error`)."""

    error: SystemError | None = None


class Ended(_Event, frozen=True, tag="ended"):
    """The loop is over."""

    outcome: Outcome
    error: SystemError | None = None


class Reopened(_Event, frozen=True, tag="reopened"):
    """A failed loop is tried again, as another attempt. `id` is that of the signal which asked for it."""

    by: str = ""
    id: str = ""


class FlowStarted(_Event, frozen=True, tag="flow_started"):
    """A flow began: its structure and its input. The first event of a journal that is no agent's.

    `deadline` is the time of the run that it was begun from, if that has one.
    """

    version: int
    loop_id: str
    flow: FlowNode
    input: Any = None
    timeout: float | None = None
    correlation: Correlation = Correlation()
    metadata: dict[str, Any] | None = None
    parent_loop_id: str = ""
    depth: int = 0
    max_depth: int | None = None
    deadline: float | None = None
    identity: dict[str, Any] | None = None
    """As whom its steps are run: who hands on to the agents in it."""


class StepEnded(_Event, frozen=True, tag="step_ended"):
    """A step of a flow has ended: with its output, or with an error.

    `path` says where in the flow it stands, `attempt` counts how often it was tried. `loop_id` is the
    loop that it was run as, if it was one, and `usage` what was used by that and by what it began. `again` is
    what was said of a failure that is judged: whether it is worth another try.
    """

    path: str
    output: Any = None
    error: SystemError | None = None
    attempt: int = 1
    loop_id: str = ""
    usage: RunUsage | None = None
    duration: float = 0.0
    again: bool = False


Event: TypeAlias = (
    Started
    | Forked
    | Resumed
    | Admitted
    | TurnPrepared
    | ModelAnswered
    | ModelFailed
    | AnswerReviewed
    | CallsJudged
    | ToolStarted
    | ToolReturned
    | TurnSettled
    | StageMoved
    | SignalReceived
    | ChildStarted
    | ChildEnded
    | TimePassed
    | Delivered
    | Ended
    | Reopened
    | FlowStarted
    | StepEnded
)
