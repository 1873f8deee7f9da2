"""Ledger: a loop's state and its journal, kept in step by the one driver that holds it. For either machine.

- `take` folds an event at once; `flush` makes durable what was folded, in one append.
- Others may append too. What they say to the loop is folded in, and what could not be written is folded
  again after it. Another driver's takeover is the end for this one: LoopTakenOver.
- An append that was broken off may have got through or not. What it held stays pending, and the next flush
  finds out: nothing is lost and nothing is written twice.
"""

from __future__ import annotations

import asyncio
from typing import Generic, TypeVar, cast

from flyball.core.clock import Clock
from flyball.core.errors import JournalConflict, JournalCorrupt, LoopTakenOver
from flyball.core.events import ChildEnded, ChildStarted, Event, Resumed
from flyball.core.signals import Signal
from flyball.orchestrate.call_ids import told_apart
from flyball.orchestrate.children import reaching
from flyball.orchestrate.claims import claim_on, is_claimed
from flyball.orchestrate.journal import Claim, Journal, MemoryJournal
from flyball.orchestrate.machine import take
from flyball.orchestrate.machines import AnyState, fold
from flyball.orchestrate.machines import take as take_any
from flyball.orchestrate.reaching import as_recorded
from flyball.orchestrate.state import State

StateT = TypeVar("StateT", bound=AnyState)

_SOON, _LATER = 0.01, 1.0
"""Seconds after which a claim is asked for again that another still has: at first, and at last."""


