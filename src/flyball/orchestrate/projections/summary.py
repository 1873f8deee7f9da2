"""LoopSummary: a loop in a few words, an agent's or a flow; what lists, searches and accounts are made of.

    summary_of          of a loop in a journal
    Reading, summarized     the same in two parts, for who has read a journal before and goes on from there

Guarantees: a loop that cannot be read has a summary that says why, so that one that is damaged does not hide
the others. All follows from its journal, but `stage` and `waits`: those of a loop that is not over hang on
the time, on its process and on the loops under it (`standing`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

from msgspec import Struct

from flyball.core.claimed import claimed_did
from flyball.core.encodable import as_text
from flyball.core.errors import FlyballError, JournalCorrupt, JournalFailure, LoopNotFound
from flyball.core.events import Event, Forked, ModelAnswered, ModelFailed, Outcome, Reopened, Resumed
from flyball.core.messages import Role
from flyball.core.signals import SignalType
from flyball.core.usage import CallUsage, RunUsage
from flyball.observe.prices import served
from flyball.observe.run_cost import RunCost
from flyball.orchestrate.contracts.asked import asked_in
from flyball.orchestrate.correlation import loop_correlation
from flyball.orchestrate.flow_state import FlowState
from flyball.orchestrate.machines import AnyState, fold, take
from flyball.orchestrate.permissions import channel_of, owner_of
from flyball.orchestrate.projections.cost import cost_of, cost_of_calls
from flyball.orchestrate.projections.loop_entity import result_of
from flyball.orchestrate.projections.shortened import cut
from flyball.orchestrate.projections.words import words_of
from flyball.orchestrate.provenance import Provenance, provenance_of
from flyball.orchestrate.signalling import fitting
from flyball.orchestrate.standing import standing, standing_in_all
from flyball.orchestrate.state import State

if TYPE_CHECKING:
    from flyball.orchestrate.journal import Journal

LONGEST_ANSWER = 500
"""Characters of an answer that a summary has."""


class OwnUse(Struct, frozen=True):
    """What a loop's own calls of one model used, and cost; `cost` is None where none is meant or known."""

    model: str
    usage: RunUsage
    cost: RunCost | None = None


class LoopSummary(Struct, frozen=True):
    """A loop in a few words.

    - `stage` is a `Stage`, `deferred` or `interrupted`; empty for a loop that cannot be read, whose `prompt`
      then says why. `error` is a code of the taxonomy.
    - `agent` is the agent's name, or the flow's; `model` the string that it was begun with. The `turns` of a
      flow are the steps that have ended.
    - `usage` and `cost` are with the loops under it, with what it was forked from and what it goes on from;
      `own` is what its own model calls used, by model: each call is in the `own` of one loop. `cost` is None
      where none is meant or nobody here knows prices; a flow has none, the loops under it have.
    - `prompt` is whole, `answer` cut; `waits` are the calls of loops under it that wait for somebody.
    - `signals` are those that fit where it stands: what a person may be offered to say.
    - `did` is as whom it acts, if as anybody.
    - `user_id` is whose it is, where somebody's, and `channel` where they talk, as `type/id`.
    """

    loop_id: str
    kind: Literal["agent", "flow"] = "agent"
    agent: str = ""
    model: str = ""
    stage: str = ""
    started_at: float = 0.0
    updated_at: float = 0.0
    turns: int = 0
    usage: RunUsage = RunUsage()
    prompt: str = ""
    answer: str = ""
    error: str = ""
    waits: tuple[str, ...] = ()
    cost: RunCost | None = None
    parent_loop_id: str = ""
    session_id: str = ""
    request_id: str = ""
    trace_id: str = ""
    own: tuple[OwnUse, ...] = ()
    signals: tuple[SignalType, ...] = ()
    did: str = ""
    user_id: str = ""
    channel: str = ""


class Reading:
    """A journal as far as it was read: what a summary is made of, and goes on from when there is more.

    `marks` are the events that say who drives the loop, and whether it is a fork.
    """

    __slots__ = ("calls", "length", "marks", "state", "updated_at")

    def __init__(self, events: Sequence[Event], loop_id: str) -> None:
        """Read a journal from its beginning.

        Raises:
            JournalCorrupt: the events are no journal.
        """
        self.state: AnyState = fold(events, f"loop {loop_id}")
        self.length = 0
        self.updated_at = 0.0
        self.marks: list[Event] = []
        self.calls: list[ModelAnswered | ModelFailed] = []
        for event in events:
            self._note(event)

    def go_on(self, events: Sequence[Event]) -> None:
        """Take what was appended since.

        Raises:
            JournalCorrupt: an event does not fit. What was read is of no use then.
        """
        for event in events:
            if not take(self.state, event):
                raise JournalCorrupt(
                    f"loop {self.state.loop_id!r}: event {self.length}, {type(event).__name__}, does not fit",
                    loop_id=self.state.loop_id,
                )
            self._note(event)

    def _note(self, event: Event) -> None:
        self.length += 1
        self.updated_at = max(self.updated_at, event.at)
        if isinstance(event, ModelAnswered | ModelFailed):
            self.calls.append(event)
        elif isinstance(event, Resumed | Reopened | Forked):
            self.marks.append(event)
            if isinstance(event, Forked):
                self.calls.clear()  # those were the other loop's

    @property
    def provenance(self) -> Provenance:
        """What the loop was begun with."""
        return provenance_of(self.marks, self.state)

    @property
    def is_over(self) -> bool:
        """Whether nothing but another attempt can change what is told of it."""
        return self.state.at == "done"


