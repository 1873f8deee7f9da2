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
from collections.abc import Coroutine, Mapping, Sequence
from contextlib import suppress
from typing import Any

from flyball.core.clock import Clock, Timer
from flyball.core.detach import Detach
from flyball.core.effects import (
    Admit,
    Deliver,
    Effect,
    End,
    Execute,
    Infer,
    Judge,
    Prepare,
    Review,
    Settle,
    Wait,
)
from flyball.core.errors import FlyballError, JournalConflict, LoopMismatch, LoopNotFound, UserError
from flyball.core.events import (
    VERSION,
    Ended,
    Event,
    Forked,
    Outcome,
    Reopened,
    Resumed,
    Stage,
    Started,
    TimePassed,
    ToolStarted,
)
from flyball.core.signals import Signal
from flyball.core.spec import LoopSpec
from flyball.inference.stream import Assembler
from flyball.orchestrate import performers
from flyball.orchestrate.bindings import Bindings
from flyball.orchestrate.children import (
    Parent,
    begin,
    cancel_by_journal,
    cancel_children,
    heed_parent,
)
from flyball.orchestrate.clock import SYSTEM_CLOCK
from flyball.orchestrate.commands import call_to_run
from flyball.orchestrate.editing import editor_bindings, editor_loop, editor_started
from flyball.orchestrate.facts import call_facts
from flyball.orchestrate.journal import Journal
from flyball.orchestrate.ledger import Ledger
from flyball.orchestrate.machine import asked_to_detach, fold, owed, start, take
from flyball.orchestrate.requests import RequestParts, request_of, request_parts
from flyball.orchestrate.result import deferred
from flyball.orchestrate.signalling import signal_event, stage_if_taken
from flyball.orchestrate.state import State
from flyball.orchestrate.tasks import current_task
from flyball.orchestrate.turn import unfinished_once, waits_for_results
from flyball.tool.detach import Detaches

UNREAD: Any = object()
"""Stands for an output that has not been read from the state yet."""