class Ledger(Generic[StateT]):
    """The state of one loop, with the journal behind it."""

    # What only some runs need has its default here, so that the others do not pay for setting it.
    _busy = False
    _free: asyncio.Event | None = None
    _unsure = False
    _claiming: asyncio.TimerHandle | None = None
    held: Claim | None = None
    """That it is driven here, for whoever else would go on with it."""
    watches = False
    """Whether somebody is told what is recorded."""

    def __init__(self, journal: Journal, state: StateT, length: int, clock: Clock) -> None:
        self.journal = journal
        self.state = state
        self.loop_id = state.loop_id
        self.length = length
        self.clock = clock
        self.pending: list[Event] = []

    @property
    def reachable(self) -> bool:
        """Whether anybody can say something to the loop, or to one above it."""
        return True

    def hold(self, claim: Claim | None) -> None:
        """Have a claim while this is driven. Who took it over without one has it once the other lets go."""
        self.held = claim
        if claim is None and is_claimed(self.journal, self.loop_id):
            self._claim_again(_SOON)

    def _claim_again(self, pause: float) -> None:
        self.held, self._claiming = claim_on(self.journal, self.loop_id), None
        if self.held is None:
            later = min(2 * pause, _LATER)
            self._claiming = asyncio.get_running_loop().call_later(pause, self._claim_again, later)

    def release(self) -> None:
        """It is driven here no longer."""
        if self._claiming is not None:
            self._claiming.cancel()
            self._claiming = None
        claim, self.held = self.held, None
        if claim is not None:
            claim.release()

    def take(self, event: Event) -> bool:
        """Fold an event, if it fits here; `flush` makes it durable."""
        if not take_any(self.state, event):
            return False
        self.pending.append(event)
        return True

    def flush_now(self) -> bool:
        """`flush`, where the journal is in memory and nobody else is at it; False where one must wait."""
        journal = self.journal
        if type(journal) is not MemoryJournal or self._busy or self._unsure:
            return False
        try:
            self.length = journal.put(self.loop_id, self.pending, self.length)
        except JournalConflict:
            return False
        self.pending.clear()
        return True

    async def flush(self) -> bool:
        """Make durable what has been folded, also by others who are at it.

        Returns whether nothing else was folded meanwhile, so that what was owed before is owed still.

        Raises:
            LoopTakenOver: another driver has resumed the loop.
            JournalFailure: it could not be written.
        """
        calm = True
        while self.pending or self._busy:
            if self._busy:
                calm = False
                await self._until_free()
                continue
            state, batch, self.pending = self.state, self.pending, []
            self._busy = True
            try:
                try:
                    first = self.length
                    self.length = await self.journal.append(self.loop_id, batch, first)
                    self.written(first, batch)
                except JournalConflict:
                    await self._catch_up(batch)
            except BaseException:
                self.pending = [*batch, *self.pending]
                self._unsure = True
                raise
            finally:
                self._busy = False
                if self._free is not None:
                    self._release()
            if self._unsure:
                self._unsure = False
            calm = calm and not self.pending and self.state is state
        return calm

    async def follow(self) -> None:
        """Fold what others append, as it comes, until cancelled; `stir` is called each time.

        Raises:
            LoopTakenOver: another driver has resumed the loop.
            JournalFailure: the journal cannot be read.
        """
        while True:
            length = self.length
            await self.journal.wait(self.loop_id, length)
            while self._busy:
                await self._until_free()
            if self.length != length:
                continue  # it was an append of our own
            await self.catch_up()
            self.stir()

    async def catch_up(self) -> None:
        """Fold what others have appended until now.

        Raises:
            LoopTakenOver: another driver has resumed the loop.
            JournalFailure: the journal cannot be read.
        """
        while self._busy:
            await self._until_free()
        self._busy = True
        try:
            await self._catch_up([])
        finally:
            self._release()

    async def hear(self, of: ChildStarted | ChildEnded) -> None:
        """Record that a loop under this one is begun, or over; see `Parent.hear`."""
        if self.take(of):
            await self.flush()
            self._stir_soon()

    async def passes_on(self) -> Signal | None:
        """The cancel or the pause that reaches what is begun under this loop; see `Parent.passes_on`."""
        if await self.journal.read(self.loop_id, self.length):
            await self.catch_up()
            self._stir_soon()
        return await reaching(self.journal, self.state)

    def _stir_soon(self) -> None:
        """`stir`, but not in this task: it may be the one that drives, within the call that begins a child.

        It must not cancel itself: before Python 3.13 that cannot be taken back.
        """
        asyncio.get_running_loop().call_soon(self.stir)

    def stir(self) -> None:
        """Something was folded that nobody here waited for."""

    def theirs_folded(self) -> None:
        """The state is what others have made of it; what is our own and not written comes after this."""

    def refused(self) -> None:
        """Something of our own could not be written, and does not fit any more."""

    def written(self, first: int, events: list[Event]) -> None:
        """These events have been appended here, from number `first` on."""
        self.recorded(first, events)

    def recorded(self, first: int, events: list[Event]) -> None:
        """These events are known to be in the journal, from number `first` on."""

    async def _catch_up(self, unwritten: list[Event]) -> None:
        """Take in what was appended since, and fold again what could not be written."""
        if not (unwritten or self.pending or self._unsure):
            await self._go_on_reading()
            return
        events = await self.journal.read(self.loop_id)
        if len(events) < self.length:
            raise JournalCorrupt(
                f"loop {self.loop_id!r} has lost events: {len(events)} are left of {self.length}",
                loop_id=self.loop_id,
            )
        theirs = events[self.length :]
        mine = [*unwritten, *self.pending]
        if self._unsure:
            through = 0
            while through < min(len(theirs), len(mine)) and theirs[through] == mine[through]:
                through += 1
            theirs, mine = theirs[through:], mine[through:]
        self._check_ours(theirs)
        if len(events) == self.length and not unwritten:
            return
        self.state = cast("StateT", fold(events, f"loop {self.loop_id}"))
        self.length = len(events)
        self.pending = []
        self.recorded(0, events)
        self.theirs_folded()
        for event in mine:
            if not self.take(event):
                self.refused()

    async def _go_on_reading(self) -> None:
        """Take in what was appended since, where the state is that of the journal as it was."""
        theirs = await self.journal.read(self.loop_id, self.length)
        if self.pending:
            # Something of ours was folded while this was read: what others said comes before it.
            await self._catch_up([])
            return
        self._check_ours(theirs)
        for number, event in enumerate(theirs, self.length):
            if not take_any(self.state, event):
                raise JournalCorrupt(
                    f"loop {self.loop_id!r}: event {number}, {type(event).__name__}, does not fit",
                    loop_id=self.loop_id,
                    number=number,
                )
        if theirs:
            self.recorded(self.length, theirs)
            self.length += len(theirs)
            self.theirs_folded()

    def _check_ours(self, theirs: list[Event]) -> None:
        if any(isinstance(event, Resumed) for event in theirs):
            raise LoopTakenOver(
                f"another driver has resumed loop {self.loop_id!r}; this one has stopped",
                loop_id=self.loop_id,
            )

    async def _until_free(self) -> None:
        if self._free is None:
            self._free = asyncio.Event()
        await self._free.wait()

    def _release(self) -> None:
        self._busy = False
        if self._free is not None:
            self._free.set()
            self._free = None


class LoopLedger(Ledger[State]):
    """The ledger of an agent's loop."""

    def take(self, event: Event) -> bool:
        """Fold an event, if it fits here, perhaps with other call ids; `flush` makes it durable.

        What came of a model call is brought into the form in which it is recorded.
        """
        if not take(self.state, event):
            event = told_apart(as_recorded(event, self.state), self.state.ids)
            if not take(self.state, event):
                return False
        self.pending.append(event)
        return True
