"""State: what a loop has come to, as the fold of its events.

It belongs to the machine, which alone changes it; everybody else reads. It can be encoded, so that a long
journal need not be folded from its beginning: nothing that only lives in one process has a place here. So
nothing in it can lead back to it, and the garbage collector need not look.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

from msgspec import UNSET, Struct, UnsetType

from flyball.core.carried import Carried
from flyball.core.compaction import CompactionPlan
from flyball.core.correlation import Correlation
from flyball.core.edits import Edit
from flyball.core.errors import SystemError  # noqa: A004 - pagantic's name for it
from flyball.core.events import ChildEnded, ModelAnswered, ModelFailed, Outcome, Stage, TurnSettled
from flyball.core.messages import Message, ToolCall, ToolResult
from flyball.core.spec import LoopSpec
from flyball.core.tools import ToolChoice, ToolDefinition
from flyball.core.usage import RunUsage
from flyball.orchestrate.version import Version

Position: TypeAlias = Literal[
    "admit",
    "prepare",
    "compact",
    "infer",
    "review",
    "judge",
    "execute",
    "settle",
    "repair",
    "approve",
    "deliver",
    "end",
    "done",
]
"""Where a loop stands: which kind of effect it owes next."""

EDGES: Mapping[Position, tuple[Position, ...]] = {
    "admit": ("prepare", "infer", "deliver", "end"),
    "prepare": ("compact", "infer", "deliver", "end"),
    "compact": ("prepare", "deliver", "end"),
    "infer": ("review", "judge", "execute", "settle", "approve", "prepare", "infer", "deliver", "end"),
    "review": ("judge", "execute", "settle", "approve", "prepare", "infer", "deliver", "end"),
    "judge": ("execute", "settle", "approve", "prepare", "infer", "deliver", "end"),
    "execute": ("settle", "approve", "prepare", "infer", "deliver", "end"),
    "settle": ("repair", "judge", "execute", "approve", "prepare", "infer", "deliver", "end"),
    "repair": ("settle", "judge", "execute", "prepare", "infer", "deliver", "end"),
    "approve": ("prepare", "infer", "deliver", "end"),
    "deliver": ("end",),
    "end": ("done",),
    "done": ("prepare", "infer", "deliver", "end"),
}
"""Where a loop can get to by one event, other than staying where it is. The properties of the machine hold it
to this; only a fork, which begins another loop, may go elsewhere."""


class ToolStateBefore(Struct, frozen=True):
    """The states of stateful tools as a turn began."""

    turn: int
    tool_state: dict[str, Any] | None


class Reflections(Struct, frozen=True):
    """How often a reflection has sent a valid output back, and what it still has against the one taken."""

    times: int = 0
    objection: str = ""


class Compaction(Struct, frozen=True):
    """What has come of summing up: a `plan` was made in a turn, and carried out or not.

    `made` is the summary, in the place of the part of the history that it sums up; `made_in` is the turn in
    which it was made, and `covers` how long the history was then. `screened` is in what interceptors would
    have what is remembered sent otherwise, while the plan is carried out; `pin` is the instruction pin of the
    summary, where they changed something in it.
    """

    turn: int
    plan: CompactionPlan
    made: Edit | None = None
    made_in: int = 0
    covers: int = 0
    screened: tuple[Edit, ...] = ()
    pin: str = ""


class State(Struct, gc=False):
    """A loop's state.

    `history` is what the model is sent; it is valid for every provider whenever the position is `infer`
    and when the loop is done. The calls of a turn and their results stand in `calls` and `results` until
    all are answered; then they move into the history together.
    """

    loop_id: str
    spec: LoopSpec
    history: list[Message]
    at: Position = "infer"
    started_at: float = 0.0
    deadline: float | None = None
    prompt: Message | None = None
    correlation: Correlation = Correlation()
    metadata: dict[str, Any] | None = None
    parent_loop_id: str = ""
    depth: int = 0
    asked: Message | None = None
    """The prompt as it was given, where a guardrail has changed it."""
    carried: Carried | None = None
    """What it took over from the run that it goes on from."""

    epoch: int = 0
    attempt: int = 1
    turn: int = 0
    iterations: int = 0
    usage: RunUsage = RunUsage()
    called: list[ModelAnswered | ModelFailed | ChildEnded] = []
    """What came of each model call, those that failed halfway too, and of loops under this one: see
    `spending.spent`."""

    # The turn's calls
    calls: tuple[ToolCall, ...] = ()
    ids: set[str] = set()
    """The ids of all calls in the history."""
    results: list[ToolResult | None] = []
    open: int = 0
    """How many calls have no result yet."""
    outputs: tuple[int, ...] = ()
    """Which calls carry the output."""
    queue: tuple[int, ...] = ()
    """The calls to run, in the order in which they may begin: first those that run beside others."""
    first: int = 0
    """Up to where the queue is answered."""
    awaiting: tuple[int, ...] = ()
    """Which calls wait for a person's approval."""
    once: tuple[int, ...] = ()
    """Which at_most_once calls have started."""
    deferred: tuple[int, ...] = ()
    """Which calls wait for their results from outside."""
    detached: tuple[int, ...] = ()
    """Which calls were asked to move their work to the background."""
    arguments: dict[int, str] | None = None
    """Arguments that a judge changed."""
    offered: tuple[str, ...] | None = None
    """The tools on offer this turn; None means all."""
    definitions: tuple[ToolDefinition, ...] = ()
    """What the model is told of tools this turn, where it is not what the spec has."""
    tool_choice: ToolChoice | None = None
    tool_state: dict[str, Any] | None = None
    """The states of stateful tools, by name. Never changed in place: calls were told of it as it was."""
    turns_tool_state: ToolStateBefore | None = None
    """What they were as the last turn that changed one began."""

    # What is sent, where that is not the history
    sent: Version | None = None
    """The history, as interceptors made it."""
    reached: Version | None = None
    """What reached the model last, where middleware made it something else than what was sent."""
    reviewing: Message | None = None
    """The answer that is being looked at."""
    stopping: str = ""
    """Why a condition ends the run with the answer that is being settled."""
    unread: TurnSettled | None = None
    """How this turn's answer was found unreadable, once a model was asked to put it right."""
    mended: str | None = None
    """What that model made of it, while it is being settled."""

    # How often in a row something had to be asked again
    retries: int = 0
    tool_retries: dict[str, int] = {}
    reflections: Reflections | None = None
    """What a reflection has made of valid outputs, if it has sent one back or had something against it."""
    recent: tuple[str, ...] = ()
    """The calls of the last three turns, newest first: what loop detection compares."""
    rounds: tuple[int, ...] = ()
    """For how many turns the calls have repeated those of one, two and three turns before."""

    # What came from outside
    pausing: bool = False
    paused: bool = False
    finishing: tuple[int, ...] = ()
    """Which calls may have been running when a pause was asked for, and may finish."""
    feedback: tuple[str, ...] = ()
    signals: tuple[str, ...] = ()
    """The ids of the signals that were taken."""
    children: tuple[str, ...] = ()
    """The loops that were begun under this one."""
    stage: Stage | None = None
    """Where somebody moved the stage by hand."""

    # The end
    outcome: Outcome | None = None
    error: SystemError | None = None
    answer: str | None = None
    """The answer as it was given: text, the output call's arguments, or what a tool ended the loop with."""
    answer_tool: str | None = None
    output: Any | UnsetType = UNSET
    """The output, where a validator changed it, or where it waits for approval."""
    output_kind: str = ""
    """The name of its type, where it waits for approval and may be of several."""
    compaction: Compaction | None = None
    """What the history was summed up to, and when that was last tried."""
    identity: dict[str, Any] | None = None
    """As whom it acts."""


def turns_before(state: State) -> int:
    """How many turns were made before this loop began, by the run that it goes on from."""
    return 0 if state.carried is None else state.carried.step
