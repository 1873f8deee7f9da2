"""Loops under others: how one is begun, and how a cancel goes on to it.

- The parent's journal names a child before the child's own begins: none that runs is unknown.
- Whoever begins a child looks at the parent afterwards. So whichever comes first, the parent's cancel or the
  child's beginning, one of the two sees the other, and no child runs on under a parent that was cancelled.
- A loop that is over without having been cancelled is passed through: a cancel from above reaches what was
  begun under it, such as the editor of an architect that has done its part.
- All of it may be repeated: the events are refused the second time, and the signals have the same ids.

A parent that this journal does not hold is no obstacle: the child then stands by itself.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Protocol, TypeAlias

from flyball.core.clock import Clock
from flyball.core.errors import JournalConflict
from flyball.core.events import ChildStarted, Ended, Event, Outcome, SignalReceived, Started
from flyball.core.signals import Signal, SignalType
from flyball.orchestrate.course import OVER
from flyball.orchestrate.journal import Journal
from flyball.orchestrate.machine import accepts, fold, start, take
from flyball.orchestrate.recorded import load, offer_signal
from flyball.orchestrate.state import State

PARENT = "parent"
"""Who cancelled a loop that was cancelled because the one above it was."""

Cancel: TypeAlias = Callable[[str, Signal], Awaitable[bool]]
"""Cancels a loop: the signal is recorded when this returns. False if the loop is over already."""


class Home(Protocol):
    """Where a run's child loops go, unless they are told otherwise."""

    def child_options(self) -> Mapping[str, Any]:
        """The options of a child's run: its journal, or who drives it."""
        ...


class Parent(Protocol):
    """A loop under which another is begun."""

    async def adopt(self, child: ChildStarted) -> None:
        """Record the child, if it is not and the loop is not over; durable when this returns."""
        ...

    async def cancelled(self) -> Signal | None:
        """The cancel that reaches what is begun under the loop, by all that is recorded now."""
        ...


class RecordedParent:
    """A loop as its journal has it, whoever drives it; also one that is not there."""

    def __init__(self, journal: Journal, loop_id: str) -> None:
        self._journal = journal
        self._loop_id = loop_id

    async def adopt(self, child: ChildStarted) -> None:
        """See `Parent.adopt`."""
        while events := await self._journal.read(self._loop_id):
            if not accepts(fold(events, f"loop {self._loop_id}"), child):
                return
            try:
                await self._journal.append(self._loop_id, (child,), len(events))
            except JournalConflict:
                continue
            return

    async def cancelled(self) -> Signal | None:
        """See `Parent.cancelled`."""
        events = await self._journal.read(self._loop_id)
        return await reaching(self._journal, fold(events, f"loop {self._loop_id}")) if events else None


# Beginning


async def begin(
    journal: Journal, started: Started, clock: Clock, parent: Parent | None = None
) -> tuple[State, int]:
    """Begin a loop under another; gives its state and how many events it has.

    Args:
        journal: where it is recorded.
        started: what it begins with; its `parent_loop_id` names the parent.
        clock: where time comes from.
        parent: the parent, where its journal need not be read; without it, what the journal has of it.

    Raises:
        JournalConflict: the id belongs to a loop that is there. If its parent was cancelled, so is it now.
    """
    parent = parent or RecordedParent(journal, started.parent_loop_id)
    await parent.adopt(ChildStarted(clock.now(), started.loop_id, started.spec.agent))
    cancel = await parent.cancelled()
    state = start(started)
    first: list[Event] = [started]
    if cancel is not None and take(state, received := SignalReceived(clock.now(), cancel)):
        first.append(received)
    try:
        length = await journal.append(started.loop_id, first, 0)
    except JournalConflict:
        await heed_parent(journal, started.loop_id, clock)
        raise
    if cancel is None and (cancel := await parent.cancelled()) is not None:
        await offer_signal(journal, started.loop_id, cancel, clock)
        events, state = await load(journal, started.loop_id)
        length = len(events)
    return state, length


async def heed_parent(journal: Journal, loop_id: str, clock: Clock) -> None:
    """Cancel a loop that is there and whose parent was cancelled before it could be told.

    Its beginning may have been broken off before the look at the parent. One that somebody has tried again
    since goes on: that was decided for itself.
    """
    _, state = await load(journal, loop_id)
    if not state.parent_loop_id or state.at in OVER or state.attempt > 1:
        return
    events = await journal.read(state.parent_loop_id)
    if not events or loop_id not in (parent := fold(events, f"loop {state.parent_loop_id}")).children:
        return
    if (cancel := await reaching(journal, parent)) is not None:
        await offer_signal(journal, loop_id, cancel, clock)


# Cancelling


def cancel_signal(state: State) -> Signal:
    """The signal that the children of a cancelled loop get: the same each time, for each attempt."""
    why = state.error.message if state.error is not None else ""
    return Signal(SignalType.CANCEL, f"{state.loop_id}/{state.attempt}/cancel", PARENT, why)


async def reaching(journal: Journal, state: State) -> Signal | None:
    """The cancel that reaches what is begun under a loop: its own, or one from above if it is over.

    One that is not over yet is told by its own parent, and tells its children in turn.
    """
    seen: set[str] = set()
    while state.outcome is not Outcome.CANCELLED:
        seen.add(state.loop_id)
        above = state.parent_loop_id
        if state.at not in OVER or not above or above in seen:
            return None
        events = await journal.read(above)
        if not events:
            return None
        state = fold(events, f"loop {above}")
    return cancel_signal(state)


async def cancel_children(journal: Journal, state: State, cancel: Cancel) -> None:
    """Cancel all that runs under a loop that was cancelled, as far as the journal has it.

    A child that is not there is told when it begins; one that names another parent is left alone.
    """
    await _reach(journal, state, cancel_signal(state), cancel, {state.loop_id})


async def _reach(journal: Journal, above: State, signal: Signal, cancel: Cancel, seen: set[str]) -> None:
    for child in above.children:
        events = await journal.read(child)
        if not events or child in seen:
            continue
        seen.add(child)
        state = fold(events, f"loop {child}")
        if state.parent_loop_id != above.loop_id:
            continue
        if state.at != "done" and await cancel(child, signal):
            continue
        # It is over, perhaps only since a moment ago: then what it has begun is not told by it.
        _, state = await load(journal, child)
        await _reach(journal, state, signal, cancel, seen)


def cancel_by_journal(journal: Journal, clock: Clock) -> Cancel:
    """Cancels loops in their journal: whoever drives one finds it there.

    One that nobody drives any more (it ran inside the call that was just stopped) is brought to its end as
    far as that takes no code of its own, and its children with it.
    """

    async def cancel(loop_id: str, signal: Signal) -> bool:
        taken = await offer_signal(journal, loop_id, signal, clock)
        await _close(journal, loop_id, clock, cancel)
        return taken

    return cancel


async def _close(journal: Journal, loop_id: str, clock: Clock, cancel: Cancel) -> None:
    """Bring a cancelled loop to its end, where nothing else is owed."""
    while True:
        events, state = await load(journal, loop_id)
        if state.outcome is not Outcome.CANCELLED or state.at == "done":
            return
        await cancel_children(journal, state, cancel)
        if state.at != "end":
            return
        ended = Ended(clock.now(), state.outcome, state.error)
        try:
            await journal.append(loop_id, (ended,), len(events))
        except JournalConflict:
            continue
        return
