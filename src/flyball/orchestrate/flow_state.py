"""FlowState: what a flow has come to, as the fold of its events. It belongs to the flow's machine alone."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

from msgspec import Struct

from flyball.core.correlation import Correlation
from flyball.core.errors import SystemError  # noqa: A004 - pagantic's name for it
from flyball.core.events import Outcome, StepEnded
from flyball.core.flow import FlowNode
from flyball.core.signals import Signal
from flyball.core.usage import RunUsage

FlowPosition: TypeAlias = Literal["run", "end", "done"]
"""Where a flow stands: it runs its steps, its end is owed, or it is over."""


class Ready(Struct, frozen=True):
    """A leaf that has its input and no output yet. `history` is the conversation that led to it."""

    path: str
    input: Any
    history: str = ""
    attempt: int = 1
    tries: int = 0
    """How often it has failed since the flow was last begun or tried again."""
    after: float = 0.0
    """When it may be tried again."""


class Opened(Struct):
    """A composed node that has begun and is not over."""

    node: FlowNode
    input: Any
    history: str = ""
    outputs: list[Any] = []
    """What its steps gave, where that is kept until all have."""
    ended: list[bool] = []
    begun: int = 0
    """How many of its steps were begun, from the first on."""
    over: int = 0
    """How many of them have ended."""
    asked: int = 0
    """How often it was asked whether it has enough."""
    held: tuple[int, ...] = ()
    """The steps that are to be tried again, in another attempt of the flow, and wait for their turn."""


class Left(Struct, frozen=True):
    """What stood under a step of a redundant node when it failed: another attempt goes on from there."""

    opened: dict[str, Opened]
    ready: tuple[Ready, ...]


class FlowState(Struct):
    """A flow's state.

    What it shares with the state of an agent's loop has the same names: whoever only asks about parents,
    children, signals and the end need not know which of the two it is.
    """

    loop_id: str
    flow: FlowNode
    input: Any = None
    at: FlowPosition = "run"
    started_at: float = 0.0
    timeout: float | None = None
    deadline: float | None = None
    correlation: Correlation = Correlation()
    metadata: dict[str, Any] | None = None
    parent_loop_id: str = ""
    depth: int = 0
    max_depth: int | None = None
    identity: dict[str, Any] | None = None

    epoch: int = 0
    attempt: int = 1
    usage: RunUsage = RunUsage()
    ready: dict[str, Ready] = {}
    """The leaves to be run, by their paths, in the order in which they became so."""
    opened: dict[str, Opened] = {}
    """The composed nodes that are under way, by their paths."""
    ended: dict[str, StepEnded] = {}
    """How each leaf ended last, by its path."""
    dropped: tuple[str, ...] = ()
    """The loops of leaves that nobody waits for any more."""
    wanting: dict[str, Opened] = {}
    """The redundant nodes that are over, and of whose steps some have failed, by their paths."""
    left: dict[str, Left] = {}
    """What those steps had come to, by their paths."""
    tried: dict[str, int] = {}
    """How often leaves were tried before what they are given was to be made anew, by their paths."""

    paused: bool = False
    pauses: int = 0
    finishing: tuple[str, ...] = ()
    """The leaves that ran when a pause was asked for, and may finish."""
    passed_on: Signal | None = None
    """The pause, or the end of it, that the loops under this one are told of."""
    signals: tuple[str, ...] = ()
    """The ids of the signals that were taken."""
    children: tuple[str, ...] = ()
    """The loops that were begun under this one."""

    outcome: Outcome | None = None
    error: SystemError | None = None
    output: Any = None
