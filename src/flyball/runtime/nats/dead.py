"""What no worker could do anything with: kept with the reason, listed, given out again or dropped on request.

Workers of every kind write there, also those that are less trusted: what stands there may be anything.
"""

from __future__ import annotations

import json
import time
from datetime import datetime
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct

from flyball.core.errors import FlyballError, JournalFailure, UserError
from flyball.runtime.nats.bus import Bus
from flyball.runtime.nats.deliveries import FROM, LOOP, Delivery
from flyball.runtime.nats.fetching import after, header, sequence
from flyball.runtime.nats.naming import ENTRIES, unsalted
from flyball.runtime.nats.subjects import DEAD, DEAD_SUBJECTS, READERS, dead_subjects, reader_subject

if TYPE_CHECKING:
    from nats.aio.msg import Msg

_WHY = "Flyball-Dead"
_LONGEST_REASON, _LONGEST_CODE = 2_000, 100
_LAST_TIME = 253_402_300_799
"""The last second of the year 9999: what is later is no time."""
UNREADABLE = "UNREADABLE"
"""The code of what stands there and is not what a worker writes."""
_NO_LOOP = "_"
_GONE = "no message found"
"""What the server says of a message that it is to delete and does not have; its code means more than that."""


class Dead(Struct, frozen=True):
    """A message that was put aside, why, and `by` the workers of which consumer."""

    subject: str
    headers: dict[str, str]
    code: str
    reason: str
    at: float
    times: int
    data: bytes = b""
    by: str = ""

    @property
    def shown(self) -> str:
        """Its subject, as it may be told: see `unsalted`."""
        return unsalted(self.subject)


async def dead_letters(bus: Bus, loop_id: str | None = None) -> list[tuple[int, Dead]]:
    """What was put aside (of one loop), each with its number; the oldest first.

    Raises:
        JournalUnreachable: the server does not answer.
    """
    subjects = DEAD_SUBJECTS if loop_id is None else dead_subjects(loop_id)
    found = await after(bus.connection, DEAD, subjects)
    placed = [(sequence(one), one, header(one, "Nats-Subject")) for one in found]
    return [(number, told(one, place) or _unreadable(one, place)) for number, one, place in placed]


def told(message: Msg, place: str) -> Dead | None:
    """What a message tells that was put aside, on the subject `place`; None of one that cannot be read."""
    try:
        dead = msgspec.json.decode(header(message, _WHY), type=Dead)
    except msgspec.DecodeError:
        return None
    subject = _put_aside_from(place)
    if not subject or not 0 <= dead.at <= _LAST_TIME:
        return None
    # By the place where it is, which not everybody may write to: it is going to be sent there again.
    code, reason = dead.code[:_LONGEST_CODE], dead.reason[:_LONGEST_REASON]
    return msgspec.structs.replace(dead, subject=subject, code=code, reason=reason, data=message.data)


def _unreadable(message: Msg, place: str) -> Dead:
    why = "no worker has written this: it can be dropped (flyball dead --drop)"
    at = _time(header(message, "Nats-Time-Stamp"))
    return Dead(_put_aside_from(place) or place, {}, UNREADABLE, why, at, 0, message.data)


def _put_aside_from(place: str) -> str:
    return place.split(".", 3)[-1] if place.count(".") > 2 else ""


def _time(written: str) -> float:
    try:
        return datetime.fromisoformat(written[:19] + "+00:00").timestamp()
    except ValueError:
        return 0.0


async def requeue(bus: Bus, number: int, dead: Dead) -> None:
    """Give a message that was put aside to the workers again; then it is put aside no more.

    Whoever else does so at the same time does it once with us. An entry of a journal, which was not told of,
    is not recorded again: it is given to those who could not tell of it.

    Raises:
        UserError: it cannot be read.
        JournalUnreachable: the server does not answer.
        JournalFailure: the server does not take it, or does not let go of it.
    """
    if dead.code == UNREADABLE:
        raise UserError(f"{number} cannot be given out again: {dead.reason}", number=number)
    headers = {name: value for name, value in dead.headers.items() if not name.startswith("Nats-")}
    where = [dead.subject]
    if dead.subject.startswith(ENTRIES):
        # Of one of an earlier release it is not known whose it was. Telling of it twice changes nothing.
        where = [reader_subject(by) for by in ((dead.by,) if dead.by else READERS)]
        headers[FROM] = dead.shown
    for subject in where:
        await bus.publish(subject, dead.data, f"requeued/{number}/{subject}", whole=True, more=headers)
    await drop(bus, number)


async def drop(bus: Bus, number: int) -> None:
    """Let go of what was put aside: it is gone, and nobody does it. Who waits for its loop goes on waiting.

    Raises:
        JournalUnreachable: the server does not answer.
        JournalFailure: the server does not let go of it.
    """
    from nats.js.errors import APIError

    try:
        await bus.connection.patiently(lambda: bus.connection.js.delete_msg(DEAD, number))
    except APIError as error:
        # It is gone already where the answer to an earlier attempt was lost, or came late.
        if error.description != _GONE:
            raise JournalFailure(
                f"NATS does not delete message {number} of {DEAD}: {error.description}"
            ) from error


async def put_aside(bus: Bus, delivery: Delivery, why: Exception) -> None:
    """Keep a message that cannot be worked on, with the reason. Who waits for its loop is told by it."""
    code = why.code if isinstance(why, FlyballError) else type(why).__name__
    dead = Dead(
        delivery.subject,
        delivery.headers,
        code,
        str(why)[:_LONGEST_REASON],
        time.time(),
        delivery.times,
        by=delivery.consumer,
    )
    # The reason goes beside the message, which may be as large as a message can be. A header is ASCII.
    reason = json.dumps(msgspec.to_builtins(dead))
    where = f"fly.dead.{delivery.headers.get(LOOP) or _NO_LOOP}.{delivery.subject}"
    await bus.publish(where, delivery.data, f"dead/{delivery.reply}", whole=True, more={_WHY: reason})
