"""The loop worker: folds what comes into journals, and asks the others for what is owed."""

from __future__ import annotations

import asyncio
from collections import OrderedDict

from flyball.core.effects import Effect, Execute, Infer, Wait
from flyball.core.errors import JournalConflict
from flyball.core.events import Event, SignalReceived, Started, ToolReturned
from flyball.core.forms.semstreams import TaskMessage
from flyball.core.messages import ToolResult
from flyball.core.signals import Signal, SignalType
from flyball.orchestrate.clock import SYSTEM_CLOCK
from flyball.orchestrate.commands import Report, execute_command, infer_command
from flyball.orchestrate.course import OVER
from flyball.orchestrate.keeping import Keeper
from flyball.orchestrate.machine import fold
from flyball.orchestrate.recorded import send_signal
from flyball.orchestrate.state import State
from flyball.orchestrate.task_loops import loop_of_task, task_started
from flyball.runtime.nats import subjects
from flyball.runtime.nats.bus import AGENT, Bus
from flyball.runtime.nats.deliveries import Delivery, Post
from flyball.runtime.nats.journal import NatsJournal
from flyball.runtime.nats.messages.told import Returned, read_told
from flyball.runtime.nats.messages.work import write_call, write_request
from flyball.runtime.nats.workers.agents import Agents
from flyball.runtime.nats.workers.stopping import tell
from flyball.runtime.nats.workers.turns import Turns

_KEPT = 2_000
"""How many loops a worker keeps in mind: others are read again when something comes for them."""
REPLY = "Flyball-Reply"
"""The header of a signal whose sender waits to hear whether it was taken."""


class LoopWorker:
    """Keeps loops. Any number of them may: who writes first wins, and the other looks again."""

    kind = "loop"

    def __init__(self, bus: Bus, journal: NatsJournal, agents: Agents, *, hold: float = 30.0) -> None:
        self._bus = bus
        self._journal = journal
        self._agents = agents
        self._keepers: OrderedDict[str, Keeper] = OrderedDict()
        self._turns = Turns()
        wanted = (*subjects.TASKS, *subjects.REPORTS, *subjects.SIGNALS)
        self.posts = [Post(AGENT, "loop", wanted, room=256, hold=hold)]

    async def work(self, delivery: Delivery) -> None:
        """Take in what a message says."""
        told = read_told(await self._bus.opened(delivery), delivery.subject)
        if isinstance(told, TaskMessage):
            told = await self._wanted(told)
        event = told.result if isinstance(told, Returned) else told.event
        if isinstance(event, SignalReceived):
            # Out of turn: it may concern what is being done just now for another message of the loop.
            taken = await send_signal(self._journal, told.loop_id, event.signal, SYSTEM_CLOCK)
            if reply := delivery.headers.get(REPLY):
                await self._bus.connection.publish(reply, b"1" if taken else b"0")
        async with self._turns.turn(told.loop_id):
            await self._go_on(told.loop_id, told)

    async def _go_on(self, loop_id: str, told: Report | Returned) -> None:
        """Fold what a loop was told, and go on with it as far as that leads."""
        try:
            if isinstance(told, Report) and isinstance(told.event, Started):
                await self._begin(told.event)
            keeper = await self._keeper(loop_id)
            if not _take(keeper, told):
                # It came twice, or another worker is ahead of what is known here.
                await keeper.catch_up()
                _take(keeper, told)
            await keeper.pump()
        except BaseException:
            # What it has in mind and what is recorded may differ: the next one reads.
            self._keepers.pop(loop_id, None)
            raise
        if keeper.state.at == "done":
            self._keepers.pop(loop_id, None)

    async def _wanted(self, task: TaskMessage) -> Report:
        """What a task of somebody else's asks for: a new loop, or something for one that is there.

        One that is over is gone on with in a new loop, which has the task's id.
        """
        now = SYSTEM_CLOCK.now()
        events = await self._journal.read(loop_of_task(task))
        if not events or not task.loop_id:
            bindings = self._agents.for_task(task.role, task.metadata)
            return Report(loop_of_task(task), task_started(task, bindings.spec, now))
        state = fold(events, f"loop {task.loop_id}")
        if state.at not in OVER:
            said = Signal(SignalType.FEEDBACK, f"{task.task_id}/task", task.user_id, task.prompt)
            return Report(task.loop_id, SignalReceived(now, said))
        spec = self._agents.get(state.spec.agent).spec
        history = [message for message in state.history if message.role != "system"]
        return Report(task.task_id, task_started(task, spec, now, loop_id=task.task_id, history=history))

    async def _begin(self, started: Started) -> None:
        try:
            await self._journal.append(started.loop_id, (started,), 0)
        except JournalConflict:
            return  # it came twice, or the id is taken: who asked for it finds out which

    async def _keeper(self, loop_id: str) -> Keeper:
        keeper = self._keepers.get(loop_id)
        if keeper is None:
            keeper = await Keeper.of(self._agents.get, self._journal, loop_id, self._send)
            self._keepers[loop_id] = keeper
            if len(self._keepers) > _KEPT:
                self._keepers.popitem(last=False)
        else:
            self._keepers.move_to_end(loop_id)
            if self._journal.known_length(loop_id) > keeper.length:
                await keeper.catch_up()
        return keeper

    async def _send(self, state: State, effects: list[Effect]) -> None:
        """Ask for what is owed, and let those go who work on anything else."""
        parts = self._agents.get(state.spec.agent).parts_for(state.spec)
        loop_id = state.loop_id
        sending: list[tuple[str, bytes, str]] = []
        for effect in effects:
            if isinstance(effect, Infer):
                request = write_request(infer_command(state, effect, parts))
                sending.append((subjects.request_subject(loop_id), request, effect.id))
            elif isinstance(effect, Execute):
                command = execute_command(state, effect)
                sending.append((subjects.execute_subject(command.call.name), write_call(command), effect.id))
            elif isinstance(effect, Wait) and effect.until is not None:
                await self._bus.remind(loop_id, effect.id, effect.until)
        await asyncio.gather(
            *[self._bus.publish(where, data, name, loop_id=loop_id) for where, data, name in sending]
        )
        if not sending:
            await tell(self._bus.connection, loop_id, [])


def _take(keeper: Keeper, told: Report | Returned) -> bool:
    """Fold what a loop was told, if it fits; whether it did, or was folded before it came here."""
    if isinstance(told, Returned):
        event: Event | None = _returned(keeper.state, told.result, told.at)
        return event is not None and keeper.take(event)
    return isinstance(told.event, SignalReceived | Started) or keeper.take(told.event)


def _returned(state: State, result: ToolResult, at: float) -> ToolReturned | None:
    """The event of a result whose sender knows the call's id only; None if the turn has no such call."""
    for index, call in enumerate(state.calls):
        if call.id == result.call_id:
            return ToolReturned(at, state.turn, index, result)
    return None
