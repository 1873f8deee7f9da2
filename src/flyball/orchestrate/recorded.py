"""Working with recorded loops: reading one, signalling to one, forking one. No model is called here."""

from __future__ import annotations

from flyball.core.clock import Clock
from flyball.core.errors import JournalConflict, LoopNotFound, UserError
from flyball.core.events import VERSION, Event, Forked, Reopened, SignalReceived
from flyball.core.ids import new_id
from flyball.core.messages import Message, Role, ToolCall
from flyball.core.signals import Signal, SignalType
from flyball.core.spec import LoopSpec
from flyball.orchestrate.clock import SYSTEM_CLOCK
from flyball.orchestrate.commands import call_to_run
from flyball.orchestrate.course import OVER
from flyball.orchestrate.journal import Journal
from flyball.orchestrate.machine import accepts, apply, fold, start
from flyball.orchestrate.state import State


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


async def send_signal(journal: Journal, loop_id: str, signal: Signal, clock: Clock = SYSTEM_CLOCK) -> bool:
    """Say something to a loop, wherever it is driven: its driver finds it in the journal.

    Returns False if the signal does not fit: the loop is over, it is not waiting for this, or the signal's id
    was seen before. A retry opens a failed loop again; `resume` then goes on with it.

    Raises:
        LoopNotFound: the journal holds no such loop.
    """
    while True:
        events, state = await load(journal, loop_id)
        event = signal_event(signal, clock.now())
        if not accepts(state, event):
            return False
        try:
            await journal.append(loop_id, (event,), len(events))
        except JournalConflict:
            continue
        return True


def signal_event(signal: Signal, at: float) -> SignalReceived | Reopened:
    """What is recorded of a signal: a retry opens the loop again."""
    return Reopened(at, signal.by) if signal.type is SignalType.RETRY else SignalReceived(at, signal)


async def pending_approvals(journal: Journal, loop_id: str) -> tuple[ToolCall, ...]:
    """The tool calls of a loop that wait for somebody to approve or reject them, as they would run.

    Raises:
        LoopNotFound: the journal holds no such loop.
    """
    _, state = await load(journal, loop_id)
    return tuple([call_to_run(state, index) for index in state.awaiting])


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
    """The events up to the point where turn `turn` is complete, and the state there."""
    state = start(events[0])  # pyright: ignore[reportArgumentType]
    for length, event in enumerate([*events[1:], None], start=1):
        begins = state.turn == turn + 1 and state.at in ("prepare", "infer")
        if begins or (state.turn == turn and state.at in OVER):
            return events[:length], state
        if event is not None:
            apply(state, event)
    return None, state
