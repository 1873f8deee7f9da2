"""Which of the things that people say are the same thing, said again.

A person's id for what they say is good for that person, in that conversation, and for that kind of thing: two
people may both have a message "2", and one of them a signal "2" beside it. A loop knows signals by their ids
alone, so what it is told has one that is made of all of these. It is the same each time, whoever makes it.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import sha256

import msgspec
from msgspec.structs import replace

from flyball.core.events import Event, Reopened, SignalReceived
from flyball.core.forms.semstreams import UserMessage, UserSignal
from flyball.core.signals import Signal, SignalType
from flyball.orchestrate.channels.address import Address
from flyball.orchestrate.family import loops_below
from flyball.orchestrate.service import Service

_DIGITS = 32


def identity_of(said: UserMessage | UserSignal) -> str:
    """The id under which a loop is told something: no two people, conversations or kinds share one."""
    kind, name = ("signal", said.signal_id) if isinstance(said, UserSignal) else ("message", said.message_id)
    whole = msgspec.json.encode([kind, Address.of(said).conversation, said.user_id, name])
    return f"said-{sha256(whole).hexdigest()[:_DIGITS]}"


async def known_as(service: Service, loop_id: str, said: UserMessage | UserSignal, kind: SignalType) -> str:
    """The id under which a loop, or one under it, knows what was said, or is to be told it.

    That is `identity_of` it, but for what was taken before there were such ids: that has the person's own.

    Raises:
        LoopNotFound: there is no such loop.
    """
    before = said.signal_id if isinstance(said, UserSignal) else said.message_id
    if await _is_known(service, loop_id, before, said.user_id, kind):
        return before
    return identity_of(said)


async def sent_as(service: Service, loop_id: str, signal: Signal) -> Signal:
    """A signal that somebody sends on no channel, under an id of theirs alone; as it is where it has none.

    Two who choose the same id do not take each other's signals away, also in loops under this one. What was
    taken before there were such ids keeps the one that it came with.

    Raises:
        LoopNotFound: there is no such loop.
    """
    if not (signal.id and signal.by) or await _is_known(service, loop_id, signal.id, signal.by, signal.type):
        return signal
    whole = msgspec.json.encode(["sent", signal.by, signal.id])
    return replace(signal, id=f"sent-{sha256(whole).hexdigest()[:_DIGITS]}")


async def _is_known(service: Service, loop_id: str, name: str, by: str, kind: SignalType) -> bool:
    """Whether a loop, or one under it, has taken something of somebody's under the very id."""
    events, state = await service.load(loop_id)
    if _has(events, name, by, kind):
        return True
    for below in await loops_below(service.journal, state):
        if _has(await service.journal.read(below.loop_id), name, by, kind):
            return True
    return False


def _has(events: Iterable[Event], name: str, by: str, kind: SignalType) -> bool:
    for event in events:
        if isinstance(event, SignalReceived):
            signal = event.signal
            if (signal.id, signal.by, signal.type) == (name, by, kind):
                return True
        elif isinstance(event, Reopened) and kind is SignalType.RETRY and (event.id, event.by) == (name, by):
            return True
    return False
