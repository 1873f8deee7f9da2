"""Effects: what a loop owes the world. They follow from its state alone, and have the same id each time.

An id is `loop/attempt/turn/kind/index`. Whoever holds the journal can say which effects are owed; a driver
starts those that are not running and cancels those that are owed no longer.
"""

from __future__ import annotations

from typing import Any, TypeAlias

from msgspec import Struct

from flyball.core.errors import SystemError  # noqa: A004 - pagantic's name for it
from flyball.core.events import Outcome
from flyball.core.signals import Signal, SignalType
from flyball.core.spec import Purpose


class _Effect(Struct, frozen=True, omit_defaults=True, repr_omit_defaults=True, tag_field="effect", gc=False):
    id: str


class Admit(_Effect, frozen=True, tag="admit"):
    """Run the input guardrails and the prompt functions."""


class Prepare(_Effect, frozen=True, tag="prepare"):
    """Prepare a turn: which tools are on offer, and whether and how what is sent differs from the history."""

    turn: int


class Infer(_Effect, frozen=True, tag="infer"):
    """Call a model, for a purpose: the agent's own for a turn; others may be bound for the rest."""

    turn: int
    purpose: Purpose = "turn"


class Review(_Effect, frozen=True, tag="review"):
    """Show the answer to response interceptors and run conditions, before anything follows from it."""

    turn: int


class Judge(_Effect, frozen=True, tag="judge"):
    """Decide about the turn's calls that need it: filters first, then the approval callback."""

    turn: int
    indices: tuple[int, ...]


class Execute(_Effect, frozen=True, tag="execute"):
    """Run one tool call. `once`: record that it starts before it does."""

    turn: int
    index: int
    once: bool = False


class Settle(_Effect, frozen=True, tag="settle"):
    """Parse and validate the turn's answer."""

    turn: int


class Wait(_Effect, frozen=True, tag="wait"):
    """Wait: for one of these signals, for the results of these calls, or until a time."""

    signals: tuple[SignalType, ...] = ()
    until: float | None = None
    calls: tuple[str, ...] = ()


class Deliver(_Effect, frozen=True, tag="deliver"):
    """Do what must happen at the end, before the loop is over."""


class End(_Effect, frozen=True, tag="end"):
    """Write down how it ended; before that, tell those whom it concerns.

    `cancels` are the child loops to be cancelled, `editor` is the agent that goes on from the answer. Both
    may be done twice: the signal has the same id each time, and so has the editor's loop.
    """

    outcome: Outcome
    error: SystemError | None = None
    cancels: tuple[str, ...] = ()
    editor: str = ""


Effect: TypeAlias = Admit | Prepare | Infer | Review | Judge | Execute | Settle | Wait | Deliver | End


class RunStep(_Effect, frozen=True, tag="run_step"):
    """Run a step of a flow with its input. `history` is the loop whose conversation it may go on with.

    It begins no sooner than at `after`: a step that is tried again may have to wait.
    """

    path: str
    input: Any = None
    attempt: int = 1
    loop_id: str = ""
    """The loop that it is to be run as, where it is one."""
    history: str = ""
    after: float = 0.0


class SignalChild(_Effect, frozen=True, tag="signal_child"):
    """Pass a signal on to a loop under the flow. It may be done twice: the signal has the same id."""

    loop_id: str
    signal: Signal


FlowEffect: TypeAlias = RunStep | SignalChild | Wait | End
