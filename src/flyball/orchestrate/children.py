"""Loops under others: how one is begun, how its end is told, and how a cancel goes on to it.

- The parent's journal names a child before the child's own begins: none that runs is unknown.
- It has the child's end, with what it used, before the child's own has it: what is over is counted, once.
- Whoever begins a child looks at the parent afterwards. So whichever comes first, the parent's cancel (or its
  pause) or the child's beginning, one of the two sees the other, and no child runs on under a parent that was
  cancelled.
- A loop that is over without having been cancelled is passed through: a cancel from above reaches what was
  begun under it, such as the editor of an architect that has done its part.
- All of it may be repeated: the events are refused the second time, and the signals have the same ids.

A parent that this journal does not hold is no obstacle: the child then stands by itself.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Any, Protocol, TypeAlias

from msgspec.structs import replace

from flyball.core.clock import Clock
from flyball.core.errors import JournalConflict, LoopNotFound
from flyball.core.events import (
    ChildEnded,
    ChildStarted,
    Ended,
    Event,
    FlowStarted,
    Outcome,
    SignalReceived,
    Started,
)
from flyball.core.signals import Signal, SignalType
from flyball.core.usage import CallUsage
from flyball.orchestrate.course import OVER
from flyball.orchestrate.journal import Journal
from flyball.orchestrate.machines import (
    AnyState,
    accepts,
    ends_children,
    fold,
    is_paused,
    name_of,
    start,
    take,
)
from flyball.orchestrate.recorded import load_any, offer_signal
from flyball.orchestrate.spending import requests_made, spent
from flyball.orchestrate.state import State

PARENT = "parent"
"""Who cancelled a loop that was cancelled because the one above it was."""

Cancel: TypeAlias = Callable[[str, Signal], Awaitable[bool]]
"""Cancels a loop: the signal is recorded when this returns. False if the loop is over already."""


class Home(Protocol):
    """Where a run's child loops go, unless they are told otherwise."""

    @property
    def calls_again(self) -> bool:
        """Whether a call that begins a loop is run again when that loop is over: it need not wait for it."""
        ...

    def child_options(self) -> Mapping[str, Any]:
        """The options of a child's run: its journal, or who drives it."""
        ...


class Parent(Protocol):
    """A loop under which another is begun."""

    async def hear(self, of: ChildStarted | ChildEnded) -> None:
        """Record what is told of a child, if it fits here; durable when this returns."""
        ...

    async def passes_on(self) -> Signal | None:
        """The cancel or the pause that reaches what is begun under the loop, by all that is recorded now."""
        ...


class RecordedParent:
    """A loop as its journal has it, whoever drives it; also one that is not there."""

    def __init__(self, journal: Journal, loop_id: str) -> None:
        self._journal = journal
        self._loop_id = loop_id

    async def hear(self, of: ChildStarted | ChildEnded) -> None:
        """See `Parent.hear`."""
        while events := await self._journal.read(self._loop_id):
            if not accepts(fold(events, f"loop {self._loop_id}"), of):
                return
            try:
                await self._journal.append(self._loop_id, (of,), len(events))
            except JournalConflict:
                continue
            return

    async def passes_on(self) -> Signal | None:
        """See `Parent.passes_on`."""
        events = await self._journal.read(self._loop_id)
        return await reaching(self._journal, fold(events, f"loop {self._loop_id}")) if events else None


# Beginning


async def begin(
    journal: Journal, started: Started | FlowStarted, clock: Clock, parent: Parent | None = None
) -> tuple[AnyState, int]:
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
    await parent.hear(ChildStarted(clock.now(), started.loop_id, name_of(started)))
    before = await parent.passes_on()
    cancel = before if before is not None and before.type is SignalType.CANCEL else None
    if before is not None and cancel is None and isinstance(started, Started):
        started = replace(started, paused=True)
    state = start(started)
    first: list[Event] = [started]
    told = before if isinstance(started, FlowStarted) else cancel  # an agent's loop begins paused by itself
    if told is not None and take(state, received := SignalReceived(clock.now(), told)):
        first.append(received)
    try:
        length = await journal.append(started.loop_id, first, 0)
    except JournalConflict:
        await heed_parent(journal, started.loop_id, clock)
        raise
    if cancel is not None:
        return state, length
    after = await parent.passes_on()
    if after is None and before is not None:
        after = Signal(SignalType.RESUME, by=PARENT)  # the pause was over before anybody could tell the child
    if after is not None and (before is None or after.type is not before.type):
        await offer_signal(journal, started.loop_id, after, clock)
        events, state = await load_any(journal, started.loop_id)
        length = len(events)
    return state, length


