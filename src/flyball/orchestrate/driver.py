"""The in-process driver: runs what a loop owes, on asyncio, and records what comes back.

It has no policy. It asks the machine what is owed, does it, and appends the answer; what runs and is owed no
longer is cancelled. Three habits keep it cheap and safe:

- An effect that is alone is awaited in place; only effects that run beside each other get a task each.
- What led to an effect is durable before the effect touches the world: events are flushed to the journal
  before a model call, a tool call or a user's function begins, and before a caller is told anything.
- Signals and the deadline are folded as they come, also those that others append to the journal. If what
  runs is then owed no longer, it is interrupted, the way `asyncio.timeout` does it: by a cancellation that
  does not leave the driver.

Cancelling the task that drives is not a signal: it leaves the journal as it stands, and `resume` goes on.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, cast

from flyball.core.clock import Clock, Timer
from flyball.core.effects import (
    Effect,
    End,
    Execute,
    Infer,
    Wait,
)
from flyball.core.errors import (
    Deferred,
    FlyballError,
    JournalConflict,
)
from flyball.core.events import (
    VERSION,
    Ended,
    Event,
    Outcome,
    Reopened,
    Resumed,
    Stage,
    Started,
    TimePassed,
)
from flyball.core.signals import Signal
from flyball.inference.stream import Assembler
from flyball.orchestrate.bindings import Bindings
from flyball.orchestrate.calls import unfinished_once, waits_for_results
from flyball.orchestrate.children import (
    Parent,
    begin,
    cancel_by_journal,
    cancel_children,
    heed_parent,
    tell_parent,
)
from flyball.orchestrate.claims import claim_on, kept
from flyball.orchestrate.clock import SYSTEM_CLOCK
from flyball.orchestrate.editing import editor_beginning, editor_bindings, editor_loop
from flyball.orchestrate.family import pass_on
from flyball.orchestrate.journal import Claim, Journal
from flyball.orchestrate.ledger import Ledger
from flyball.orchestrate.machine import fold, owed, start, take
from flyball.orchestrate.matching import check_bound, check_same
from flyball.orchestrate.performers import call_cancelled
from flyball.orchestrate.performing import UNREAD, Performing
from flyball.orchestrate.recorded import offering, state_of
from flyball.orchestrate.requests import request_parts
from flyball.orchestrate.result import deferred
from flyball.orchestrate.signalling import see_that_it_is_the_same, signal_event, stage_if_taken
from flyball.orchestrate.state import State
from flyball.orchestrate.tasks import current_task

if TYPE_CHECKING:
    from flyball.observe.trace import RunTrace


class Drive(Performing):
    """One loop, driven in this process. Made by `begin` or `take_over`, used by one task at a time.

    `shared` says that others may reach the journal: while an effect runs, what they append is looked out for.
    """

    _cancelling = 0
    _follower: asyncio.Handle | asyncio.Task[None] | None = None
    _timer: Timer | None = None
    _wake: asyncio.Future[None] | None = None
    answering: Assembler | None = None
    """Joins the answer that is being streamed, or was last."""
    editor: Drive | None = None
    """The editor's loop, once this one has begun it."""
    effect: Effect | None = None
    """What is being performed in this task."""
    parent: Parent | None = None
    """The loop that this one was begun under, where it is driven here too."""
    by_hand = False
    """Whether somebody drives it step by step, who can say something to it meanwhile."""
    stays = False
    """Whether results from outside are waited for here; else who drives is told that they are missing."""
    trace: RunTrace | None = None
    """The loop's trace, once it is over and if its agent traces."""
    task: asyncio.Task[Any] | None = None
    """The task that drives, while it may be interrupted."""

    def __init__(
        self,
        bindings: Bindings,
        journal: Journal,
        state: State,
        length: int,
        clock: Clock = SYSTEM_CLOCK,
        *,
        shared: bool = True,
    ) -> None:
        # Ledger's own, set here: a run makes one of these, and each call counts.
        self.journal = journal
        self.state = state
        self.loop_id = state.loop_id
        self.length = length
        self.clock = clock
        self.pending = []
        self.bindings = bindings
        self.shared = shared
        # Looked at with every effect; what is seldom looked at has its default in the class.
        self.interrupted = False
        """Whether `effect` has been told to stop, because it is owed no longer."""
        self._failure: Exception | None = None
        spec = state.spec
        self.parts = bindings.parts if spec is bindings.spec else request_parts(spec)

    # Beginning

    @classmethod
    async def begin(
        cls,
        bindings: Bindings,
        journal: Journal,
        started: Started,
        clock: Clock = SYSTEM_CLOCK,
        *,
        shared: bool = True,
        parent: Parent | None = None,
    ) -> Drive:
        """Begin a loop, or go on with the one that has this id already.

        `parent` is the loop that it is begun under, where that one's journal need not be read.

        Raises:
            LoopMismatch: the id belongs to a loop with another prompt, history or spec.
        """
        if bindings.watched is not None and not cls.watches:
            kind: type[Drive] = bindings.watched(cls)
            return await kind.begin(bindings, journal, started, clock, shared=shared, parent=parent)
        claim = cls.claimed(journal, started.loop_id) if shared else None
        try:
            with kept(claim):
                if started.parent_loop_id:
                    begun, length = await begin(journal, started, clock, parent)
                    assert isinstance(begun, State)
                    state = begun
                else:
                    length = await journal.append(started.loop_id, (started,), 0)
                    state = start(started)
                drive = cls(bindings, journal, state, length, clock, shared=shared)
        except JournalConflict:
            drive = await cls.take_over(bindings, journal, started.loop_id, clock, started)
        else:
            drive.held = claim
        if parent is not None:
            drive.parent = parent
        return drive

    @classmethod
    async def take_over(
        cls,
        bindings: Bindings,
        journal: Journal,
        loop_id: str,
        clock: Clock = SYSTEM_CLOCK,
        wanted: Started | None = None,
    ) -> Drive:
        """Go on with a recorded loop. A driver that still works on it is fenced off.

        Raises:
            LoopNotFound: the journal holds no such loop.
            LoopMismatch: the loop is another one than the `wanted` one.
            LoopTakenOver: another driver took it over at the same moment.
            UserError: it is a flow, or counts on what is not bound here.
        """
        if bindings.watched is not None and not cls.watches:
            return await bindings.watched(cls).take_over(bindings, journal, loop_id, clock, wanted)
        claim = cls.claimed(journal, loop_id)
        with kept(claim):
            events = await journal.read(loop_id)
            if wanted is not None and events:
                check_same(events, wanted)
            state = state_of(events, loop_id)
            if state.at != "done":
                check_bound(state.spec, bindings)
            if state.parent_loop_id:
                await heed_parent(journal, loop_id, clock)
                events = await journal.read(loop_id)
                state = fold(events, f"loop {loop_id}")
            drive = cls(bindings, journal, state, len(events), clock)
            if state.at != "done":
                now = clock.now()
                drive.take(Resumed(now, VERSION, state.epoch + 1))
                if state.deadline is not None and now >= state.deadline:
                    drive.take(TimePassed(now))  # before anything is begun that there is no time for
                await drive.flush()
        if drive.done:
            drive.held = claim
            drive.release()
        else:
            drive.hold(claim)
        return drive

    @classmethod
    def claimed(cls, journal: Journal, loop_id: str) -> Claim | None:
        """A claim on a loop that is about to be driven. Who was asked to drive it does, also without one."""
        return claim_on(journal, loop_id)

    # Running

    @property
    def reachable(self) -> bool:
        """See `Ledger.reachable`."""
        if self.by_hand:
            return True
        if (above := self.parent) is None:
            return self.shared
        return cast("Ledger[Any]", above).reachable if isinstance(above, Ledger) else True

    @property
    def done(self) -> bool:
        """Whether the loop is over, and recorded as such."""
        return self.state.at == "done" and not self.pending

    def run(self) -> Coroutine[Any, Any, None]:
        """Run to the end."""
        if self.shared or self.state.deadline is not None:
            self.enter()  # else nobody can reach the run, and nothing interrupts it
        return self.advance(to_end=True)

    def enter(self) -> None:
        """Note which task drives: the one that an interruption is sent to."""
        self.task = task = current_task(asyncio.get_running_loop())
        self._cancelling = 0 if task is None else task.cancelling()
        state = self.state
        if state.once and state.at == "execute" and unfinished_once(state):
            # The task that ran them was cancelled. They may not start again: as after any other break.
            self.take(Resumed(self.clock.now(), VERSION, state.epoch + 1))

    def close(self) -> None:
        """Let go of the timer and the journal. The loop stays as it is recorded."""
        self.release()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._follower is not None:
            self._follower.cancel()
            self._follower = None

    async def advance(self, *, to_end: bool = False) -> None:
        """Do what is owed next, or all that is owed until the end.

        What comes of it is folded, and durable before anything else happens; in a journal that nobody but the
        run itself can reach, and only at its end, it is all written then.
        """
        reachable = self.shared or not to_end
        try:
            while (state := self.state).at != "done" or self.pending:
                if self._failure is not None:
                    raise self._failure
                if state.at == "end":
                    if state.children or state.spec.editor or state.parent_loop_id:
                        if not await self._take_leave():
                            continue
                        state = self.state
                    ended = Ended(self.clock.now(), state.outcome or Outcome.FAILED, state.error)
                    if take(state, ended):
                        self.pending.append(ended)
                if state.at == "done":
                    # Only an end that is recorded is one: somebody may have said something first.
                    if not self.flush_now():
                        await self.flush()
                    continue
                if state.at == "settle" and not (state.paused or self.bindings.ruled):
                    # The type alone has a say. It touches nothing: what led here is flushed with its verdict.
                    self.settle_by_type()
                    if to_end or self.state.at == "end":
                        continue
                    return
                effects = owed(state)
                if state.deadline is not None:
                    self._set_timer(effects)
                if len(effects) != 1 or type(effect := effects[0]) is Wait:
                    await self._together()
                else:
                    if (
                        reachable
                        and (self.pending or self._busy)
                        and not (self.flush_now() or await self.flush())
                    ):
                        continue  # something came meanwhile: ask again what is owed
                    self.effect = effect
                    if self.shared:
                        self.look_out()
                    try:
                        event = await self.perform(effect)
                    except asyncio.CancelledError:
                        if not self.is_interruption():
                            raise
                        event = None
                    except Deferred as error:
                        raise self._deferred((error,)) from error
                    finally:
                        self.effect = None
                        if self.interrupted:
                            self.is_interruption()  # it ended all the same: take the cancellation back
                    if event is not None:
                        if take(self.state, event):
                            self.pending.append(event)
                        else:
                            self.take(event)  # it may fit with other call ids, or as it is recorded
                if not to_end and self.state.at != "end":
                    return
        finally:
            if to_end and (self._timer or self._follower or self.held) is not None:
                self.close()

    def look_out(self) -> None:
        """Follow the journal while an effect is under way."""
        if self._follower is None:
            # Not at once: an effect that does not wait for anything needs no look-out.
            self._follower = asyncio.get_running_loop().call_soon(self._follow)

    def is_interruption(self) -> bool:
        """Whether a cancellation that has just arrived was sent by this driver, and by nobody else."""
        sent, self.interrupted = self.interrupted, False
        return sent and self.task is not None and self.task.uncancel() <= self._cancelling

    async def next_inference(self) -> Infer | None:
        """Do what is owed, unless that is a turn's model call alone: then it is given back, to be made."""
        if self._failure is not None:
            raise self._failure
        effects = owed(self.state)
        if self.state.deadline is not None:
            self._set_timer(effects)
        effect = effects[0] if len(effects) == 1 else None
        if type(effect) is not Infer or effect.purpose != "turn":
            await self.advance()
            return None
        if (self.pending or self._busy) and not await self.flush():
            return None
        return effect

    async def _together(self) -> None:
        """Perform effects beside each other, until only one is owed that is no wait, or nothing."""
        running: dict[str, asyncio.Future[Event | None]] = {}
        held: dict[str, Deferred] = {}
        """The calls whose loops wait for results from outside: they are run again when this is resumed."""
        new_wake = asyncio.get_running_loop().create_future
        try:
            while True:
                # Made before anything is looked at: whatever comes from here on is not missed.
                self._wake = wake = new_wake()
                if self.shared and self._follower is None:
                    self._follow()
                if self._failure is not None:
                    raise self._failure
                effects = owed(self.state)
                if self.state.deadline is not None:
                    self._set_timer(effects)
                wanted = {effect.id: effect for effect in effects if not isinstance(effect, Wait | End)}
                unwanted = [running.pop(name) for name in list(running) if name not in wanted]
                if unwanted:
                    await _stopped(unwanted)
                    continue
                if not running and (not effects or (len(effects) == 1 and type(effects[0]) is not Wait)):
                    return
                if (self.pending or self._busy) and not await self.flush():
                    continue
                if not running and self._stands_still(wanted, held):
                    if self.shared and await self._answered_by_now():
                        continue
                    raise self._deferred(held.values())
                for name, effect in wanted.items():
                    if name not in running and name not in held:
                        running[name] = asyncio.ensure_future(self.perform(effect))
                await asyncio.wait([wake, *running.values()], return_when=asyncio.FIRST_COMPLETED)
                self._take_done(running, wanted, held)
        except BaseException:
            # What has ended by now is not thrown away, whatever it is that ends this here.
            self._take_done(running, {}, held)
            if self.pending:
                with suppress(FlyballError):  # the exception that is on its way says more
                    await self.flush()
            raise
        finally:
            self._wake = None
            if running:
                await _stopped(list(running.values()))

    async def _answered_by_now(self) -> bool:
        """Whether somebody has appended something that was not known here yet."""
        length = self.length
        await self.catch_up()
        return self.length != length

    def _stands_still(self, wanted: Mapping[str, Effect], held: Mapping[str, Deferred]) -> bool:
        """Whether only results from outside can go on: for the loop itself, or for those under it."""
        if held and wanted and all(name in held for name in wanted):
            return not self.state.awaiting
        if not waits_for_results(self.state):
            return False
        self.stood_still()
        return not self.stays

    def stood_still(self) -> None:
        """Called when all is recorded, and nothing but results from outside can go on."""

    def _deferred(self, below: Iterable[Deferred]) -> Deferred:
        return deferred(self.state, self.journal, self.bindings.tracker, below)

    def _take_done(
        self,
        running: dict[str, asyncio.Future[Event | None]],
        effects: Mapping[str, Effect],
        held: dict[str, Deferred],
    ) -> None:
        """Fold what the effects that have ended gave, in the order in which they ended."""
        events: list[Event] = []
        for name in [name for name, task in running.items() if task.done()]:
            task, effect = running.pop(name), effects.get(name)
            event: Event | None = None
            if not task.cancelled():
                if isinstance(error := task.exception(), Deferred):
                    held[name] = error
                    continue
                event = task.result()
            elif isinstance(effect, Execute):
                call = self.state.calls[effect.index]
                event = call_cancelled(call, effect.turn, effect.index, self.clock.now())
            if event is not None:
                events.append(event)
        for event in sorted(events, key=_when):
            self.take(event)

    def _set_timer(self, effects: list[Effect]) -> None:
        """Take the wait for the deadline out of the effects: a timer serves it, not a task."""
        last = effects[-1] if effects else None
        if isinstance(last, Wait) and last.until is not None:
            effects.pop()
            if self._timer is None:
                self._timer = self.clock.call_at(last.until, self._time_passed)

    # Loops under this one

    async def _take_leave(self) -> bool:
        """Do what the end owes others; False if something came first, so that one must look again."""
        if self.pending and not (self.flush_now() or await self.flush()):
            return False
        effect = owed(self.state)[0]
        if isinstance(effect, End):
            if effect.cancels:
                cancel = cancel_by_journal(self.journal, self.clock)
                await cancel_children(self.journal, self.state, cancel)
            if effect.editor:
                await self.begin_editor()
            if self.state.parent_loop_id:
                await tell_parent(self.journal, self.state, self.clock.now(), self.parent)
        return True

    async def begin_editor(self) -> Drive:
        """Begin the editor's loop, or go on with it; it is driven by whoever drove this one, after it.

        Raises:
            UserError: the agent has no editor here.
        """
        if self.editor is None:
            bindings, journal, clock = editor_bindings(self.bindings), self.journal, self.clock
            loop_id = editor_loop(self.loop_id)
            if await journal.read(loop_id):
                self.editor = await type(self).take_over(bindings, journal, loop_id, clock)
            else:
                started = await editor_beginning(self.state, self.bindings, clock.now(), journal)
                begin, shared = type(self).begin, self.shared
                self.editor = await begin(bindings, journal, started, clock, shared=shared, parent=self)
        return self.editor

    # Signals and time

    async def signal(self, signal: Signal) -> Stage:
        """Take a signal; durable when this returns, with the stage that the loop is in then.

        Raises:
            SignalRefused: it does not fit (any more), or its id is that of another signal.
        """
        event = signal_event(signal, self.clock.now())
        taken = self.take(event)
        if not taken and self.shared:
            await self.catch_up()  # what others said may make it fit
            self.stir()
            taken = self.take(event)
        if not taken:
            if signal.id in self.state.signals:
                await self.flush()
                see_that_it_is_the_same(await self.journal.read(self.loop_id), signal)
            below = bool(self.state.children) and await self._pass_on(signal, taken=False)
            stage = stage_if_taken(self.state, None if below else signal)
            await self.flush()
            return stage
        if type(event) is Reopened:
            self.close()  # the timer of the attempt before
            self.output = UNREAD
        if not await self.flush() and event not in await self.journal.read(self.loop_id):
            return stage_if_taken(self.state, signal)  # something came first
        self.stir()
        if self.state.children:
            await self._pass_on(signal, taken=True)
        return stage_if_taken(self.state)

    async def _pass_on(self, signal: Signal, *, taken: bool) -> bool:
        """Say a signal to the loops under this one that it concerns; whether it was for one of them."""
        offer = offering(self.journal, self.clock)
        return await pass_on(self.journal, self.state, signal, taken, offer)

    def _time_passed(self) -> None:
        # A timer's clock and ours may differ by a hair; that it fired is what counts.
        now, deadline = self.clock.now(), self.state.deadline
        if self.take(TimePassed(now if deadline is None or now > deadline else deadline)):
            self.stir()

    def stir(self) -> None:
        """Make the driver look again: wake it, or interrupt what it runs if that is owed no longer."""
        self.theirs_folded()
        if self._wake is not None:
            if not self._wake.done():
                self._wake.set_result(None)
        elif self.effect is not None and not self.interrupted:
            current = self.effect.id
            if self._failure is not None or not any(effect.id == current for effect in owed(self.state)):
                self.interrupted = True
                if self.task is not None:
                    self.task.cancel()

    def _follow(self) -> None:
        """Begin to look out for what others append, if something is under way that it may concern."""
        busy = self.effect is not None or self._wake is not None
        self._follower = asyncio.ensure_future(self._following()) if busy else None

    async def _following(self) -> None:
        try:
            await self.follow()
        except Exception as error:
            # The task that drives raises it.
            self._failure = error
            self.stir()


def _when(event: Event) -> float:
    return event.at


async def _stopped(tasks: list[asyncio.Future[Any]]) -> None:
    """Cancel tasks and wait until they have ended, however they end: nobody wants their answers any more."""
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)
    for task in tasks:
        if not task.cancelled():
            task.exception()
