"""Keeper: a loop's own side, where the model and the tools are in other processes.

It folds what comes, does what is the loop's own to do (prompt functions, judges, validators, deliveries), and
says what others are to be asked for. It waits for nobody: when only others can go on, `pump` returns; the
next event may be brought to another process. What led to an effect is durable before anybody is asked for it.

Several keepers may keep a loop, in several processes. Whoever appends the event that an effect is owed from
sees to it, and nobody else does: that a loop is looked at twice does not call the model twice. What comes to
a keeper and is recorded already came before, to somebody who may not have lived to see to anything: then
`ask_again` has all of it asked for.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Coroutine, Iterable, Mapping
from typing import Any

from flyball.core.clock import Clock
from flyball.core.effects import Effect, End, Execute, Infer, Wait
from flyball.core.events import Ended, Event, Outcome, TimePassed, ToolStarted
from flyball.orchestrate import performers
from flyball.orchestrate.bindings import Bindings
from flyball.orchestrate.children import Cancel
from flyball.orchestrate.clock import SYSTEM_CLOCK
from flyball.orchestrate.course import OVER
from flyball.orchestrate.editing import Above, Spawn, take_leave
from flyball.orchestrate.journal import Journal
from flyball.orchestrate.ledger import LoopLedger
from flyball.orchestrate.machine import owed
from flyball.orchestrate.state import State


class Keeper(LoopLedger):
    """One loop, kept by one task at a time."""

    def __init__(
        self,
        bindings: Bindings,
        journal: Journal,
        state: State,
        events: Iterable[Event],
        *,
        clock: Clock = SYSTEM_CLOCK,
        cancel: Cancel | None = None,
        spawn: Spawn | None = None,
        above: Above | None = None,
    ) -> None:
        """Keep a loop.

        Args:
            bindings: its agent's code.
            journal: where it is recorded.
            state: where it stands.
            events: those that it has.
            clock: where time comes from.
            cancel: cancels a child, and sees to it that whoever drives it hears of it; without it, in the
                journal.
            spawn: has an editor's loop begun; without it, its loop is begun in the journal.
            above: has the loop above this one see that it is over, once that is recorded there.
        """
        self.events = list(events)
        """What is recorded of the loop, as far as it is known here."""
        super().__init__(journal, state, len(self.events), clock)
        self.bindings = bindings
        self._cancel = cancel
        self._spawn = spawn
        self._above = above
        self._own: tuple[str, asyncio.Task[Event]] | None = None
        self._asked: set[str] = set()
        """The effects that others see to, or we ourselves have."""
        self._ours: set[str] = set()
        """Those that we have to see to, and have not yet: they stay ours when others append."""
        self._again = False
        self.asked_again = False
        """Whether what `pump` gave last may have been seen to by others."""
        self.theirs_folded()

    def ask_again(self, only: Collection[str] | None = None) -> None:
        """Have the next `pump` give effects that others may have seen to: all, or those of these ids."""
        if only is None:
            self._again = True
            self._asked.clear()
        else:
            self._ours.update(only)
            self._asked.difference_update(only)

    def claim(self, event: Event) -> None:
        """This process appends an event to the loop, other than by this keeper: it is ours to tell of."""

    def disclaim(self, event: Event) -> None:
        """It does not, after all."""

    def theirs_folded(self) -> None:
        """Others have appended: what is owed by that, they see to."""
        if not self._again:
            self._asked = {effect.id for effect in owed(self.state)} - self._ours

    def refused(self) -> None:
        """What we were told is recorded already, or came too late: see `ask_again`."""
        self.ask_again()

    def recorded(self, first: int, events: list[Event]) -> None:
        """See `Ledger.recorded`."""
        self.events[first:] = events

    async def pump(self) -> list[Effect]:
        """Go on as far as one can without others; gives what these are to be asked for.

        Raises:
            LoopTakenOver: a driver has resumed the loop.
            JournalFailure: it could not be written.
        """
        while True:
            if self._moved_by_itself():
                continue
            if self.state.at == "done":
                if not self.pending or await self.flush():
                    return []
                continue
            effects = owed(self.state)
            fresh = [effect for effect in effects if effect.id not in self._asked]
            self._ours = {effect.id for effect in fresh}
            own = next((one for one in fresh if not isinstance(one, Infer | Execute | Wait)), None)
            if self.state.at == "end":
                own = effects[0]  # whoever comes by may do it: nobody else need have lived to
            if own is None and self._started(fresh):
                continue
            if self.pending and not await self.flush():
                continue
            if own is None:
                self._asked = {effect.id for effect in effects}
                self._ours, self.asked_again, self._again = set(), self._again, False
                return fresh
            event = await self._performed(own)
            if event is not None:
                self.take(event)

    def _moved_by_itself(self) -> bool:
        """Take the next step that touches nothing: it is made durable with what led to it."""
        state, now = self.state, self.clock.now
        if state.deadline is not None and state.at not in OVER and now() >= state.deadline:
            return self.take(TimePassed(now()))
        if state.at == "settle" and not state.paused and not self.bindings.ruled:
            return self.take(performers.settle(state, self.bindings.output, now)[0])
        if state.at == "end" and not (state.children or state.spec.editor or state.parent_loop_id):
            return self.take(Ended(now(), state.outcome or Outcome.FAILED, state.error))
        return False

    def _started(self, effects: list[Effect]) -> bool:
        """Record that calls start which may not start twice: they may have had their effect from here on."""
        starting = [
            one
            for one in effects
            if isinstance(one, Execute) and one.once and one.index not in self.state.once
        ]
        for effect in starting:
            self.take(ToolStarted(self.clock.now(), effect.turn, effect.index))
        return bool(starting)

    async def _performed(self, effect: Effect) -> Event | None:
        """Carry out an effect of the loop's own; None where it was owed no longer before it was done."""
        task = asyncio.ensure_future(
            self._leave(effect) if isinstance(effect, End) else self._perform(effect)
        )
        self._own = effect.id, task
        following: asyncio.Task[None] | None = None
        try:
            await asyncio.sleep(0)
            if not task.done():
                # It waits for something: others may have their say meanwhile.
                following = asyncio.ensure_future(self.follow())
                await asyncio.wait([task, following], return_when=asyncio.FIRST_COMPLETED)
                if following.done():
                    following.result()
            return None if task.cancelled() else await task
        except asyncio.CancelledError:
            if task.cancelled() and not self._is_owed(effect.id):
                return None
            raise
        finally:
            self._own = None
            for one in (task, following):
                if one is not None and not one.done():
                    one.cancel()
                    await asyncio.wait([one])
                elif one is not None and not one.cancelled():
                    one.exception()  # seen: what comes of this is decided by the other

    def _perform(self, effect: Effect) -> Coroutine[Any, Any, Event]:
        bindings, now = self.bindings, self.clock.now
        return performers.perform_own(effect, self.state, bindings, bindings.deps, now, self)

    async def _leave(self, effect: End) -> Event:
        """Do what the end owes others, and then write it down."""
        await take_leave(
            effect,
            self.state,
            self.journal,
            self.bindings,
            self.clock,
            parent=self,
            cancel=self._cancel,
            spawn=self._spawn,
            above=self._above,
        )
        return await self._perform(effect)

    calls_again = False
    """See `Home.calls_again`: who is asked here waits for the loop that he begins."""

    def child_options(self) -> Mapping[str, Any]:
        """Where loops go that the agent's own functions begin, such as a judge's: beside it, and driven here.

        They are short, and what waits for them holds its message in any case. If this process dies, whoever
        is asked next finds them by their ids, and goes on with them.
        """
        return {"journal": self.journal, "clock": self.clock}

    def stir(self) -> None:
        """Others have appended: stop what is owed no longer."""
        if self._own is not None and not self._is_owed(self._own[0]):
            self._own[1].cancel()

    def _is_owed(self, effect: str) -> bool:
        return any(other.id == effect for other in owed(self.state))
