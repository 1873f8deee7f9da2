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
from collections import OrderedDict

from msgspec import Struct
from msgspec.structs import replace

from flyball.core.effects import Effect, Execute, Infer, Wait
from flyball.core.errors import JournalConflict, LoopNotFound, LoopTakenOver, SignalRefused
from flyball.core.events import ChildEnded, Event, Reopened, SignalReceived, Started, ToolReturned
from flyball.core.forms.semstreams import TaskMessage
from flyball.core.ids import new_id
from flyball.core.messages import Role, ToolResult
from flyball.core.signals import Signal, SignalType
from flyball.orchestrate.answering import as_taken
from flyball.orchestrate.bindings import Bindings
from flyball.orchestrate.children import begin, close_cancelled
from flyball.orchestrate.clock import SYSTEM_CLOCK
from flyball.orchestrate.commands import Command, InferCommand, Report, execute_command, infer_command
from flyball.orchestrate.course import OVER
from flyball.orchestrate.family import pass_on
from flyball.orchestrate.keeping import Keeper
from flyball.orchestrate.machine import asked_to_detach, effect_id, fold, owed, take
from flyball.orchestrate.machines import AnyState, is_flow
from flyball.orchestrate.matching import check_bound
from flyball.orchestrate.permissions import channel_of
from flyball.orchestrate.recorded import load, load_any, offer_signal
from flyball.orchestrate.signalling import signal_event
from flyball.orchestrate.state import State
from flyball.orchestrate.task_loops import loop_of_task, task_started
from flyball.orchestrate.watched import WatchedKeeper
from flyball.runtime.nats import subjects
from flyball.runtime.nats.bus import Bus
from flyball.runtime.nats.deliveries import Delivery
from flyball.runtime.nats.hiring import Post
from flyball.runtime.nats.journal import NatsJournal
from flyball.runtime.nats.messages.told import (
    NotOurs,
    Returned,
    read_told,
    write_ended,
    write_signal,
    write_task,
)
from flyball.runtime.nats.messages.work import write_call, write_request
from flyball.runtime.nats.naming import is_inbox
from flyball.runtime.nats.workers.agents import Agents
from flyball.runtime.nats.workers.detaching import ask_to_detach
from flyball.runtime.nats.workers.model import ModelWorker
from flyball.runtime.nats.workers.projector import Projector
from flyball.runtime.nats.workers.stopping import LetGo, tell
from flyball.runtime.nats.workers.tools import ToolsWorker
from flyball.runtime.nats.workers.turns import Turns
from flyball.tool.errors import CallContinues

_log = logging.getLogger("flyball.nats")
_KEPT = 2_000
"""How many loops a worker keeps in mind: others are read again when something comes for them."""
REPLY = "Flyball-Reply"
"""The header of a signal whose sender waits to hear whether it was taken."""


