"""What a server answers: where a message is, why it was not taken, or that it cannot tell just now."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct

from flyball.core.errors import JournalFailure, JournalFull
from flyball.runtime.nats.identity import Identity

if TYPE_CHECKING:
    from nats.aio.msg import Msg

WRONG_LAST = 10071
"""Another message is the last one than was expected."""


FULL = frozenset((10002, 10023, 10028, 10047))
"""The account, or the server, has no room for more."""


_UNAVAILABLE = 503
_FOR_NOW = frozenset((10008, 10009, 10076, 10118, 10158, 10163, 10164, 10167))
"""Too many nodes are down, or are only just coming up; or the same message, sent before, is on its way, or
another one on the subjects whose last one was expected: whether it is taken is known when it is there."""
_NEAR = 200
"""Bytes in which an answer says that it is an error."""


class Refusal(Struct):
    """Why a message was not taken."""

    err_code: int = 0
    description: str = ""
    code: int = 0


class Stored(Struct):
    """The answer."""

    seq: int = 0
    error: Refusal | None = None
    stream: str = ""
    duplicate: bool = False


class _Refused(Struct):
    error: Refusal


def no_answer_yet(message: Msg) -> str:
    """Why JetStream cannot answer just now, in its own words; nothing if it did answer, whatever that was.

    A cluster without a majority says so, once it has noticed, instead of nothing. That is no answer: what
    was asked may be asked again.
    """
    if message.headers or b'"error":{' not in message.data[:_NEAR]:
        return ""  # what has headers is a message that was stored
    refusal = msgspec.json.decode(message.data, type=_Refused).error
    # A node that has just lost its lead says why, without a code of JetStream's.
    lost_its_lead = refusal.code == _UNAVAILABLE and not refusal.err_code
    return refusal.description or "unavailable" if lost_its_lead or refusal.err_code in _FOR_NOW else ""


def not_taken(who: Identity, what: str, refusal: Refusal, **details: Any) -> JournalFailure:
    """The error of something that a server has not taken: that it has no room can pass, and is told apart."""
    if refusal.err_code not in FULL:
        return JournalFailure(f"NATS does not take {what}: {refusal.description}", **details)
    return no_room(who, f"NATS does not take {what} ({refusal.description})", **details)


def no_room(who: Identity, said: str, **details: Any) -> JournalFull:
    """The error of something that waits for room, with how to make some."""
    told = "the account on this server has no room for more: raise its limits, or the server's"
    if who.tenant:
        told = (
            f"the tenant {who.tenant!r} has used up its quota: raise it (flyball tenants quota {who.tenant} "
            "--disk …), and what waits goes on"
        )
    return JournalFull(f"{said}: {told}", tenant=who.tenant, **details)
