"""What a run gives back."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Generic

from msgspec import Struct
from typing_extensions import TypeVar

from flyball.core.apart import apart, messages_apart
from flyball.core.errors import Deferred, FlyballError
from flyball.core.events import Event, Outcome
from flyball.core.messages import Message
from flyball.core.snapshot import RunSnapshot
from flyball.core.usage import RunUsage
from flyball.orchestrate.approvals import is_withheld
from flyball.orchestrate.calls import waits_for_results
from flyball.orchestrate.clock import SYSTEM_CLOCK
from flyball.orchestrate.journal import Journal
from flyball.orchestrate.snapshot import snapshot_of
from flyball.orchestrate.spending import spent
from flyball.orchestrate.state import State
from flyball.orchestrate.waiting import deferred_error, messages_so_far

if TYPE_CHECKING:
    from flyball.observe.cost import CostTracker
    from flyball.observe.run_cost import RunCost
    from flyball.observe.trace import RunTrace

OutputT = TypeVar("OutputT", default=str)


class RunResult(Struct, Generic[OutputT], frozen=True, eq=False, weakref=True):
    """A finished run: its output, and everything that led to it.

    All but the output is a view of the state, which is the fold of the journal: nothing is kept twice.
    """

    output: OutputT
    state: State
    journal: Journal
    editor: RunResult[Any] | None = None
    """What came of the editor's loop, where an architect had one. Its `error` is here, and is not raised."""
    tracker: CostTracker | None = None
    """Who prices it: the agent's."""
    trace: RunTrace | None = None
    """The run step by step, if its agent has `Tracing`; None of one that is not over, too."""

    def __repr__(self) -> str:
        return f"RunResult(output={self.output!r}, loop_id={self.loop_id!r}, outcome={self.outcome!r})"

    @property
    def loop_id(self) -> str:
        """The loop's id, by which it can be resumed, replayed and forked."""
        return self.state.loop_id

    run_id = loop_id

    @property
    def messages(self) -> tuple[Message, ...]:
        """The whole history, ready to be passed to another run as `messages=`.

        Of a run that waits for results from outside: with these calls open, for `deferred_results=`.
        """
        state = self.state
        return messages_apart(messages_so_far(state) if state.deferred else state.history)

    @property
    def usage(self) -> RunUsage:
        """What the run used."""
        return self.state.usage

    @property
    def cost(self) -> RunCost | None:
        """What its model calls cost, by its agent's CostTracker; None if that has none.

        It follows from the journal alone, like the usage: the same after a resume, a replay, or elsewhere.
        Loops under this one that are over are in it, by this agent's prices. Its editor's has its own.
        """
        return None if self.tracker is None else self.tracker.cost_of(spent(self.state))

    @property
    def tool_state(self) -> dict[str, Any] | None:
        """The states that stateful tools were left in, ready to be passed to another run as `tool_state=`."""
        return apart(self.state.tool_state)

    @property
    def outcome(self) -> Outcome:
        """How it ended; a run that is not over counts as failed."""
        return self.state.outcome or Outcome.FAILED

    @property
    def error(self) -> FlyballError | None:
        """What it failed with, if it did, or that it waits. Of a result that a run has returned, None."""
        if self.state.error is not None:
            return self.state.error.exception()
        return deferred(self.state, self.journal, self.tracker) if waits_for_results(self.state) else None

    @property
    def text(self) -> str:
        """The answer as the model gave it: its text, or the JSON of the output; nothing unless approved."""
        return "" if is_withheld(self.state) else self.state.answer or ""

    def snapshot(self) -> RunSnapshot:
        """The run as data that can be kept, sent, branched, and gone on from by `snapshot=`."""
        return snapshot_of(self.state, SYSTEM_CLOCK.now())

    async def events(self) -> list[Event]:
        """The journal: all that happened, in order."""
        return await self.journal.read(self.loop_id)


def failure(
    state: State, journal: Journal, tracker: CostTracker | None = None, trace: RunTrace | None = None
) -> FlyballError | None:
    """What a loop that is over failed with, and what it had reached as `partial`; None if it did not fail."""
    if state.error is None:
        return None
    error = state.error.exception()
    error.partial = RunResult(None, state, journal, None, tracker, trace)
    return error


def deferred(
    state: State, journal: Journal, tracker: CostTracker | None = None, below: Iterable[Deferred] = ()
) -> Deferred:
    """What who waits for a loop is told when nothing but results from outside can go on with it.

    `below` is what loops under it have said that cannot go on either.
    """
    error = deferred_error(state, below)
    error.partial = RunResult(None, state, journal, tracker=tracker)
    return error


AnyResult = RunResult[Any]
