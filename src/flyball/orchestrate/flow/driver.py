"""The driver of a flow: runs what it owes, on asyncio, and records what comes back. It has no policy.

- What led to a step is durable before the step begins, and what it gave before anything follows from it.
- Steps that run are tasks; one that is owed no longer is cancelled. Its loop, if it had one, is told so.
- Signals are found in the journal, where anybody may put them. What concerns the loops under the flow is
  passed on to them: through their runtime, if they have one, else in the journal, where their drivers look.

Cancelling the task that drives is not a signal: it leaves the journals as they stand, and the flow goes on
from there when it is run again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from flyball.core.clock import Clock, Timer
from flyball.core.context import RunFacts
from flyball.core.effects import End, FlowEffect, RunStep, SignalChild, Wait
from flyball.core.errors import (
    CancelledTimeout,
    Deferred,
    FlyballError,
    JournalConflict,
    JournalFailure,
    LoopMismatch,
    LoopNotFound,
    SignalRefused,
    StepFailed,
    WorkPutAside,
)
from flyball.core.events import VERSION, Ended, Event, FlowStarted, Outcome, Resumed, StepEnded, TimePassed
from flyball.core.flow import FlowNode, node_at
from flyball.core.signals import Signal
from flyball.core.usage import RunUsage
from flyball.inference.system_clock import sleep
from flyball.orchestrate.awaiting import is_cancelled
from flyball.orchestrate.children import (
    Cancel,
    Parent,
    begin,
    cancel_by_journal,
    cancel_children,
    cancel_signal,
    heed_parent,
    tell_parent,
)
from flyball.orchestrate.claims import claim_on, kept
from flyball.orchestrate.features import NO_STAGES, Stages
from flyball.orchestrate.flow.doing import Doing, Hear, StepContext
from flyball.orchestrate.flow.parts import Part, part_at, read_input
from flyball.orchestrate.flow.values import Values
from flyball.orchestrate.flow_loops import children_of
from flyball.orchestrate.flow_machine import fold, owed, start
from flyball.orchestrate.flow_state import FlowState
from flyball.orchestrate.journal import Journal
from flyball.orchestrate.ledger import Ledger
from flyball.orchestrate.recorded import load_any
from flyball.orchestrate.runtime import Runtime
from flyball.tool.result import describe

if TYPE_CHECKING:
    from flyball.identity.acting import ActsAs

_NOT_THE_STEPS = (JournalFailure, WorkPutAside)
"""What keeps a step from ending and is no failure of its own: the flow can be gone on with."""


class Place:
    """Where a flow and the loops under it are, and what they are run with."""

    __slots__ = ("acting", "clock", "deps", "given", "hear", "journal", "reachable", "runtime", "stages")

    def __init__(
        self,
        journal: Journal,
        runtime: Runtime | None,
        clock: Clock,
        deps: Any,
        *,
        given: bool,
        reachable: bool,
        hear: Hear | None = None,
        stages: Stages = NO_STAGES,
        acting: ActsAs | None = None,
    ) -> None:
        self.journal = journal
        self.runtime = runtime
        self.clock = clock
        self.deps = deps
        self.hear = hear
        self.given = given
        """Whether others may reach the journal."""
        self.reachable = reachable
        """Whether anybody can say something to the flow, or to what is above it."""
        self.stages = stages
        """Who watches the flow."""
        self.acting = acting
        """What hands on to the agents in it."""


class FlowDrive(Ledger[FlowState]):
    """One flow, driven in this process. Made by `begin`, used by one task."""

    def __init__(self, root: Part, flow_input: Values, place: Place, state: FlowState, length: int) -> None:
        super().__init__(place.journal, state, length, place.clock)
        self._given_root = root
        self._grown: tuple[FlowNode, Part] = (state.flow, root.grown(state.flow))
        self._input = flow_input
        self._place = place
        self._running: dict[str, asyncio.Task[StepEnded | None]] = {}
        self._told: set[str] = set()
        """The signals that were passed on, by the ids of their effects."""
        self._deferred: dict[str, Deferred] = {}
        """The steps that wait for results from outside."""
        self._wake: asyncio.Future[None] | None = None
        self._follower: asyncio.Task[None] | None = None
        self._timer: Timer | None = None
        self._failure: BaseException | None = None

    @property
    def reachable(self) -> bool:
        """See `Ledger.reachable`."""
        return self._place.reachable

    # Beginning

    @classmethod
    async def begin(
        cls,
        root: Part,
        flow_input: Values,
        place: Place,
        started: FlowStarted,
        parent: Parent | None = None,
    ) -> FlowDrive:
        """Begin a flow, or go on with the one that has this id. Another driver of it is fenced off.

        Raises:
            LoopMismatch: the id belongs to something else.
            LoopTakenOver: another driver took it over at the same moment.
        """
        journal, clock = place.journal, place.clock
        claim = claim_on(journal, started.loop_id) if place.given else None
        with kept(claim):
            try:
                if started.parent_loop_id:
                    state, length = await begin(journal, started, clock, parent)
                    assert isinstance(state, FlowState)
                else:
                    length = await journal.append(started.loop_id, (started,), 0)
                    state = start(started)
            except JournalConflict:
                drive = await cls._take_over(root, flow_input, place, started)
            else:
                drive = cls(root, flow_input, place, state, length)
        if place.given:
            drive.hold(claim)
        return drive

    @classmethod
    async def _take_over(cls, root: Part, flow_input: Values, place: Place, wanted: FlowStarted) -> FlowDrive:
        journal, clock, loop_id = place.journal, place.clock, wanted.loop_id
        check_same(await journal.read(loop_id), wanted)
        if wanted.parent_loop_id:
            await heed_parent(journal, loop_id, clock)
        events = await journal.read(loop_id)
        drive = cls(root, flow_input, place, fold(events, f"loop {loop_id}"), len(events))
        if drive.state.at != "done":
            now = clock.now()
            drive.take(Resumed(now, VERSION, drive.state.epoch + 1))
            if drive.state.deadline is not None and now >= drive.state.deadline:
                drive.take(TimePassed(now))
            await drive.flush()
        return drive

    # Running

    async def run(self) -> None:
        """Run to the end.

        Raises:
            Deferred: steps wait for results from outside, and nothing else is left to be run.
            LoopTakenOver: another driver has resumed the flow.
            JournalFailure: the journal cannot be read or written.
        """
        try:
            while self.state.at != "done" or self.pending:
                await self._advance()
        except BaseException:
            # What has ended by now is not thrown away, whatever it is that ends this here.
            with suppress(FlyballError):
                self._take_done()
                await self.flush()
            raise
        finally:
            await self._let_go()

    async def _advance(self) -> None:
        """Do what is owed, until something has changed."""
        # Made before anything is looked at: whatever comes from here on is not missed.
        self._wake = wake = asyncio.get_running_loop().create_future()
        if self._follower is None and self._place.given:
            self._follower = asyncio.create_task(self._following())
        if self._failure is not None:
            raise self._failure
        effects = owed(self.state)
        self._set_timer(effects)
        wanted = {effect.id: effect for effect in effects if isinstance(effect, RunStep | SignalChild)}
        if unwanted := [self._running.pop(name) for name in list(self._running) if name not in wanted]:
            await _stopped(unwanted)
            return
        if not await self.flush():
            return
        if effects and isinstance(end := effects[0], End):
            await self._take_leave(end)
            self.take(Ended(self.clock.now(), end.outcome, end.error))
            await self.flush()
            return
        for name, effect in wanted.items():
            if name not in self._running and name not in self._told and name not in self._deferred:
                self._running[name] = asyncio.create_task(self._perform(effect))
        waiting = [name for name, effect in wanted.items() if isinstance(effect, RunStep)]
        if waiting and not self._running and all(name in self._deferred for name in waiting):
            raise self._deferred[waiting[0]]
        await asyncio.wait([wake, *self._running.values()], return_when=asyncio.FIRST_COMPLETED)
        self._take_done()

    def _take_done(self) -> None:
        """Fold what the steps that have ended gave, in the order in which they did."""
        events: list[Event] = []
        failure: BaseException | None = None
        for name in [name for name, task in self._running.items() if task.done()]:
            task = self._running.pop(name)
            if task.cancelled():
                continue
            error = task.exception()
            if isinstance(error, Deferred):
                self._deferred[name] = error
            elif error is not None:
                failure = failure or error
            elif (event := task.result()) is not None:
                events.append(event)
            else:
                self._told.add(name)
        for event in sorted(events, key=lambda event: event.at):
            self.take(event)
        if failure is not None:
            raise failure

    async def _let_go(self) -> None:
        self.release()
        if self._timer is not None:
            self._timer.cancel()
        tasks: list[asyncio.Task[Any]] = [*self._running.values()]
        if self._follower is not None:
            tasks.append(self._follower)
        if tasks:
            await _stopped(tasks)

    # Effects

    @property
    def _root(self) -> Part:
        """The flow's steps, with those that were planned by now."""
        flow, root = self._grown
        if flow is not self.state.flow:
            flow, root = self._grown = self.state.flow, self._given_root.grown(self.state.flow)
        return root

    async def _perform(self, effect: FlowEffect) -> StepEnded | None:
        if isinstance(effect, SignalChild):
            await self._pass_on(effect)
            return None
        assert isinstance(effect, RunStep)
        if effect.after:
            await sleep(effect.after - self.clock.now(), self.clock)
        began, part = self.clock.now(), part_at(self._root, effect.path)
        output: Any = None
        loop_id, error, again = "", None, False
        try:
            given = read_input(self._root, effect.path, effect.input, self.state, self._input)
            done = await part.perform(self._doing(effect), given)
            loop_id, output = done.loop_id, part.gives.encode(done.output, f"what {part.name!r} has given")
        except (Deferred, *_NOT_THE_STEPS):
            raise
        except FlyballError as failure:
            again = _judged(part, failure, failure)
            error = failure.record()
        except (Exception, asyncio.CancelledError) as failure:
            if isinstance(failure, asyncio.CancelledError) and is_cancelled():
                raise  # the step is stopped; else something that it looked at was cancelled
            raised = StepFailed(describe(failure), step=part.name, path=effect.path)
            raised.__cause__ = failure
            again = isinstance(failure, Exception) and _judged(part, failure, raised)
            error = raised.record()
        if self._place.runtime is not None:
            await self.catch_up()  # the loops under it are recorded by others
        loops = children_of(self.state, (effect.loop_id,))
        if error is not None and effect.loop_id in loops:
            loop_id = effect.loop_id
        now = self.clock.now()
        usage = await self._used(loops)
        at = now
        if error is not None and error.code == CancelledTimeout.code and loop_id:
            # Whosever clock that was by: a step is over no sooner than its loop.
            at = max([now, *[event.at for event in await self.journal.read(loop_id)]])
        return StepEnded(at, effect.path, output, error, effect.attempt, loop_id, usage, now - began, again)

    def _doing(self, effect: RunStep) -> Doing:
        state, place = self.state, self._place
        facts = RunFacts(
            state.loop_id,
            0,
            state.attempt,
            state.started_at,
            usage=state.usage,
            idempotency_key=effect.id,
            retry=effect.attempt - 1,
            parent_loop_id=state.parent_loop_id,
            metadata=state.metadata,
            correlation=replace(state.correlation, step_name=node_at(state.flow, effect.path).name),
            depth=state.depth,
            max_depth=state.max_depth,
            deadline=state.deadline,
            at=self.clock.now(),
            identity=state.identity,
        )
        options: dict[str, Any] = {"clock": place.clock}
        if place.deps is not None:
            options["deps"] = place.deps
        context = StepContext(
            place.deps, facts, self, effect.loop_id, options, place.hear, flow_input=state.input
        )
        if place.acting is not None:
            context.acting = place.acting
        return Doing(context, self.journal, effect.loop_id, effect.history, options, place.hear)

    async def _used(self, loops: tuple[str, ...]) -> RunUsage | None:
        """What the loops that were begun for a step have used."""
        usage: RunUsage | None = None
        for loop_id in loops:
            with suppress(LoopNotFound):  # recorded as begun, and no more
                _, state = await load_any(self.journal, loop_id)
                usage = state.usage if usage is None else usage + state.usage
        return usage

    # Loops under this one

    calls_again = False
    """See `Home.calls_again`: a step waits for the loop that it is run as."""

    def child_options(self) -> Mapping[str, Any]:
        """Where the loops under the flow go: beside it. See `Home.child_options`."""
        runtime = self._place.runtime
        return {"journal": self.journal} if runtime is None else {"runtime": runtime}

    async def _pass_on(self, effect: SignalChild) -> None:
        """Tell a loop under the flow what the flow was told. One that is over is left alone."""
        await self.journal.wait(effect.loop_id, 0)  # it is recorded as begun, and about to be
        await self._telling()(effect.loop_id, effect.signal)

    def _telling(self) -> Cancel:
        """Gives a loop a signal; one that is cancelled, and that nobody drives any more, is closed."""
        runtime = self._place.runtime
        if runtime is None or not hasattr(runtime, "submit"):  # a driver alone looks at the journal
            return cancel_by_journal(self.journal, self.clock)

        async def signalled(loop_id: str, signal: Signal) -> bool:
            try:
                await runtime.signal(loop_id, signal)
            except SignalRefused:
                return False
            return True

        return signalled

    async def _take_leave(self, end: End) -> None:
        """Tell those who still run under a flow that it is over, and the loop above what was used."""
        if self.state.parent_loop_id:
            await tell_parent(self.journal, self.state, self.clock.now())
        if not end.cancels:
            return
        cancel = self._telling()
        if end.outcome is Outcome.CANCELLED:
            await cancel_children(self.journal, self.state, cancel)
            return
        for loop_id in end.cancels:
            if await self.journal.read(loop_id):
                await cancel(loop_id, cancel_signal(self.state))

    # Signals and time

    def stir(self) -> None:
        """Look again: something was folded that nobody here waited for."""
        if self._wake is not None and not self._wake.done():
            self._wake.set_result(None)

    def _set_timer(self, effects: list[FlowEffect]) -> None:
        until = next((one.until for one in effects if isinstance(one, Wait) and one.until is not None), None)
        if until is not None and self._timer is None:
            self._timer = self.clock.call_at(until, self._time_passed)

    def _time_passed(self) -> None:
        now, deadline = self.clock.now(), self.state.deadline
        # A timer's clock and ours may differ by a hair; that it fired is what counts.
        if self.take(TimePassed(now if deadline is None or now > deadline else deadline)):
            self.stir()

    async def _following(self) -> None:
        try:
            await self.follow()
        except Exception as error:
            self._failure = error  # the task that drives raises it
            self.stir()


def check_same(events: list[Event], wanted: FlowStarted) -> None:
    """Check that what is recorded is the flow that is wanted.

    Raises:
        LoopMismatch: it is none, or has another structure, input, time-out or metadata.
    """
    first = events[0]
    if isinstance(first, FlowStarted):
        names = ("flow", "input", "timeout", "metadata")
        differs = [name for name in names if getattr(first, name) != getattr(wanted, name)]
        if not differs:
            return
        what = f"exists with another {' and '.join(differs)}"
    else:
        differs, what = ["kind"], "is an agent's, and no flow"
    raise LoopMismatch(
        f"loop {wanted.loop_id!r} {what}: choose another loop_id, or run the flow that it was begun as",
        loop_id=wanted.loop_id,
        differs=differs,
    )


def _judged(part: Part, failure: Exception, told: FlyballError) -> bool:
    """Whether a failure is worth another try. If nobody can tell it is not, and `told` says why."""
    try:
        return part.worth_another_try(failure)
    except Exception as error:
        told.details["retry_if"] = describe(error)
        return False


async def _stopped(tasks: list[asyncio.Task[Any]]) -> None:
    """Cancel tasks and wait until they have ended, however they end."""
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)
    for task in tasks:
        if not task.cancelled():
            task.exception()
