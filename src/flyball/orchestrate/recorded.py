"""Working with recorded loops: reading one, signalling to one, forking one. No model is called here."""

from __future__ import annotations

from flyball.core.clock import Clock
from flyball.core.errors import JournalConflict, LoopNotFound, UserError
from flyball.core.events import VERSION, Event, Forked, Stage
from flyball.core.ids import new_id
from flyball.core.messages import Message, Role, ToolCall
from flyball.core.signals import Signal, SignalType
from flyball.core.snapshot import RunSnapshot
from flyball.core.spec import LoopSpec
from flyball.orchestrate.clock import SYSTEM_CLOCK
from flyball.orchestrate.commands import call_to_run
from flyball.orchestrate.course import OVER
from flyball.orchestrate.journal import Journal
from flyball.orchestrate.machine import apply, fold, start, take
from flyball.orchestrate.signalling import as_signal, signal_event, stage_if_taken
from flyball.orchestrate.snapshot import snapshot_of
from flyball.orchestrate.state import State, turns_before
from flyball.orchestrate.turn import waits_for_results


async def load(journal: Journal, loop_id: str) -> tuple[list[Event], State]:
    """A loop's events and the state they lead to.

    Raises:
        LoopNotFound: the journal holds no such loop.
        JournalCorrupt, JournalTooNew: it cannot be read.
    """
    events = await journal.read(loop_id)
    if not events:
        raise LoopNotFound(f"there is no loop {loop_id!r} in the journal", loop_id=loop_id)
    return events, fold(events, f"loop {loop_id}")


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
    journal: Journal, loop_id: str, signal: Signal | SignalType | str, clock: Clock = SYSTEM_CLOCK
) -> Stage:
    """Say something to a loop, wherever it is driven: its driver finds it in the journal.

    Gives the stage that the loop is in then. A signal whose id was taken before is not taken again, and that
    is no error. A retry opens a failed loop again; `resume` then goes on with it.

    Raises:
        LoopNotFound: the journal holds no such loop.
        SignalRefused: the signal does not fit where the loop stands; it says which do.
        UserError: there is no such signal.
    """
    signal = as_signal(signal)
    taken, state = await _offered(journal, loop_id, signal, clock)
    return stage_if_taken(state, None if taken else signal)


async def offer_signal(journal: Journal, loop_id: str, signal: Signal, clock: Clock = SYSTEM_CLOCK) -> bool:
    """`send_signal`, for who does not mind if it does not fit: whether it was taken now.

    Raises:
        LoopNotFound: the journal holds no such loop.
    """
    taken, _ = await _offered(journal, loop_id, signal, clock)
    return taken


async def _offered(journal: Journal, loop_id: str, signal: Signal, clock: Clock) -> tuple[bool, State]:
    """Append a signal if it fits; whether it did, and the state then."""
    while True:
        events, state = await load(journal, loop_id)
        event = signal_event(signal, clock.now())
        if not take(state, event):
            return False, state
        try:
            await journal.append(loop_id, (event,), len(events))
        except JournalConflict:
            continue
        return True, state


async def pending_approvals(journal: Journal, loop_id: str) -> tuple[ToolCall, ...]:
    """The tool calls of a loop that wait for somebody to approve or reject them, as they would run.

    Raises:
        LoopNotFound: the journal holds no such loop.
    """
    _, state = await load(journal, loop_id)
    return tuple([call_to_run(state, index) for index in state.awaiting])


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
) -> str:
    """Make a new loop that shares another's first `turn` turns and goes on under its own spec; its id.

    With `turn` 0 it begins anew, with another prompt if one is given. After the last turn a prompt is needed.

    Raises:
        LoopNotFound: the journal holds no such loop.
        UserError: the loop has no such turn, or a prompt is needed.
    """
    events, state = await load(journal, loop_id)
    prefix, reached = _prefix(events, turn)
    if prefix is None:
        raise UserError(f"loop {loop_id!r} has {state.turn} turns: it cannot be forked after turn {turn}")
    if prompt is None and reached.history[-1].role is Role.ASSISTANT:
        raise UserError(f"turn {turn} is the last of loop {loop_id!r}: give a prompt to go on from there")
    identifier = new_loop_id or new_id()
    if await (into or journal).read(identifier):
        raise UserError(f"there is a loop {identifier!r} already: choose another new_loop_id")
    forked = Forked(clock.now(), VERSION, identifier, loop_id, turn, spec, prompt)
    await (into or journal).append(identifier, (*prefix, forked), 0)
    return identifier


def _prefix(events: list[Event], turn: int) -> tuple[list[Event] | None, State]:
    """The events up to the point where turn `turn` is complete (0: none of its own), and the state there."""
    state = start(events[0])  # pyright: ignore[reportArgumentType]
    turn = turn or turns_before(state)
    for length, event in enumerate([*events[1:], None], start=1):
        begins = state.turn == turn + 1 and state.at in ("prepare", "infer")
        if begins or (state.turn == turn and state.at in OVER):
            return events[:length], state
        if event is not None:
            apply(state, event)
    return None, state