class Near(Struct, frozen=True):
    """The workers of the same process: what they have room for need not travel."""

    model: ModelWorker | None = None
    tools: ToolsWorker | None = None

    def takes(self, command: Command) -> bool:
        """Whether a command can be carried out here, now."""
        if isinstance(command, InferCommand):
            return self.model is not None and self.model.is_free
        return self.tools is not None and self.tools.has_room_for(command)

    async def perform(self, command: Command) -> Report | None:
        """Carry it out; None if nobody waits for it any more, or if it waits for a loop that it has begun."""
        try:
            if isinstance(command, InferCommand):
                assert self.model is not None
                return Report(command.loop_id, await self.model.perform(command))
            assert self.tools is not None
            return Report(command.loop_id, await self.tools.perform(command))
        except (LetGo, CallContinues):
            return None


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
        self._keepers: OrderedDict[str, Keeper] = OrderedDict()
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
            if await self._is_followed(told.loop_id):
                await self._follower_signalled(told.loop_id, told.event, delivery)
                return
            fresh = await self._signalled(told.loop_id, told.event, delivery)
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
                keeper = await self._keeper(loop_id)
                waited = bool(keeper.state.deferred)
                if begun and isinstance(told, Report):
                    keeper.claim(told.event)
                if fresh is not None:
                    await keeper.catch_up()
                    keeper.ask_again(fresh)
                elif ended is not None:
                    # It is recorded here by now. The call that has begun it is run again, to fetch what came.
                    await keeper.catch_up()
                    if not _has_ended(keeper, ended):
                        _log.warning("loop %s has not recorded that %s is over", loop_id, ended.loop_id)
                        return []
                    keeper.ask_again(_fetching(keeper.state, ended.call_id))
                elif begun:
                    keeper.ask_again([effect.id for effect in owed(keeper.state)])
                elif not _take(keeper, told):
                    # It came twice, or another worker is ahead of what is known here.
                    await keeper.catch_up()
                    if not _take(keeper, told):
                        keeper.ask_again()
                effects = await keeper.pump()
                if waited or keeper.asked_again:
                    await self._tell_people(keeper.state, told)
                near = Near() if keeper.asked_again else self._near
                commands = await self._ask(keeper.state, effects, near, ended)
            except LoopTakenOver:
                # Somebody drives it in a process of his own from now on.
                self._keepers.pop(loop_id, None)
                return []
            except BaseException:
                # What it has in mind and what is recorded may differ: the next one reads.
                self._keepers.pop(loop_id, None)
                raise
            if keeper.state.at == "done":
                self._keepers.pop(loop_id, None)
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

    async def _signalled(
        self, loop_id: str, event: SignalReceived | Reopened, delivery: Delivery
    ) -> set[str] | None:
        """Append a signal; gives what is owed by that, or None if it came before.

        Out of turn: it may concern what is being done just now for another message of the loop.
        """
        while True:
            events, state = await load(self._journal, loop_id)
            before = {effect.id for effect in owed(state)}
            taken, keeper = take(state, event), self._keepers.get(loop_id)
            bindings = self._bound(state)
            if keeper is not None:
                # Before it is there: the keeper may find it at once.
                (keeper.claim if taken else keeper.disclaim)(event)
            try:
                if taken:
                    await self._journal.append(loop_id, (event,), len(events))
            except JournalConflict:
                continue
            break
        below = await self._pass_on(state, event, taken=taken)
        # It has just been read: who keeps it need not read it again.
        if taken:
            events.append(event)
        if loop_id not in self._keepers:
            self._remember(self._keep(bindings, state, events))
        if taken and self._keepers[loop_id] is not keeper:
            self._keepers[loop_id].claim(event)
        if state.detached and isinstance(event, SignalReceived) and event.signal.type is SignalType.DETACH:
            # Also if it came before: whoever took it may not have lived to say it.
            await ask_to_detach(self._bus, loop_id, asked_to_detach(state))
        await self._reply(delivery, taken=taken or below)
        if taken:
            return {effect.id for effect in owed(state)} - before
        name = event.id if isinstance(event, Reopened) else event.signal.id
        return None if name and name in state.signals else set()

    async def _is_followed(self, loop_id: str) -> bool:
        """Whether a loop is driven by somebody who follows its journal, and by none of the workers.

        Those are flows, and loops of an agent that no worker has ever had, such as a judge's.
        """
        events = await self._journal.read(loop_id)
        if is_flow(events) or not events:
            return bool(events)
        agent = fold(events, f"loop {loop_id}").spec.agent
        return agent not in self._agents.names and not await self._bus.is_hired(self.kind, agent)

    async def _follower_signalled(
        self, loop_id: str, event: SignalReceived | Reopened, delivery: Delivery
    ) -> None:
        """Append a signal to a loop whose driver follows its journal, and say it to those under it."""
        if isinstance(event, SignalReceived):
            signal = event.signal
        else:
            signal = Signal(SignalType.RETRY, event.id, event.by)
        taken = await offer_signal(self._journal, loop_id, signal, SYSTEM_CLOCK)
        _, state = await load_any(self._journal, loop_id)
        below = await self._pass_on(state, event, taken=taken)
        await self._reply(delivery, taken=taken or below)

    async def _reply(self, delivery: Delivery, *, taken: bool) -> None:
        reply = delivery.headers.get(REPLY, "")
        if is_inbox(reply):  # and nowhere else: anybody may have set it
            await self._bus.connection.publish(reply, b"1" if taken else b"0")

    async def _pass_on(self, state: AnyState, event: SignalReceived | Reopened, *, taken: bool) -> bool:
        """Say a signal to the loops under one that it concerns; whether it was for one of them.

        Each is told by a message, as from outside: it is on the wire when this returns.
        """
        if isinstance(event, Reopened) or not state.children:
            return False
        try:
            return await pass_on(self._journal, state, event.signal, taken, self._say)
        except SignalRefused as error:
            _log.info("%s", error.message)
            return False

    async def _say(self, loop_id: str, signal: Signal) -> bool:
        """Send a signal to a loop; see `flyball.orchestrate.family.Offer`."""
        data, where = write_signal(loop_id, signal, SYSTEM_CLOCK.now()), subjects.signal_subject(loop_id)
        name = f"{loop_id}/{signal.id or new_id()}"
        await self._bus.publish(where, data, name, loop_id=loop_id)
        return True

    async def _tell_above(self, loop_id: str, child: ChildEnded) -> None:
        """Have a loop go on that waits for one under it; see `flyball.orchestrate.editing.Above`."""
        if child.call_id:
            where, name = subjects.result_subject(f"{child.loop_id}/ended"), f"{child.loop_id}/ended"
            await self._bus.publish(where, write_ended(loop_id, child), name, loop_id=loop_id)

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

    async def _keeper(self, loop_id: str) -> Keeper:
        keeper = self._keepers.get(loop_id)
        if keeper is None:
            events, state = await load(self._journal, loop_id)
            keeper = self._keep(self._bound(state), state, events)
            self._remember(keeper)
        else:
            self._keepers.move_to_end(loop_id)
            if self._journal.known_length(loop_id) > keeper.length:
                await keeper.catch_up()
        return keeper

    def _bound(self, state: State) -> Bindings:
        """The code behind a loop, with all that its spec counts on. To end one that is over, less will do.

        Raises:
            UnknownAgent: its agent is not here.
            UserError: that has no guardrail, or the like, of a name with which the loop was begun.
        """
        bindings = self._agents.get(state.spec.agent)
        if state.at not in OVER:
            check_bound(state.spec, bindings)
        return bindings

    def _remember(self, keeper: Keeper) -> None:
        self._keepers[keeper.loop_id] = keeper
        if len(self._keepers) > _KEPT:
            self._keepers.popitem(last=False)

    async def _warn_if_unhosted(self, loop_id: str, tool: str) -> None:
        if not await self._bus.is_hosted(tool):
            _log.warning("loop %s waits for the tool %r, which no worker has hosted yet", loop_id, tool)

    def _keep(self, bindings: Bindings, state: State, events: list[Event]) -> Keeper:
        kind = Keeper if bindings.watched is None else WatchedKeeper
        return kind(
            bindings,
            self._journal,
            state,
            events,
            cancel=self._cancel,
            spawn=self._spawn,
            above=self._tell_above,
        )

    async def _cancel(self, loop_id: str, signal: Signal) -> bool:
        """Cancel a child, and have somebody go on with it; see `flyball.orchestrate.children.Cancel`."""
        taken = await offer_signal(self._journal, loop_id, signal, SYSTEM_CLOCK)
        if await self._is_followed(loop_id):
            # Who drove it may have ended with what began it: then there is nobody else to close it.
            await close_cancelled(self._journal, loop_id, SYSTEM_CLOCK, self._cancel)
            return taken
        # Also if it was told before: whoever did may not have lived to say it to its worker.
        await self._say(loop_id, signal)
        return taken

    async def _spawn(self, started: Started) -> None:
        """Have a child begun, by whoever has its agent."""
        loop_id = started.loop_id
        where, name = subjects.task_subject(loop_id), f"{loop_id}/task"
        await self._bus.publish(where, write_task(started), name, loop_id=loop_id)

    async def _ask(
        self, state: State, effects: list[Effect], near: Near, ended: ChildEnded | None = None
    ) -> list[Command]:
        """Ask others for what is owed, and let go who works on anything else; gives what is done here.

        `ended`: a loop that a call has begun is over, and that is why it is asked for once more.
        """
        parts = self._agents.get(state.spec.agent).parts_for(state.spec)
        loop_id = state.loop_id
        here: list[Command] = []
        sending: list[tuple[str, bytes, str]] = []
        for effect in effects:
            if isinstance(effect, Infer):
                request = infer_command(state, effect, parts)
                if near.takes(request):
                    here.append(request)
                else:
                    sending.append((subjects.request_subject(loop_id), write_request(request), effect.id))
            elif isinstance(effect, Execute):
                call, name = execute_command(state, effect), effect.id
                if ended is not None and call.call.id == ended.call_id:
                    # Under another name: by its own, the server would know it as one that was asked for.
                    call = replace(call, facts=replace(call.facts, child=ended.loop_id))
                    name = f"{effect.id}/{ended.loop_id}"
                if near.takes(call):
                    here.append(call)
                else:
                    where = subjects.execute_subject(call.call.name)
                    sending.append((where, write_call(call), name))
                    await self._warn_if_unhosted(loop_id, call.call.name)
            elif isinstance(effect, Wait) and effect.until is not None:
                await self._bus.remind(loop_id, effect.id, effect.until)
        if sending:
            await asyncio.gather(
                *[self._bus.publish(where, data, name, loop_id=loop_id) for where, data, name in sending]
            )
        elif not here:
            await tell(self._bus.connection, loop_id, [effect.id for effect in owed(state)])
        return here


