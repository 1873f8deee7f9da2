"""Runtime events: what is told of a run to those who watch it, as it happens.

One vocabulary for all of them: hooks are called with it, the event bus carries it, traces, logs and spans
are made of it. Each is a frozen struct that can be written as JSON, with `type`, `run_id` and
`parent_run_id`; the names and fields of the three that gollem has are gollem's. They follow from a loop's
journal alone (see `flyball.orchestrate.projections.runtime_events`): nothing is told that is not recorded, or
owed by what is. Times are seconds since the epoch.

Each kind says which of pagantic's layers it is of, and what an event log calls it there: `LAYER`, `ACTION`.
"""

from __future__ import annotations

from typing import ClassVar, Literal, TypeAlias

from msgspec import Struct

from flyball.core.compaction import ContextCompaction
from flyball.core.correlation import Correlation
from flyball.core.errors import SystemError  # noqa: A004 - pagantic's name for it
from flyball.core.messages import Message, ToolResult
from flyball.core.phases import Phase
from flyball.core.settings import ModelSettings
from flyball.core.spec import Purpose
from flyball.core.usage import RunUsage

RunKind: TypeAlias = Literal["agent", "flow"]
"""What runs."""


class RuntimeEvent(Struct, frozen=True, kw_only=True, tag_field="type", repr_omit_defaults=True, gc=False):
    """What all of them have. Who subscribes to this class hears all."""

    MOMENT: ClassVar[str] = "at"
    LAYER: ClassVar[str] = "orchestrate"
    ACTION: ClassVar[str] = ""

    run_id: str
    parent_run_id: str = ""
    agent: str = ""
    """The agent that runs, or the flow."""
    correlation: Correlation = Correlation()
    """Which request, session, trace, span, step, model request and tool call it is of."""

    @property
    def type(self) -> str:
        """What happened, such as `run_started`."""
        return str(self.__struct_config__.tag)

    @property
    def occurred_at(self) -> float:
        """When it happened."""
        return getattr(self, self.MOMENT)


# The run


class RunStartedEvent(RuntimeEvent, frozen=True, kw_only=True, tag="run_started"):
    """A run began: a new one, a fork, or another attempt at one that had failed. Not one that is resumed."""

    MOMENT: ClassVar[str] = "started_at"
    ACTION: ClassVar[str] = "run_start"

    prompt: str
    started_at: float
    kind: RunKind = "agent"


class RunCompletedEvent(RuntimeEvent, frozen=True, kw_only=True, tag="run_completed"):
    """A run is over, well or badly: then `error` says why, and `failure` with the code of it."""

    MOMENT: ClassVar[str] = "completed_at"
    ACTION: ClassVar[str] = "run"

    success: bool
    error: str = ""
    started_at: float
    completed_at: float
    failure: SystemError | None = None
    usage: RunUsage = RunUsage()
    kind: RunKind = "agent"


class PhaseChangedEvent(RuntimeEvent, frozen=True, kw_only=True, tag="phase_changed"):
    """The run went from one phase of its lifecycle to another: in which attempt, and why."""

    ACTION: ClassVar[str] = "transition"

    at: float
    from_state: Phase
    to_state: Phase
    attempt: int = 1
    reason: str = ""


# Its turns


class TurnStartedEvent(RuntimeEvent, frozen=True, kw_only=True, tag="turn_started"):
    """A turn began: before its tools are prepared and its request is made."""

    ACTION: ClassVar[str] = "turn_start"

    at: float
    turn: int


class TurnEndedEvent(RuntimeEvent, frozen=True, kw_only=True, tag="turn_ended"):
    """All that follows from a turn's answer has happened. `response` is None where there was no answer."""

    ACTION: ClassVar[str] = "turn"

    at: float
    turn: int
    response: Message | None = None


class ModelRequestedEvent(RuntimeEvent, frozen=True, kw_only=True, tag="model_requested"):
    """A model is about to be called with these messages; `prompt` is what the user said last in them."""

    ACTION: ClassVar[str] = "infer_start"

    at: float
    turn: int
    request_id: str
    messages: tuple[Message, ...]
    prompt: str = ""
    purpose: Purpose = "turn"
    model: str = ""
    """The model string that is asked for."""
    provider: str = ""
    """Who serves it, where that is recorded and the model string does not say so."""
    settings: ModelSettings = ModelSettings()
    tool_defs_count: int = 0
    schema_present: bool = False
    grammar_present: bool = False


