"""The loop worker: folds what comes into journals, and has done what is owed then.

What its own process can do (it makes model calls too, or has the tool) it does itself, and goes on; the rest
goes over the wire. Nothing is lost by that: the message that led there is held until all of it is done or
asked for, and is given to another worker if this one dies.

Who appends an event sees to what is owed from then on, and nobody else: so a signal that comes while a model
call is under way does not lead to a second one. A message that says what is recorded already came before, and
nobody knows what became of it then: it leads to all that is owed, over the wire, where it is known what was
asked for lately. How often the server says it gave a message out is not relied upon: one that was killed does
not know.
"""

from __future__ import annotations

import asyncio
import logging

from flyball.core.errors import JournalConflict, LoopNotFound, LoopTakenOver
from flyball.core.events import ChildEnded, Reopened, SignalReceived, Started, ToolReturned
from flyball.core.forms.semstreams import TaskMessage
from flyball.core.ids import new_id
from flyball.core.messages import Role
from flyball.core.signals import Signal, SignalType
from flyball.orchestrate.children import begin
from flyball.orchestrate.clock import SYSTEM_CLOCK
from flyball.orchestrate.commands import Command, Report
from flyball.orchestrate.course import OVER
from flyball.orchestrate.machine import fold, owed
from flyball.orchestrate.permissions import channel_of
from flyball.orchestrate.signalling import signal_event
from flyball.orchestrate.state import State
from flyball.orchestrate.task_loops import loop_of_task, task_started
from flyball.runtime.nats import subjects
from flyball.runtime.nats.bus import Bus
from flyball.runtime.nats.deliveries import Delivery
from flyball.runtime.nats.hiring import Post
from flyball.runtime.nats.journal import NatsJournal
from flyball.runtime.nats.messages.told import NotOurs, Returned, read_told
from flyball.runtime.nats.workers.agents import Agents
from flyball.runtime.nats.workers.handing_out import hand_out
from flyball.runtime.nats.workers.keepers import Keepers
from flyball.runtime.nats.workers.near import Near
from flyball.runtime.nats.workers.projector import Projector
from flyball.runtime.nats.workers.relatives import Relatives
from flyball.runtime.nats.workers.signalled import Signals
from flyball.runtime.nats.workers.taking import fetching, has_ended, take_in
from flyball.runtime.nats.workers.turns import Turns

_log = logging.getLogger("flyball.nats")


