"""What is too large for a message: kept in an object store, named by the hash of its content.

It is there before anything refers to it, and being named by what it holds, it is the same however often it is
put there.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from contextlib import suppress
from hashlib import sha256
from typing import Any, TypeVar

from flyball.core.errors import JournalCorrupt, JournalFailure
from flyball.runtime.nats.connection import Connection
from flyball.runtime.nats.stored import FULL, Refusal, not_taken
from flyball.runtime.nats.wire import BLOBS

T = TypeVar("T")
_ATTEMPT = 20.0
"""Seconds for one try to put or to get something: megabytes are slow where every piece goes to a disk."""


class Blobs:
    """The object store of one server. It is made when the first is put there."""

    def __init__(
        self, connection: Connection, replicas: int, name: str = BLOBS, kept: float | None = None
    ) -> None:
        """`kept`: seconds after which all is dropped; without it, never."""
        self._connection = connection
        self._replicas = replicas
        self._name = name
        self._kept = kept
        self._bucket: Any = None

    async def put(self, data: bytes) -> str:
        """Keep it; gives its name.

        Raises:
            JournalFailure: it could not be kept; JournalFull, where there is no room for it.
        """
        from nats.errors import Error

        name = sha256(data).hexdigest()
        try:
            bucket = await self._opened(make=True)
            if self._kept is None and await self._is_there(bucket, name):
                return name  # and to put it there once more would take what is there away
            await self._connection.patiently(lambda: _within(bucket.put(name, data)))
        except (Error, TimeoutError) as error:
            if (code := getattr(error, "err_code", 0)) in FULL:
                refusal = Refusal(code, str(getattr(error, "description", "")))
                raise not_taken(self._connection.identity, f"{len(data):,} bytes", refusal) from error
            raise JournalFailure(
                f"{len(data):,} bytes could not be put into {self._name}: {error or type(error).__name__}"
            ) from error
        return name

    async def get(self, name: str, place: str) -> bytes:
        """What has this name.

        Raises:
            JournalCorrupt: it is not there, or is something else.
            JournalFailure: it could not be read.
        """
        from nats.errors import Error
        from nats.js.errors import NotFoundError

        try:
            bucket = await self._opened(make=False)
            data = await self._connection.patiently(lambda: _within(self._read(bucket, name)))
        except NotFoundError as error:
            raise JournalCorrupt(f"{place}: {name} is not in {self._name}", place=place) from error
        except (Error, TimeoutError) as error:
            raise JournalFailure(f"{place}: {name} could not be read from {self._name}: {error}") from error
        if sha256(data).hexdigest() != name:
            raise JournalCorrupt(
                f"{place}: what {self._name} has under {name} is something else", place=place
            )
        return data

    async def _is_there(self, bucket: Any, name: str) -> bool:
        from nats.js.errors import NotFoundError

        try:
            await self._connection.patiently(lambda: bucket.get_info(name))
        except NotFoundError:
            return False
        return True

    async def _read(self, bucket: Any, name: str) -> bytes:
        if not self._connection.identity.is_set_up_for:
            return (await bucket.get(name)).data
        # The library makes a consumer for that, which not everybody may.
        info, place, pieces = await bucket.get_info(name), 0, list[bytes]()
        stream, subject = f"OBJ_{self._name}", f"$O.{self._name}.C.{info.nuid}"
        for _ in range(info.chunks or 0):
            piece = await self._connection.js.get_msg(stream, seq=place + 1, subject=subject, next=True)
            place = piece.seq
            pieces.append(piece.data)
        return b"".join(pieces)

    async def drop(self, name: str) -> None:
        """Keep it no longer; it may be gone already."""
        from nats.js.errors import NotFoundError

        bucket = await self._opened(make=True)
        with suppress(NotFoundError):
            await self._connection.patiently(lambda: bucket.delete(name))

    async def _opened(self, *, make: bool) -> Any:
        from nats.js.errors import NotFoundError

        if self._connection.identity.is_set_up_for:
            from nats.js.object_store import ObjectStore

            return ObjectStore(self._name, f"OBJ_{self._name}", self._connection.js)
        if self._bucket is None:
            js = self._connection.js
            try:
                self._bucket = await self._connection.patiently(lambda: js.object_store(self._name))
            except NotFoundError:
                if not make:
                    raise
                self._bucket = await self._connection.patiently(
                    lambda: js.create_object_store(self._name, replicas=self._replicas, ttl=self._kept)
                )
        return self._bucket


async def _within(work: Awaitable[T]) -> T:
    """Do it in a while, or not at all: the client waits without end for a piece that was lost.

    Raises:
        TimeoutError: it was not done by then; it may be done again.
    """
    async with asyncio.timeout(_ATTEMPT):
        return await work