class ModelRespondedEvent(RuntimeEvent, frozen=True, kw_only=True, tag="model_responded"):
    """A model call ended: with an answer, or with `error` and what had come by then, if anything had."""

    ACTION: ClassVar[str] = "infer"

    at: float
    turn: int
    request_id: str
    response: Message | None
    error: str = ""
    duration: float = 0.0
    model: str = ""
    purpose: Purpose = "turn"
    message_count: int = 0
    """How many messages the loop's request had."""
    asked: str = ""
    """The model string that was asked for; `model` is who answered."""
    provider: str = ""
    failure: SystemError | None = None
    """What `error` says, with its code."""


# Tools


class ToolCalledEvent(RuntimeEvent, frozen=True, kw_only=True, tag="tool_called"):
    """A tool is about to run, with these arguments."""

    MOMENT: ClassVar[str] = "called_at"
    LAYER: ClassVar[str] = "tool"
    ACTION: ClassVar[str] = "tool_start"

    tool_call_id: str
    tool_name: str
    args_json: str
    called_at: float
    turn: int = 0


class ToolEndedEvent(RuntimeEvent, frozen=True, kw_only=True, tag="tool_ended"):
    """A tool call has its result. A deferred one ends when its result comes from outside."""

    LAYER: ClassVar[str] = "tool"
    ACTION: ClassVar[str] = "tool"

    at: float
    turn: int
    tool_call_id: str
    tool_name: str
    result: ToolResult
    duration: float = 0.0


# Who had a say


class GuardrailEvaluatedEvent(RuntimeEvent, frozen=True, kw_only=True, tag="guardrail_evaluated"):
    """A guardrail let the prompt (turn 0) or a turn's request through, or `error` says why not."""

    LAYER: ClassVar[str] = "validate"
    ACTION: ClassVar[str] = "guardrail"

    at: float
    turn: int
    name: str
    passed: bool
    error: str = ""


class OutputValidatedEvent(RuntimeEvent, frozen=True, kw_only=True, tag="output_validated"):
    """An answer was read as the output and validated, or `error` says what is wrong with it."""

    LAYER: ClassVar[str] = "validate"
    ACTION: ClassVar[str] = "validate"

    at: float
    turn: int
    passed: bool
    error: str = ""


class OutputRepairedEvent(RuntimeEvent, frozen=True, kw_only=True, tag="output_repaired"):
    """An answer that could not be read was put right: `repairs` say how; or `error` says why it was not."""

    LAYER: ClassVar[str] = "constraint"
    ACTION: ClassVar[str] = "repair"

    at: float
    turn: int
    succeeded: bool
    error: str = ""
    repairs: tuple[str, ...] = ()


class RunConditionCheckedEvent(RuntimeEvent, frozen=True, kw_only=True, tag="run_condition_checked"):
    """A run condition ends the run with the answer at hand."""

    LAYER: ClassVar[str] = "validate"
    ACTION: ClassVar[str] = "condition"

    at: float
    turn: int
    stopped: bool
    reason: str


class ContextCompactedEvent(RuntimeEvent, frozen=True, kw_only=True, tag="context_compacted"):
    """What is sent was made shorter than what was said."""

    LAYER: ClassVar[str] = "memory"
    ACTION: ClassVar[str] = "compact"

    at: float
    turn: int
    stats: ContextCompaction


class ContextPreparedEvent(RuntimeEvent, frozen=True, kw_only=True, tag="context_prepared"):
    """What the model is told beyond what was said was brought together, for the run (turn 0) or for a turn.

    `added` is how many texts prompt functions and knowledge gave for the run. `notes` say who changed what is
    sent in a turn, and `degraded` which knowledge is missing, and why.
    """

    LAYER: ClassVar[str] = "context"
    ACTION: ClassVar[str] = "context"

    at: float
    turn: int
    added: int = 0
    notes: tuple[str, ...] = ()
    degraded: tuple[str, ...] = ()


# Steps of flows


class StepStartedEvent(RuntimeEvent, frozen=True, kw_only=True, tag="step_started"):
    """A step of a flow is about to run. `path` says where in the flow it stands."""

    ACTION: ClassVar[str] = "step_start"

    at: float
    path: str
    name: str
    kind: str
    attempt: int = 1


class StepEndedEvent(RuntimeEvent, frozen=True, kw_only=True, tag="step_ended"):
    """A step of a flow has ended: well, or with `error`, and `failure` with the code of it.

    `loop_id` is the run that it was, if it was one, and `usage` what was used by that and by what it began.
    """

    ACTION: ClassVar[str] = "step"

    at: float
    path: str
    name: str
    kind: str
    attempt: int = 1
    error: str = ""
    failure: SystemError | None = None
    duration: float = 0.0
    loop_id: str = ""
    usage: RunUsage | None = None