class Drive(Ledger):
    """One loop, driven in this process. Made by `begin` or `take_over`, used by one task at a time.

    `shared` says that others may reach the journal: while an effect runs, what they append is looked out for.
    """

    _cancelling = 0
    _detaches: Detaches | None = None
    _failure: Exception | None = None
    _follower: asyncio.Handle | asyncio.Task[None] | None = None
    _timer: Timer | None = None
    _wake: asyncio.Future[None] | None = None
    answering: Assembler | None = None
    """Joins the answer that is being streamed, or was last."""
    editor: Drive | None = None
    """The editor's loop, once this one has begun it."""
    effect: Effect | None = None
    """What is being performed in this task."""
    interrupted = False
    """Whether `effect` has been told to stop, because it is owed no longer."""
    output: Any = UNREAD
    stays = False
    """Whether results from outside are waited for here; else who drives is told that they are missing."""
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
        spec = state.spec
        self.parts: RequestParts = bindings.parts if spec is bindings.spec else request_parts(spec)

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
        try:
            if started.parent_loop_id:
                state, length = await begin(journal, started, clock, parent)
            else:
                length = await journal.append(started.loop_id, (started,), 0)
                state = start(started)
        except JournalConflict:
            return await cls.take_over(bindings, journal, started.loop_id, clock, started)
        return cls(bindings, journal, state, length, clock, shared=shared)

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
        """
        events = await journal.read(loop_id)
        if not events:
            raise LoopNotFound(f"there is no loop {loop_id!r} in the journal", loop_id=loop_id)
        state = fold(events, f"loop {loop_id}")
        if wanted is not None:
            check_same(events, wanted)
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
        return drive

    # Running

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
            while self.state.at != "done" or self.pending:
                if self._failure is not None:
                    raise self._failure
                state = self.state
                if state.at == "settle" and not (state.paused or self.bindings.ruled):
                    # The type alone has a say. It touches nothing: what led here is flushed with its verdict.
                    event, output = performers.settle(state, self.bindings.output, self.clock.now)
                    if event.accepted:
                        self.output = output
                    if take(state, event):
                        self.pending.append(event)
                    if not to_end and self.state.at != "end":
                        return
                if state.at == "end":
                    if state.children or state.spec.editor:
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
                effects = owed(state)
                if state.deadline is not None:
                    self._set_timer(effects)
                if len(effects) != 1 or type(effects[0]) is Wait:
                    await self._together()
                else:
                    unwritten = reachable and (self.pending or self._busy)
                    if unwritten and not (self.flush_now() or await self.flush()):
                        continue  # something came meanwhile: ask again what is owed
                    self.effect = effects[0]
                    if self.shared:
                        self.look_out()
                    try:
                        event = await self.perform(effects[0])
                    except asyncio.CancelledError:
                        if not self.is_interruption():
                            raise
                        event = None
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
            if to_end and (self._timer is not None or self._follower is not None):
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
                if not (running or self.stays) and waits_for_results(self.state):
                    if self.shared and await self._answered_by_now():
                        continue
                    raise deferred(self.state, self.journal, self.bindings.tracker)
                for name, effect in wanted.items():
                    if name not in running:
                        running[name] = asyncio.ensure_future(self.perform(effect))
                await asyncio.wait([wake, *running.values()], return_when=asyncio.FIRST_COMPLETED)
                self._take_done(running, wanted)
        except BaseException:
            # What has ended by now is not thrown away, whatever it is that ends this here.
            self._take_done(running, {})
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

    def _take_done(
        self, running: dict[str, asyncio.Future[Event | None]], effects: Mapping[str, Effect]
    ) -> None:
        """Fold what the effects that have ended gave, in the order in which they ended."""
        events: list[Event] = []
        for name in [name for name, task in running.items() if task.done()]:
            task, effect = running.pop(name), effects.get(name)
            event: Event | None = None
            if not task.cancelled():
                event = task.result()
            elif isinstance(effect, Execute):
                call = self.state.calls[effect.index]
                event = performers.call_cancelled(call, effect.turn, effect.index, self.clock.now())
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

    # Effects

    def perform(self, effect: Effect) -> Coroutine[Any, Any, Event | None]:
        """Carry out one effect: awaited, it gives the event that answers it."""
        state, bindings, now = self.state, self.bindings, self.clock.now
        if type(effect) is Infer:
            request, purpose = request_of(state, effect, self.parts), effect.purpose
            engine = bindings.engine if purpose == "turn" else bindings.engine_for(purpose)
            return performers.infer(engine, request, state.turn, now, purpose)
        if isinstance(effect, Execute):
            return self._execute_once(effect) if effect.once else self._execute(effect)
        deps = bindings.deps
        if isinstance(effect, Settle):
            return self._settle()
        if isinstance(effect, Prepare):
            return performers.prepare(state, bindings, deps, now, self)
        if isinstance(effect, Admit):
            return performers.admit(state, bindings, deps, now, self)
        if isinstance(effect, Review):
            return performers.review(state, bindings, deps, now, self)
        if isinstance(effect, Judge):
            return performers.judge(state, effect.indices, bindings, deps, now, self)
        assert isinstance(effect, Deliver), effect
        return performers.deliver(state, bindings, self.read_output(), deps, now, self)

    def _execute(self, effect: Execute) -> Coroutine[Any, Any, Event]:
        state = self.state
        index = effect.index
        call = state.calls[index] if state.arguments is None else call_to_run(state, index)
        tool = self.bindings.tools.get(call.name)
        facts = call_facts(state, effect) if tool is not None and tool.wants_context else None
        bindings, now = self.bindings, self.clock.now
        return performers.call_tool(tool, call, state.turn, index, bindings.deps, facts, now, self, self)

    def detach(self, call: str, *, asked: bool = False) -> Detach:
        """See `DetachSource.detach`."""
        if self._detaches is None:
            self._detaches = Detaches()
        return self._detaches.detach(call, asked=asked or call in asked_to_detach(self.state))

    async def _execute_once(self, effect: Execute) -> Event | None:
        """Record that the call starts, then run it, unless something else came first."""
        if not self.take(ToolStarted(self.clock.now(), effect.turn, effect.index)):
            return None
        await self.flush()
        if not any(other.id == effect.id for other in owed(self.state)):
            return None
        return await self._execute(effect)

    async def _settle(self) -> Event:
        bindings = self.bindings
        event, output = await performers.settle_validated(
            self.state, bindings, bindings.deps, self.clock.now, self
        )
        if event.accepted:
            self.output = output
        return event

    def read_output(self) -> Any:
        """The output of a loop that ended well; None of any other."""
        if self.state.outcome is not Outcome.SUCCESS:
            return None
        if self.output is UNREAD:
            self.output = self.bindings.output.of(self.state)
        return self.output

    # Loops under this one

    def child_options(self) -> Mapping[str, Any]:
        """Where child loops go: beside their parent."""
        return {"journal": self.journal}

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
                started = editor_started(self.state, bindings.spec, clock.now())
                begin, shared = type(self).begin, self.shared
                self.editor = await begin(bindings, journal, started, clock, shared=shared, parent=self)
        return self.editor

    # Signals and time

    async def signal(self, signal: Signal) -> Stage:
        """Take a signal; durable when this returns, with the stage that the loop is in then.

        Raises:
            SignalRefused: it does not fit (any more).
        """
        event = signal_event(signal, self.clock.now())
        taken = self.take(event)
        if not taken and self.shared:
            await self.catch_up()  # what others said may make it fit
            self.stir()
            taken = self.take(event)
        if not taken:
            stage = stage_if_taken(self.state, signal)
            await self.flush()
            return stage
        if type(event) is Reopened:
            self.close()  # the timer of the attempt before
            self.output = UNREAD
        if not await self.flush() and event not in await self.journal.read(self.loop_id):
            return stage_if_taken(self.state, signal)  # something came first
        self.stir()
        return stage_if_taken(self.state)

    def _time_passed(self) -> None:
        # A timer's clock and ours may differ by a hair; that it fired is what counts.
        now, deadline = self.clock.now(), self.state.deadline
        if self.take(TimePassed(now if deadline is None or now > deadline else deadline)):
            self.stir()

    def theirs_folded(self) -> None:
        """Others may have asked what runs here to detach."""
        if self._detaches is not None:
            self._detaches.ask(asked_to_detach(self.state))

    def stir(self) -> None:
        """Make the driver look again: wake it, or interrupt what it runs if that is owed no longer."""
        if self._detaches is not None:
            self._detaches.ask(asked_to_detach(self.state))
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


def check_same(events: Sequence[Event], wanted: Started) -> None:
    """Check that a recorded loop is the one that is wanted.

    Raises:
        LoopMismatch: it has another prompt, history, spec, metadata or tool state.
    """
    first = events[0]
    assert isinstance(first, Started)
    prompt, spec = first.prompt, first.spec
    for event in events:
        if isinstance(event, Forked):
            prompt, spec = event.prompt or prompt, event.spec
    recorded = {
        "prompt": prompt,
        "history": first.history,
        "spec": spec,
        "metadata": first.metadata,
        "carried": first.carried,
        "tool_state": first.tool_state,
    }
    differs = [name for name, value in recorded.items() if value != getattr(wanted, name)]
    if differs:
        raise LoopMismatch(
            f"loop {wanted.loop_id!r} exists with another {' and '.join(differs)}: "
            "choose another loop_id, or go on with the recorded one by resume()",
            loop_id=wanted.loop_id,
            differs=differs,
        )


def check_bound(spec: LoopSpec, bindings: Bindings) -> None:
    """Check that what a recorded spec counts on is bound here; a missing tool is told to the model instead.

    Raises:
        UserError: naming what is missing.
    """
    wanted = {
        "prompt functions": (spec.admits, bindings.spec.admits),
        "output validators": (spec.output.validated, bindings.ruled),
        "deliveries": (spec.delivers, bindings.deliveries),
        "tool filters": (spec.filters, bindings.filters),
        "an approval callback": (spec.judges, bindings.approval),
        "an editor": (spec.editor, bindings.editor),
    }
    missing = [what for what, (needed, bound) in wanted.items() if needed and not bound]
    missing += [repr(name) for name in spec.checks if name not in bindings.spec.checks]
    if missing:
        raise UserError(
            f"the loop was begun by an agent with {' and '.join(missing)}; this one has none: "
            "resume it with an agent that does"
        )
