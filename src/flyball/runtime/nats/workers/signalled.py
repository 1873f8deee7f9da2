"""Signals: recorded out of turn, for they may concern what is being done just now for another message.

Whoever sent one may wait to hear whether it was taken, by a header that names where.
"""

from __future__ import annotations

from msgspec import Struct

from flyball.core.errors import JournalConflict
from flyball.core.events import Reopened, SignalReceived
from flyball.core.signals import Signal, SignalType
from flyball.orchestrate.clock import SYSTEM_CLOCK
from flyball.orchestrate.machine import asked_to_detach, owed, take
from flyball.orchestrate.recorded import load, load_any, offer_signal
from flyball.runtime.nats.bus import Bus
from flyball.runtime.nats.deliveries import Delivery
from flyball.runtime.nats.journal import NatsJournal
from flyball.runtime.nats.naming import is_inbox
from flyball.runtime.nats.workers.detaching import ask_to_detach
from flyball.runtime.nats.workers.keepers import Keepers
from flyball.runtime.nats.workers.relatives import Relatives

REPLY = "Flyball-Reply"
"""The header of a signal whose sender waits to hear whether it was taken."""


class Signalled(Struct, frozen=True):
    """What came of a signal: `owed`, by their ids, is owed by it. None: whatever is owed may be owed by it.

    `goes_on` is false where others drive the loop: they find it in the journal.
    """

    owed: set[str] | None = None
    goes_on: bool = True


class Signals:
    """Takes the signals that come to a worker."""

    def __init__(self, bus: Bus, journal: NatsJournal, keepers: Keepers, relatives: Relatives) -> None:
        self._bus = bus
        self._journal = journal
        self._keepers = keepers
        self._relatives = relatives

    async def take(self, loop_id: str, event: SignalReceived | Reopened, delivery: Delivery) -> Signalled:
        """Record a signal, unless it came before or does not fit, and say it to those under its loop."""
        if await self._relatives.is_followed(loop_id):
            await self._offer(loop_id, event, delivery)
            return Signalled(goes_on=False)
        return Signalled(await self._append(loop_id, event, delivery))

    async def _append(
        self, loop_id: str, event: SignalReceived | Reopened, delivery: Delivery
    ) -> set[str] | None:
        """Append a signal; gives what is owed by that, or None if it came before."""
        while True:
            events, state = await load(self._journal, loop_id)
            before = {effect.id for effect in owed(state)}
            taken, keeper = take(state, event), self._keepers.at_hand(loop_id)
            self._keepers.bound(state)
            if keeper is not None:
                # Before it is there: the keeper may find it at once.
                (keeper.claim if taken else keeper.disclaim)(event)
            try:
                if taken:
                    await self._journal.append(loop_id, (event,), len(events))
            except JournalConflict:
                continue
            break
        below = await self._relatives.pass_on(state, event, taken=taken)
        # It has just been read: who keeps it need not read it again.
        if taken:
            events.append(event)
        now = self._keepers.at_hand(loop_id) or self._keepers.keep(state, events)
        if taken and now is not keeper:
            now.claim(event)
        if state.detached and isinstance(event, SignalReceived) and event.signal.type is SignalType.DETACH:
            # Also if it came before: whoever took it may not have lived to say it.
            await ask_to_detach(self._bus, loop_id, asked_to_detach(state))
        await self._reply(delivery, taken=taken or below)
        if taken:
            return {effect.id for effect in owed(state)} - before
        name = event.id if isinstance(event, Reopened) else event.signal.id
        return None if name and name in state.signals else set()

    async def _offer(self, loop_id: str, event: SignalReceived | Reopened, delivery: Delivery) -> None:
        """Append a signal to a loop whose driver follows its journal, and say it to those under it."""
        if isinstance(event, SignalReceived):
            signal = event.signal
        else:
            signal = Signal(SignalType.RETRY, event.id, event.by)
        taken = await offer_signal(self._journal, loop_id, signal, SYSTEM_CLOCK)
        _, state = await load_any(self._journal, loop_id)
        below = await self._relatives.pass_on(state, event, taken=taken)
        await self._reply(delivery, taken=taken or below)

    async def _reply(self, delivery: Delivery, *, taken: bool) -> None:
        reply = delivery.headers.get(REPLY, "")
        if is_inbox(reply):  # and nowhere else: anybody may have set it
            await self._bus.connection.publish(reply, b"1" if taken else b"0")
