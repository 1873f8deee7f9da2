"""What a loop has to say to others: to those under it, to the one above it, to the one that it has begun.

Each is told by a message, as from outside, and so by whoever has its agent: it is on the wire when this
returns. Where somebody follows a journal and drives the loop himself, the journal is what tells him.
"""

from __future__ import annotations

import logging

from flyball.core.errors import SignalRefused
from flyball.core.events import ChildEnded, Reopened, SignalReceived, Started
from flyball.core.ids import new_id
from flyball.core.signals import Signal
from flyball.orchestrate.children import close_cancelled
from flyball.orchestrate.clock import SYSTEM_CLOCK
from flyball.orchestrate.family import pass_on
from flyball.orchestrate.machine import fold
from flyball.orchestrate.machines import AnyState, is_flow
from flyball.orchestrate.recorded import offer_signal
from flyball.runtime.nats import subjects
from flyball.runtime.nats.bus import Bus
from flyball.runtime.nats.journal import NatsJournal
from flyball.runtime.nats.messages.told import write_ended, write_signal, write_task
from flyball.runtime.nats.workers.agents import Agents

_log = logging.getLogger("flyball.nats")


class Relatives:
    """Speaks for the loops of a worker to other loops."""

    def __init__(self, bus: Bus, journal: NatsJournal, agents: Agents) -> None:
        self._bus = bus
        self._journal = journal
        self._agents = agents

    async def is_followed(self, loop_id: str) -> bool:
        """Whether a loop is driven by somebody who follows its journal, and by none of the workers.

        Those are flows, and loops of an agent that no worker has ever had, such as a judge's.
        """
        events = await self._journal.read(loop_id)
        if is_flow(events) or not events:
            return bool(events)
        agent = fold(events, f"loop {loop_id}").spec.agent
        return agent not in self._agents.names and not await self._bus.is_hired("loop", agent)

    async def pass_on(self, state: AnyState, event: SignalReceived | Reopened, *, taken: bool) -> bool:
        """Say a signal to the loops under one that it concerns; whether it was for one of them."""
        if isinstance(event, Reopened) or not state.children:
            return False
        try:
            return await pass_on(self._journal, state, event.signal, taken, self.say)
        except SignalRefused as error:
            _log.info("%s", error.message)
            return False

    async def say(self, loop_id: str, signal: Signal) -> bool:
        """Send a signal to a loop; see `flyball.orchestrate.family.Offer`."""
        data, where = write_signal(loop_id, signal, SYSTEM_CLOCK.now()), subjects.signal_subject(loop_id)
        name = f"{loop_id}/{signal.id or new_id()}"
        await self._bus.publish(where, data, name, loop_id=loop_id)
        return True

    async def tell_above(self, loop_id: str, child: ChildEnded) -> None:
        """Have a loop go on that waits for one under it; see `flyball.orchestrate.editing.Above`."""
        if child.call_id:
            where, name = subjects.result_subject(f"{child.loop_id}/ended"), f"{child.loop_id}/ended"
            await self._bus.publish(where, write_ended(loop_id, child), name, loop_id=loop_id)

    async def cancel(self, loop_id: str, signal: Signal) -> bool:
        """Cancel a child, and have somebody go on with it; see `flyball.orchestrate.children.Cancel`."""
        taken = await offer_signal(self._journal, loop_id, signal, SYSTEM_CLOCK)
        if await self.is_followed(loop_id):
            # Who drove it may have ended with what began it: then there is nobody else to close it.
            await close_cancelled(self._journal, loop_id, SYSTEM_CLOCK, self.cancel)
            return taken
        # Also if it was told before: whoever did may not have lived to say it to its worker.
        await self.say(loop_id, signal)
        return taken

    async def spawn(self, started: Started) -> None:
        """Have a child begun, by whoever has its agent."""
        loop_id = started.loop_id
        where, name = subjects.task_subject(loop_id), f"{loop_id}/task"
        await self._bus.publish(where, write_task(started), name, loop_id=loop_id)