class LoopWorker:
    """Keeps loops. Any number of them may: who writes first wins, and the other looks again."""

    kind = "loop"

    def __init__(
        self,
        bus: Bus,
        journal: NatsJournal,
        agents: Agents,
        *,
        near: Near = Near(),  # noqa: B008 - frozen
        projector: Projector | None = None,
        hold: float = 30.0,
    ) -> None:
        self._bus = bus
        self._journal = journal
        self._agents = agents
        self._near = near
        self._projector = projector
        relatives = Relatives(bus, journal, agents)
        self._keepers = Keepers(journal, agents, relatives)
        self._signals = Signals(bus, journal, self._keepers, relatives)
        self._turns = Turns()
        self.posts = [
            Post(stream, "loop", wanted, room=256, hold=hold) for stream, wanted in bus.wire.loop.items()
        ]

    async def work(self, delivery: Delivery) -> None:
        """Take in what a message says, and go on with its loop as far as that leads here."""
        try:
            told = read_told(await self._bus.opened(delivery), delivery.subject)
        except NotOurs as why:
            _log.info("%s: %s", delivery.subject, why)
            return
        if isinstance(told, TaskMessage):
            told = await self._wanted(told)
        fresh: set[str] | None = None
        if isinstance(told, Report) and isinstance(told.event, SignalReceived | Reopened):
            signalled = await self._signals.take(told.loop_id, told.event, delivery)
            if not signalled.goes_on:
                return
            fresh = signalled.owed
        try:
            commands = await self._turn(told, fresh)
        except LoopNotFound:
            if not isinstance(told, Returned) and not isinstance(told.event, ChildEnded):
                raise
            _log.info("%s: a result for loop %s, which is none of ours", delivery.subject, told.loop_id)
            return
        # One command leads to one report, mostly: that is a plain loop.
        while len(commands) == 1:
            report = await self._near.perform(commands[0])
            commands = [] if report is None else await self._turn(report)
        if commands:
            await self._side_by_side(commands)

    async def _side_by_side(self, commands: list[Command]) -> None:
        """Carry out commands, and those that they lead to."""
        doing = {asyncio.ensure_future(self._near.perform(command)) for command in commands}
        try:
            while doing:
                done, doing = await asyncio.wait(doing, return_when=asyncio.FIRST_COMPLETED)
                for task in done:
                    report = task.result()
                    if report is not None:
                        more = await self._turn(report)
                        doing |= {asyncio.ensure_future(self._near.perform(command)) for command in more}
        finally:
            for task in doing:
                task.cancel()
            if doing:
                await asyncio.wait(doing)

    async def _turn(self, told: Report | Returned, fresh: set[str] | None = None) -> list[Command]:
        """Fold what a loop was told, and go on as far as that leads; gives what is to be done here then.

        `fresh`: what is owed by what was appended for this message before its turn.
        """
        loop_id = told.loop_id
        ended = told.event if isinstance(told, Report) and isinstance(told.event, ChildEnded) else None
        async with self._turns.turn(loop_id):
            try:
                begun = await self._begin(told)
                keeper = await self._keepers.get(loop_id)
                waited = bool(keeper.state.deferred)
                if begun and isinstance(told, Report):
                    keeper.claim(told.event)
                if fresh is not None:
                    await keeper.catch_up()
                    keeper.ask_again(fresh)
                elif ended is not None:
                    # It is recorded here by now. The call that has begun it is run again, to fetch what came.
                    await keeper.catch_up()
                    if not has_ended(keeper, ended):
                        _log.warning("loop %s has not recorded that %s is over", loop_id, ended.loop_id)
                        return []
                    keeper.ask_again(fetching(keeper.state, ended.call_id))
                elif begun:
                    keeper.ask_again([effect.id for effect in owed(keeper.state)])
                elif not take_in(keeper, told):
                    # It came twice, or another worker is ahead of what is known here.
                    await keeper.catch_up()
                    if not take_in(keeper, told):
                        keeper.ask_again()
                effects = await keeper.pump()
                if waited or keeper.asked_again:
                    await self._tell_people(keeper.state, told)
                near = Near() if keeper.asked_again else self._near
                commands = await hand_out(
                    self._bus, self._agents, keeper.state, effects, near=near, ended=ended
                )
            except LoopTakenOver:
                # Somebody drives it in a process of his own from now on.
                self._keepers.drop(loop_id)
                return []
            except BaseException:
                self._keepers.drop(loop_id)
                raise
            if keeper.state.at == "done":
                self._keepers.drop(loop_id)
            if self._projector is not None:
                self._projector.moved(keeper, told=begun or fresh is not None)
            return commands

    async def _tell_people(self, state: State, told: Report | Returned) -> None:
        """Have those told whom a loop is for, if it goes on after a result from outside.

        Also where it came before: whoever took it may not have lived to say so.
        """
        result = isinstance(told, Returned) or isinstance(told.event, ToolReturned)
        if result and channel_of(state.metadata) and not state.parent_loop_id:
            loop_id = state.loop_id
            where, name = subjects.answered_subject(loop_id), f"{loop_id}/answered/{new_id()}"
            await self._bus.publish(where, loop_id.encode(), name, loop_id=loop_id)

    async def _wanted(self, task: TaskMessage) -> Report:
        """What a task of somebody else's asks for: a new loop, or something for one that is there.

        One that is over is gone on with in a new loop, which has the task's id.
        """
        now = SYSTEM_CLOCK.now()
        events = await self._journal.read(loop_of_task(task))
        if not events or not task.loop_id:
            bindings = self._agents.for_task(task.role, task.metadata)
            begun = task_started(task, bindings.spec, now, identity=bindings.identity)
            return Report(loop_of_task(task), begun)
        state = fold(events, f"loop {task.loop_id}")
        if state.at not in OVER:
            said = Signal(SignalType.FEEDBACK, f"{task.task_id}/task", task.user_id, task.prompt)
            return Report(task.loop_id, signal_event(said, now))
        bindings = self._agents.get(state.spec.agent)
        history = [message for message in state.history if message.role is not Role.SYSTEM]
        begun = task_started(
            task, bindings.spec, now, loop_id=task.task_id, history=history, identity=bindings.identity
        )
        return Report(task.task_id, begun)

    async def _begin(self, told: Report | Returned) -> bool:
        """Begin a loop, if that is what is told and it is not there; whether it was begun now."""
        if not isinstance(told, Report) or not isinstance(told.event, Started):
            return False
        started = told.event
        self._agents.get(started.spec.agent)
        try:
            if started.parent_loop_id:
                await begin(self._journal, started, SYSTEM_CLOCK)
            else:
                await self._journal.append(started.loop_id, (started,), 0)
        except JournalConflict:
            return False  # it came twice, or the id is taken: who asked for it finds out which
        return True