async def heed_parent(journal: Journal, loop_id: str, clock: Clock) -> None:
    """Cancel a loop that is there and whose parent was cancelled before it could be told.

    Its beginning may have been broken off before the look at the parent. One that somebody has tried again
    since goes on: that was decided for itself.
    """
    _, state = await load_any(journal, loop_id)
    if not state.parent_loop_id or state.at in OVER or state.attempt > 1:
        return
    events = await journal.read(state.parent_loop_id)
    if not events or loop_id not in (parent := fold(events, f"loop {state.parent_loop_id}")).children:
        return
    cancel = await reaching(journal, parent)
    if cancel is not None and cancel.type is SignalType.CANCEL:
        await offer_signal(journal, loop_id, cancel, clock)


# Ending


async def tell_parent(
    journal: Journal, state: AnyState, at: float, parent: Parent | None = None
) -> ChildEnded:
    """Tell the loop above one whose outcome is decided that it is over, and what it used; gives what is said.

    `parent` is that loop, where its journal need not be read. One that is over itself, or that this journal
    does not hold, is not told.
    """
    requests = requests_made(state) if isinstance(state, State) else state.usage.requests
    calls = tuple(await spent_in(journal, state))
    ids = state.correlation
    call_id = ids.tool_call_id or ("" if ids.step_name else ids.caused_by)  # a step of a flow is no call
    event = ChildEnded(at, state.loop_id, call_id, calls, requests)
    await (parent or RecordedParent(journal, state.parent_loop_id)).hear(event)
    return event


async def spent_in(journal: Journal, state: AnyState) -> list[CallUsage]:
    """What each model call of a loop and of those under it has used; a flow makes none itself."""
    if isinstance(state, State):
        return list(spent(state))
    calls: list[CallUsage] = []
    for child in state.children:
        with suppress(LoopNotFound):  # recorded as begun, and no more
            calls += await spent_in(journal, (await load_any(journal, child))[1])
    return calls


# Cancelling


def cancel_signal(state: AnyState) -> Signal:
    """The signal that the children of a cancelled loop get: the same each time, for each attempt."""
    why = state.error.message if state.error is not None else ""
    return Signal(SignalType.CANCEL, f"{state.loop_id}/{state.attempt}/cancel", PARENT, why)


async def reaching(journal: Journal, state: AnyState) -> Signal | None:
    """The cancel that reaches what is begun under a loop: its own, or one from above if it is over.

    One that is not over yet is told by its own parent, and tells its children in turn. One that is paused, or
    is about to be, has what is begun under it paused.
    """
    if is_paused(state):
        return Signal(SignalType.PAUSE, by=PARENT)
    seen: set[str] = set()
    while not ends_children(state):
        seen.add(state.loop_id)
        above = state.parent_loop_id
        if state.at not in OVER or not above or above in seen:
            return None
        events = await journal.read(above)
        if not events:
            return None
        state = fold(events, f"loop {above}")
    return cancel_signal(state)


async def cancel_children(journal: Journal, state: AnyState, cancel: Cancel) -> None:
    """Cancel all that runs under a loop that was cancelled, as far as the journal has it.

    A child that is not there is told when it begins; one that names another parent is left alone.
    """
    await _reach(journal, state, cancel_signal(state), cancel, {state.loop_id})


async def _reach(journal: Journal, above: AnyState, signal: Signal, cancel: Cancel, seen: set[str]) -> None:
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
        _, state = await load_any(journal, child)
        await _reach(journal, state, signal, cancel, seen)


def cancel_by_journal(journal: Journal, clock: Clock) -> Cancel:
    """Cancels loops in their journal: whoever drives one finds it there.

    One that nobody drives any more (it ran inside the call that was just stopped) is brought to its end as
    far as that takes no code of its own, and its children with it.
    """

    async def cancel(loop_id: str, signal: Signal) -> bool:
        taken = await offer_signal(journal, loop_id, signal, clock)
        await close_cancelled(journal, loop_id, clock, cancel)
        return taken

    return cancel


async def close_cancelled(journal: Journal, loop_id: str, clock: Clock, cancel: Cancel) -> None:
    """Bring a cancelled loop to its end, where nothing else is owed."""
    while True:
        events, state = await load_any(journal, loop_id)
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
