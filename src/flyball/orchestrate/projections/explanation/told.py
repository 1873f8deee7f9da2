"""What an explanation is: data, for whoever shows it."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

from msgspec import Struct

from flyball.core.errors import SystemError  # noqa: A004 - pagantic's name for it
from flyball.core.messages import Message
from flyball.core.usage import RunUsage
from flyball.inference.rendered import Prompt
from flyball.inference.request import Request
from flyball.orchestrate.tool_record import ToolCallRecord

Action: TypeAlias = Literal[
    "resume", "retry", "replay", "continue", "fork", "approve", "reject", "answer", "explain"
]
"""What may be done with a loop: go on with it, try it again, give its answer again, go on talking, fork it,
let calls run or refuse them, give a call's result, or look at a loop under it."""


class Turn(Struct, frozen=True):
    """One model call. `sent` is the request; without `answer` and `error` nothing was recorded of its end.

    Where middleware called the model several times, `earlier` are the requests before the last; where it did
    not call it at all, `called` is false and `sent` is what would have been sent without it.

    `prompts` is what the engine made of the request, where it puts that into words of its own (see
    `orchestrate.rendering`); `note` says why that cannot be told.
    """

    number: int
    attempt: int
    sent: Request
    answer: Message | None = None
    error: SystemError | None = None
    partial: Message | None = None
    duration: float = 0.0
    tools: tuple[ToolCallRecord, ...] = ()
    decided: tuple[str, ...] = ()
    prompts: tuple[Prompt, ...] = ()
    note: str = ""
    earlier: tuple[Request, ...] = ()
    called: bool = True


class Next(Struct, frozen=True):
    """Something that may be done with the loop, and what it is good for.

    `calls` are the ids of the calls that it is about: those that wait for an approval, or the one whose
    result is to be given. `turn` is the turn after which it is forked (0: from its beginning), `loop_id`
    the loop under it that is to be looked at.
    """

    action: Action
    what: str
    calls: tuple[str, ...] = ()
    turn: int | None = None
    loop_id: str = ""


class FlowStep(Struct, frozen=True):
    """A step of a flow, as it is told: one that has ended, or (`open`) one that is owed."""

    path: str
    name: str
    kind: str
    at: float = 0.0
    duration: float = 0.0
    attempt: int = 1
    run: str = ""
    """The loop that it was, or is."""
    output: Any = None
    error: SystemError | None = None
    usage: RunUsage = RunUsage()
    open: bool = False


class FlowTold(Struct, frozen=True):
    """What is told of a flow beside what is told of any loop."""

    input: Any
    output: Any
    usage: RunUsage
    steps: tuple[FlowStep, ...]


class Explanation(Struct, frozen=True):
    """All about a loop. `verdict` says in a sentence what decided how it stands.

    A flow has no turns, and its `agent` is its name: what there is to tell of it besides is `flow`.
    """

    run: str
    agent: str
    model: str
    phase: str
    stage: str
    verdict: str
    turns: tuple[Turn, ...]
    next: tuple[Next, ...]
    error: SystemError | None = None
    before: tuple[str, ...] = ()
    """What was decided before the first turn."""
    note: str = ""
    """Why it cannot be told what the engine made of the requests, if it cannot."""
    flow: FlowTold | None = None
