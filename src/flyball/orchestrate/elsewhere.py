"""Driver: runs loops somewhere else than in the caller's task, and what a caller sees of them there.

A caller who only wants the result has it from `run`. One who streams or steps follows the loop:

- The **journal** is the truth there too: steps, messages, usage and the result are read from it.
- **Deltas** are the pieces of a model call's answer, on their way to whoever follows. Nothing rests on
  them. They may be lost, come twice or out of order; a call that is made again has deltas of its own. What
  they leave open is completed from the recorded answer (`flyball.orchestrate.pieces`).
- **Signals** go into the journal, by compare-and-set, so that who sends one knows whether it was taken.

A loop that is driven elsewhere does not wait for who follows it: it may be ahead of what was read, and it
goes on when nobody reads.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from typing import Protocol, runtime_checkable

from msgspec import Struct

from flyball.core.clock import Clock
from flyball.core.deferred import DeferredToolResult
from flyball.core.errors import DepsError, UserError
from flyball.core.events import Stage, Started
from flyball.core.messages import ToolResult
from flyball.core.signals import Signal
from flyball.inference.stream import StreamEvent
from flyball.orchestrate.bindings import Bindings
from flyball.orchestrate.journal import Journal
from flyball.orchestrate.state import State


class Delta(Struct, frozen=True, omit_defaults=True):
    """One piece of a model call's answer.

    `effect` is the id of the Infer that it answers, which names loop, attempt and turn. `call` is one
    carrying out of it, and differs from all others: a crash, or a command that came twice, makes more than
    one. `number` counts the pieces of a call from 0, without gaps.
    """

    effect: str
    turn: int
    call: str
    number: int
    event: StreamEvent


class Following(Protocol):
    """A loop that is driven elsewhere, as somebody hears of it."""

    journal: Journal
    """The journal that it is in."""
    length: int
    """How many events it had when it was begun or joined: what comes after them is news."""

    async def news(self, length: int) -> Sequence[Delta]:
        """Wait until the loop has more than `length` events, or deltas have come; gives these, or none.

        Raises:
            FlyballError: the driver can go on no longer.
        """
        ...

    async def signal(self, signal: Signal) -> Stage:
        """Say something to the loop; recorded when this returns, with the stage that it is in then.

        Raises:
            SignalRefused: it does not fit where the loop stands.
        """
        ...


@runtime_checkable
class Driver(Protocol):
    """Runs loops somewhere else than in the caller's task."""

    async def answer(
        self, loop_id: str, results: Sequence[DeferredToolResult | ToolResult], wanted: Started | None = None
    ) -> Stage:
        """Give a loop results of calls that wait for them; recorded when this returns, with its stage then.

        All of them are taken, or none. One that was taken before is not taken again, and that is no error.

        Raises:
            LoopNotFound: there is no such loop.
            LoopMismatch: the loop is another one than the `wanted` one.
            AnswerRefused: a result is of no call that waits, or of one that has another result.
        """
        ...

    async def run(
        self, bindings: Bindings, journal: Journal | None, started: Started, clock: Clock
    ) -> tuple[Journal, State]:
        """Run a loop to its end (or to where it waits); gives the journal it is in and its state."""
        ...

    def join(
        self,
        bindings: Bindings,
        journal: Journal | None,
        started: Started,
        clock: Clock,
        *,
        pieces: bool = True,
    ) -> AbstractAsyncContextManager[Following]:
        """Begin a loop, or join the one that has this id, and hear of it until the block is left.

        Without `pieces` there are no deltas: its model calls are made whole, unless somebody else listens.

        Raises:
            LoopMismatch: the id belongs to a loop with another prompt, history or spec.
        """
        ...


def check_deps(bindings: Bindings) -> None:
    """Check that a run which is handed over has no dependencies of its own. The agent's are no matter.

    Raises:
        DepsError: it has; they do not travel.
    """
    if bindings.deps is not bindings.stages.own_deps:
        raise DepsError("deps= does not travel to another process: bind them where the workers run")


def check_nothing_lent(bindings: Bindings) -> None:
    """Check that a run which is handed over to workers brings no code of its own: they have the agent's.

    Raises:
        UserError: it does; nobody would ask it.
    """
    if bindings.lent:
        raise UserError(
            f"{' and '.join(bindings.lent)} cannot travel to another process, and would not be asked there: "
            "put it onto the agent that the workers have"
        )
