"""The loop worker: folds what comes into journals, and asks the others for what is owed."""

from __future__ import annotations

import asyncio
from collections import OrderedDict

import msgspec

from flyball.core.effects import Effect, Execute, Infer, Wait
from flyball.core.errors import InvalidMessage, JournalConflict
from flyball.core.events import (
    ModelAnswered,
    ModelFailed,
    SignalReceived,
    Started,
    TimePassed,
    ToolReturned,
)
from flyball.orchestrate.clock import SYSTEM_CLOCK
from flyball.orchestrate.commands import (
    ExecuteCommand,
    InferCommand,
    Report,
    execute_command,
    infer_command,
)
from flyball.orchestrate.keeping import Keeper
from flyball.orchestrate.recorded import send_signal
from flyball.orchestrate.state import State
from flyball.runtime.nats import bus as wire
from flyball.runtime.nats.bus import AGENT, Bus
from flyball.runtime.nats.deliveries import Delivery, Post
from flyball.runtime.nats.journal import NatsJournal
from flyball.runtime.nats.workers.agents import Agents
from flyball.runtime.nats.workers.stopping import tell
from flyball.runtime.nats.workers.turns import Turns

_KEPT = 2_000
"""How many loops a worker keeps in mind: others are read again when something comes for them."""
_FROM_OUTSIDE = (Started, ModelAnswered, ModelFailed, ToolReturned, TimePassed, SignalReceived)
REPLY = "Flyball-Reply"
"""The header of a signal whose sender waits to hear whether it was taken."""


class LoopWorker:
    """Keeps loops. Any number of them may: who writes first wins, and the other looks again."""

    def __init__(self, bus: Bus, journal: NatsJournal, agents: Agents, *, hold: float = 30.0) -> None:
        self._bus = bus
        self._journal = journal
        self._agents = agents
        self._keepers: OrderedDict[str, Keeper] = OrderedDict()
        self._turns = Turns()
        subjects = (*wire.TASKS, *wire.REPORTS, *wire.SIGNALS)
        self.posts = [Post(AGENT, "loop", subjects, room=256, hold=hold)]

    async def work(self, delivery: Delivery) -> None:
        """Take in what a message says."""
        report = _report(delivery)
        loop_id, event = report.loop_id, report.event
        if isinstance(event, SignalReceived):
            # Out of turn: it may concern what is being done just now for another message of the loop.
            taken = await send_signal(self._journal, loop_id, event.signal, SYSTEM_CLOCK)
            if reply := delivery.headers.get(REPLY):
                await self._bus.connection.publish(reply, b"1" if taken else b"0")
        async with self._turns.turn(loop_id):
            try:
                if isinstance(event, Started):
                    await self._begin(event)
                keeper = await self._keeper(loop_id)
                if not isinstance(event, SignalReceived | Started) and not keeper.take(event):
                    # It came twice, or another worker is ahead of what is known here.
                    await keeper.catch_up()
                    keeper.take(event)
                await keeper.pump()
            except BaseException:
                # What it has in mind and what is recorded may differ: the next one reads.
                self._keepers.pop(loop_id, None)
                raise
            if keeper.state.at == "done":
                self._keepers.pop(loop_id, None)

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
        sending: list[tuple[str, InferCommand | ExecuteCommand]] = []
        for effect in effects:
            if isinstance(effect, Infer):
                command = infer_command(state, effect, parts)
                sending.append((wire.request_subject(state.loop_id), command))
            elif isinstance(effect, Execute):
                execute = execute_command(state, effect)
                sending.append((wire.execute_subject(execute.call.name), execute))
            elif isinstance(effect, Wait) and effect.until is not None:
                await self._bus.remind(state.loop_id, effect.id, effect.until)
        await asyncio.gather(
            *[self._bus.publish(subject, msgspec.json.encode(body), body.id) for subject, body in sending]
        )
        if not sending:
            await tell(self._bus.connection, state.loop_id, [])


def _report(delivery: Delivery) -> Report:
    """What a message says: only what comes from outside a loop, and nothing that a loop decides by itself."""
    try:
        report = msgspec.json.decode(delivery.data, type=Report)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InvalidMessage(
            f"on {delivery.subject}: not a report: {error}", where=delivery.subject
        ) from error
    if not isinstance(report.event, _FROM_OUTSIDE):
        kind = type(report.event).__name__
        raise InvalidMessage(
            f"on {delivery.subject}: {kind} is not for others to say", where=delivery.subject
        )
    return report