async def summary_of(journal: Journal, loop_id: str) -> LoopSummary:
    """A loop in a few words; of one that cannot be read, why.

    Raises:
        LoopNotFound: the journal holds no such loop.
    """
    try:
        events = await journal.read(loop_id)
        if not events:
            raise LoopNotFound(f"there is no loop {loop_id!r} in the journal", loop_id=loop_id)
        return await summary_of_reading(journal, Reading(events, loop_id))
    except LoopNotFound:
        raise
    except JournalFailure as error:
        return unreadable(loop_id, error)


def unreadable(loop_id: str, error: JournalFailure) -> LoopSummary:
    """The summary of a loop that cannot be read: it says why."""
    return LoopSummary(loop_id, prompt=error.message, error=error.code)


async def summary_of_reading(journal: Journal, reading: Reading) -> LoopSummary:
    """The summary of a loop that was read, as it stands now with those under it.

    One whose children cannot be read stands as its own journal says.
    """
    process = reading.provenance.process
    try:
        stage, waits = await standing_in_all(journal, reading.marks, reading.state, process)
    except JournalFailure:
        stage, waits = standing(reading.marks, reading.state, process), ()
    return summarized(reading, stage, waits)


def summarized(reading: Reading, stage: str, waits: tuple[str, ...] = ()) -> LoopSummary:
    """The summary of a loop that was read, and that stands so. Pure."""
    state = reading.state
    ids, model = loop_correlation(state), reading.provenance.model
    is_flow = isinstance(state, FlowState)
    return LoopSummary(
        loop_id=state.loop_id,
        kind="flow" if is_flow else "agent",
        agent=state.flow.name if is_flow else state.spec.agent,
        model=model,
        stage=stage,
        started_at=state.started_at,
        updated_at=reading.updated_at,
        turns=len(state.ended) if is_flow else state.turn,
        usage=state.usage,
        prompt=said_first(state),
        answer=cut(answer_of(state), LONGEST_ANSWER),
        error="" if state.error is None else state.error.code,
        waits=waits,
        cost=None if is_flow else cost_of(reading.marks, state),
        parent_loop_id=state.parent_loop_id,
        session_id=ids.session_id,
        request_id=ids.request_id,
        trace_id=ids.trace_id,
        own=() if is_flow else _own(reading.calls, state, model),
        signals=fitting(state),
        did=claimed_did(state.identity),
        user_id=owner_of(state.metadata),
        channel=channel_of(state.metadata),
    )


def said_first(state: AnyState) -> str:
    """The words that a loop began with: its prompt, the user's last before it, or what a flow is asked."""
    if isinstance(state, FlowState):
        try:
            return asked_in(state.input)
        except FlyballError:
            return as_text(state.input)  # it looks like a request, and is none
    if state.prompt is not None:
        return words_of(state.prompt)
    asked = [message for message in state.history if message.role is Role.USER]
    return words_of(asked[-1]) if asked else ""


def answer_of(state: AnyState) -> str:
    """What came of a loop that has ended well, as text."""
    if isinstance(state, State):
        return result_of(state)
    return as_text(state.output) if state.outcome is Outcome.SUCCESS else ""


def _own(calls: Sequence[ModelAnswered | ModelFailed], state: State, begun_with: str) -> tuple[OwnUse, ...]:
    """What a loop's own calls used, by the model that answered, or was asked where none did."""
    by_model: dict[str, list[CallUsage]] = {}
    usages: dict[str, RunUsage] = {}
    for event in calls:
        message = event.message if isinstance(event, ModelAnswered) else event.partial
        asked, provider = state.spec.served_by(event.purpose)
        call = CallUsage(
            event.at,
            None if message is None else message.model,
            None if message is None else message.usage,
            asked,
            provider,
        )
        name = served(call).model
        usages[name] = usages.get(name, RunUsage()).add_request(call.usage)
        if message is not None:  # of one that failed before anything came, nothing is to be paid
            by_model.setdefault(name, []).append(call)
    costs = {name: cost_of_calls(paid, begun_with) for name, paid in by_model.items()}
    return tuple([OwnUse(name, usage, costs.get(name)) for name, usage in usages.items()])
