"""Working with recorded loops: reading one, signalling to one, forking one. No model is called here."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from flyball.core.clock import Clock
from flyball.core.errors import JournalConflict, LoopNotFound, UserError
from flyball.core.events import VERSION, Event, Forked, Stage
from flyball.core.ids import new_id
from flyball.core.messages import Message, Role, ToolCall
from flyball.core.signals import Signal, SignalType
from flyball.core.snapshot import RunSnapshot
from flyball.core.spec import LoopSpec
from flyball.orchestrate.calls import waits_for_results
from flyball.orchestrate.clock import SYSTEM_CLOCK
from flyball.orchestrate.course import OVER
from flyball.orchestrate.family import Offer, WaitingCall, pass_on, waiting_calls
from flyball.orchestrate.journal import Journal
from flyball.orchestrate.machine import apply, fold, start
from flyball.orchestrate.machines import AnyState, is_flow, take
from flyball.orchestrate.machines import fold as fold_any
from flyball.orchestrate.permissions import Person, apart, owned
from flyball.orchestrate.signalling import as_signal, see_that_it_is_the_same, signal_event, stage_if_taken
from flyball.orchestrate.snapshot import snapshot_of
from flyball.orchestrate.state import State, turns_before


async def load(journal: Journal, loop_id: str) -> tuple[list[Event], State]:
    """The events of an agent's loop, and the state they lead to.

    Raises:
        LoopNotFound: the journal holds no such loop.
        UserError: it is no agent's loop, but a flow.
        JournalCorrupt, JournalTooNew: it cannot be read.
    """
    events = await journal.read(loop_id)
    return events, state_of(events, loop_id)


def state_of(events: Sequence[Event], loop_id: str) -> State:
    """The state that the events of an agent's loop lead to, as they were read; see `load`."""
    if is_flow(_there(events, loop_id)):
        raise UserError(
            f"loop {loop_id!r} is a flow, and no agent's: ask that of the loops under it; "
            "the flow itself goes on by `flow.run(..., loop_id=...)`",
            loop_id=loop_id,
        )
    return fold(events, f"loop {loop_id}")


async def load_any(journal: Journal, loop_id: str) -> tuple[list[Event], AnyState]:
    """The events of an agent's loop or of a flow, and the state they lead to.

    Raises:
        LoopNotFound: the journal holds no such loop.
        JournalCorrupt, JournalTooNew: it cannot be read.
    """
    events = await journal.read(loop_id)
    return events, fold_any(_there(events, loop_id), f"loop {loop_id}")


def _there(events: Sequence[Event], loop_id: str) -> Sequence[Event]:
    if not events:
        raise LoopNotFound(f"there is no loop {loop_id!r} in the journal", loop_id=loop_id)
    return events


async def until_done(journal: Journal, loop_id: str) -> State:
    """Wait until a loop is over, or nothing but results from outside can go on with it; its state.

    Raises:
        LoopNotFound: the journal holds no such loop.
        JournalFailure: the journal cannot be read.
    """
    events, state = await load(journal, loop_id)
    length = len(events)
    while state.at != "done" and not waits_for_results(state):
        await journal.wait(loop_id, length)
        for event in await journal.read(loop_id, length):
            apply(state, event)
            length += 1
    return state


async def send_signal(
    journal: Journal,
    loop_id: str,
    signal: Signal | SignalType | str,
    clock: Clock = SYSTEM_CLOCK,
    offer: Offer | None = None,
) -> Stage:
    """Say something to a loop, wherever it is driven: its driver finds it in the journal.

    Gives the stage that the loop is in then. A signal that comes again, with its id, is not taken again, and
    that is no error. A retry opens a failed loop again; `resume` then goes on with it. A pause, a resume and
    what is said about calls that wait reach the loops under it (`family`): by `offer`, where their drivers do
    not look into the journal by themselves.

    Raises:
        LoopNotFound: the journal holds no such loop.
        SignalRefused: the signal does not fit where the loop stands; it says which do. Or its id is that of
            another signal, or of another's.
        UserError: there is no such signal.
    """
    signal = as_signal(signal)
    taken, events, state = await _offered(journal, loop_id, signal, clock)
    if not taken:
        see_that_it_is_the_same(events, signal)
    if state.children and await pass_on(journal, state, signal, taken, offer or offering(journal, clock)):
        taken = True
    return stage_if_taken(state, None if taken else signal)


def offering(journal: Journal, clock: Clock) -> Offer:
    """Says something to loops in their journal: whoever drives one finds it there."""
    return lambda loop_id, signal: offer_signal(journal, loop_id, signal, clock)


