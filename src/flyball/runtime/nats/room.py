"""Whether an account has room for something. Who waits for what another is to write is not told of it."""

from __future__ import annotations

import asyncio

import msgspec
from msgspec import Struct

from flyball.core.errors import JournalUnreachable, PermissionDenied
from flyball.runtime.nats.connection import Connection

_SECONDS = 5.0
"""Seconds in which the server tells, or it is not known."""
_BESIDE = 1_024
"""Bytes that a message takes on disk besides what it holds: its subject, its headers."""


class _Limits(Struct):
    max_storage: int = -1


class _Account(Struct):
    storage: int = 0
    limits: _Limits | None = None


async def lacks_room(connection: Connection, size: int, replicas: int) -> bool:
    """Whether the account's quota has no room for a message of so many bytes, in so many copies.

    False also where that cannot be told: the server does not answer, or does not let this user ask, as with
    credentials of an earlier release.
    """
    try:
        async with asyncio.timeout(_SECONDS):
            told = await connection.request(f"{connection.identity.api}.INFO", b"")
        account = msgspec.json.decode(told.data, type=_Account)
    except (TimeoutError, JournalUnreachable, PermissionDenied, msgspec.DecodeError):
        return False
    most = account.limits.max_storage if account.limits is not None else -1
    return 0 <= most < account.storage + (size + _BESIDE) * replicas
