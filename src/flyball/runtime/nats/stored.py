"""What a stream answers to a message: the place where it is, or why it was not taken."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from flyball.core.errors import JournalFailure, JournalFull
from flyball.runtime.nats.identity import Identity

WRONG_LAST = 10071
"""Another message is the last one than was expected."""


FULL = frozenset((10002, 10023, 10028, 10047))
"""The account, or the server, has no room for more."""


class Refusal(Struct):
    """Why a message was not taken."""

    err_code: int = 0
    description: str = ""


class Stored(Struct):
    """The answer."""

    seq: int = 0
    error: Refusal | None = None


def not_taken(who: Identity, what: str, refusal: Refusal, **details: Any) -> JournalFailure:
    """The error of something that a server has not taken: that it has no room can pass, and is told apart."""
    if refusal.err_code not in FULL:
        return JournalFailure(f"NATS does not take {what}: {refusal.description}", **details)
    told = "the account on this server has no room for more: raise its limits, or the server's"
    if who.tenant:
        told = (
            f"the tenant {who.tenant!r} has used up its quota: raise it (flyball tenants quota {who.tenant} "
            "--disk …), and what waits goes on"
        )
    return JournalFull(
        f"NATS does not take {what} ({refusal.description}): {told}", tenant=who.tenant, **details
    )