def _has_ended(keeper: Keeper, ended: ChildEnded) -> bool:
    """Whether a loop has recorded that one which this very call of it has begun is over.

    Who tells it may be anybody who may answer for tools, and name any loop, whose output would be the call's.
    """
    known = [event for event in keeper.events if isinstance(event, ChildEnded)]
    return (ended.loop_id, ended.call_id) in [(one.loop_id, one.call_id) for one in known]


def _fetching(state: State, call_id: str) -> list[str] | None:
    """What is owed once more now that a loop is over which a call has begun: that call, by its effect's id.

    Nothing, if whoever runs the call waits for the loop himself. None, if the call has a result: the message
    came before, and nobody knows what became of what followed from that.
    """
    open_ = {call.id: index for index, call in enumerate(state.calls) if state.results[index] is None}
    called = (call for message in reversed(state.history) for call in message.tool_calls)
    name = next((call.name for call in called if call.id == call_id), "")
    tool = state.spec.tools.get(name)
    if tool is None or not tool.begins_loop:
        return []
    return [effect_id(state, "execute", open_[call_id])] if call_id in open_ else None


def _take(keeper: Keeper, told: Report | Returned) -> bool:
    """Fold what a loop was told, if it fits; whether it did."""
    if isinstance(told, Returned):
        event = _returned(keeper.state, told.result, told.at)
        return event is not None and keeper.take(as_taken(keeper.state, event))
    if isinstance(told.event, ToolReturned):
        return keeper.take(as_taken(keeper.state, _as_called(keeper.state, told.event)))
    return not isinstance(told.event, Started) and keeper.take(told.event)


def _returned(state: State, result: ToolResult, at: float) -> ToolReturned | None:
    """The event of a result whose sender knows the call's id only; None if the turn has no such call."""
    for index, call in enumerate(state.calls):
        if call.id == result.call_id:
            return ToolReturned(at, state.turn, index, result)
    return None


def _as_called(state: State, event: ToolReturned) -> ToolReturned:
    """A result under the id that the model gave its call: on the wire it has the effect's."""
    result, calls, index = event.result, state.calls, event.index
    if event.turn != state.turn or not 0 <= index < len(calls) or result.call_id == calls[index].id:
        return event
    return replace(event, result=replace(result, call_id=calls[index].id))