async def offer_signal(journal: Journal, loop_id: str, signal: Signal, clock: Clock = SYSTEM_CLOCK) -> bool:
    """`send_signal`, for who does not mind if it does not fit: whether it was taken now.

    Raises:
        LoopNotFound: the journal holds no such loop.
    """
    taken, _, _ = await _offered(journal, loop_id, signal, clock)
    return taken


async def _offered(
    journal: Journal, loop_id: str, signal: Signal, clock: Clock
) -> tuple[bool, Sequence[Event], AnyState]:
    """Append a signal if it fits; whether it did, what was recorded before, and the state then."""
    while True:
        events, state = await load_any(journal, loop_id)
        event = signal_event(signal, clock.now())
        if not take(state, event):
            return False, events, state
        try:
            await journal.append(loop_id, (event,), len(events))
        except JournalConflict:
            continue
        return True, events, state


async def pending_approvals(journal: Journal, loop_id: str) -> tuple[ToolCall, ...]:
    """The tool calls of a loop that wait for somebody to approve or reject them, as they would run.

    Those of loops under it are among them; `calls_waiting` says whose each is.

    Raises:
        LoopNotFound: the journal holds no such loop.
    """
    return tuple([one.call for one in await calls_waiting(journal, loop_id) if one.wants == "approval"])


async def calls_waiting(journal: Journal, loop_id: str) -> tuple[WaitingCall, ...]:
    """The tool calls of a loop, and of the loops under it, that wait for an approval or for their results.

    Raises:
        LoopNotFound: the journal holds no such loop.
    """
    _, state = await load_any(journal, loop_id)
    return await waiting_calls(journal, state)


async def snapshot_at(journal: Journal, loop_id: str, turn: int | None = None) -> RunSnapshot:
    """A recorded loop as it stood after a turn; without one, as it stands now.

    Its `timestamp` is when that was. Another run goes on from it by `snapshot=`; the loop is not touched.

    Raises:
        LoopNotFound: the journal holds no such loop.
        UserError: the loop has no such turn, or has not finished it.
    """
    events, state = await load(journal, loop_id)
    if turn is not None:
        prefix, reached = _prefix(events, turn)
        if prefix is None:
            raise UserError(
                f"loop {loop_id!r} has {state.turn} turns: there is no snapshot after turn {turn}"
            )
        events, state = prefix, reached
    return snapshot_of(state, events[-1].at)


async def fork(
    journal: Journal,
    loop_id: str,
    turn: int,
    spec: LoopSpec,
    *,
    prompt: Message | None = None,
    into: Journal | None = None,
    new_loop_id: str | None = None,
    clock: Clock = SYSTEM_CLOCK,
    identity: dict[str, Any] | None = None,
    who: Person | None = None,
) -> str:
    """Make a new loop that shares another's first `turn` turns and goes on under its own spec; its id.

    With `turn` 0 it begins anew, with another prompt if one is given. After the last turn a prompt is needed.
    It is `who`'s, where somebody forks it in person, and is told on nobody's channel.

    Raises:
        LoopNotFound: the journal holds no such loop.
        UserError: the loop has no such turn, or a prompt is needed.
    """
    events, state = await load(journal, loop_id)
    prefix, reached = _prefix(events, turn)
    if prefix is None:
        if turn == state.turn:
            raise UserError(
                f"turn {turn} of loop {loop_id!r} is not over, and it cannot be forked after it yet: "
                f"fork it after turn {turn - 1}, or go on with it first"
            )
        raise UserError(f"loop {loop_id!r} has {state.turn} turns: it cannot be forked after turn {turn}")
    if prompt is None and reached.history[-1].role is Role.ASSISTANT:
        raise UserError(f"turn {turn} is the last of loop {loop_id!r}: give a prompt to go on from there")
    identifier = new_loop_id or new_id()
    if await (into or journal).read(identifier):
        raise UserError(f"there is a loop {identifier!r} already: choose another new_loop_id")
    about = owned(apart(reached.metadata), who)
    metadata = None if about == reached.metadata else about
    forked = Forked(clock.now(), VERSION, identifier, loop_id, turn, spec, prompt, identity, metadata)
    await (into or journal).append(identifier, (*prefix, forked), 0)
    return identifier


def _prefix(events: list[Event], turn: int) -> tuple[list[Event] | None, State]:
    """The events up to the point where turn `turn` is complete (0: none of its own), and the state there.

    Raises:
        UserError: it is no number of a turn.
    """
    if type(turn) is not int:
        raise UserError(f"turn= takes the number of a turn, not {turn!r}")
    state = start(events[0])  # pyright: ignore[reportArgumentType]
    turn = turn or turns_before(state)
    for length, event in enumerate([*events[1:], None], start=1):
        begins = state.turn == turn + 1 and state.at in ("prepare", "infer")
        if begins or (state.turn == turn and state.at in OVER):
            return events[:length], state
        if event is not None:
            apply(state, event)
    return None, state
