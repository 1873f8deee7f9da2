"""What flyball keeps on a NATS server: its streams and stores, made once and the same for everybody.

`JOURNAL_0 … JOURNAL_<n>` are the truth: a loop's entries are all in one of them, which its id decides, so
that loops are written side by side. How many there are is settled when they are made.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any

from msgspec import Struct

from flyball.core.errors import UserError
from flyball.runtime.nats.connection import Connection
from flyball.runtime.nats.naming import journal_stream, journal_subjects, noticed_subjects

PARTITIONS = "flyball.partitions"
"""The note on a journal stream that says how many there are."""
_NAME_IN_USE = 10058
_SERVERS_FAULT = 500
BLOBS = "FLYBALL_BLOBS"
"""The object store for what is too large for a message of the journal."""
WIRE_BLOBS = "FLYBALL_WIRE"
"""The one for what is too large for a message of the wire: it is kept for as long as the wire is."""


class Layout(Struct, frozen=True):
    """How much of it there is to be; only for a server that has none of it yet.

    `partitions`: streams of the journal. `replicas`: copies of everything, on that many servers.
    """

    partitions: int = 4
    replicas: int = 1

    def __post_init__(self) -> None:
        if not 1 <= self.partitions <= 1024:
            raise UserError(f"partitions={self.partitions}: there may be 1 to 1024")
        if not 1 <= self.replicas <= 5:
            raise UserError(f"replicas={self.replicas}: a cluster keeps 1 to 5 copies")


async def set_up(connection: Connection, layout: Layout) -> Layout:
    """Make what is missing; gives the layout as it is there, which is that of the first who came.

    Raises:
        UserError: the server has streams of these names that are not flyball's, or does not make them.
    """
    settled = await _settled(connection)
    if settled is None:
        await make(connection, journal_stream(0), partial(connection.js.add_stream, _journal(0, layout)))
        settled = await _settled(connection)
        assert settled is not None, "it has just been made"
    for number in range(1, settled.partitions):
        await make(
            connection, journal_stream(number), partial(connection.js.add_stream, _journal(number, settled))
        )
    return settled


async def _settled(connection: Connection) -> Layout | None:
    """The layout that is there; None where there is no journal yet."""
    from nats.js.errors import NotFoundError

    try:
        info = await connection.patiently(lambda: connection.js.stream_info(journal_stream(0)))
    except NotFoundError:
        return None
    notes: dict[str, str] | None = info.config.metadata
    noted = (notes or {}).get(PARTITIONS, "")
    if not noted.isdecimal():
        raise UserError(
            f"the stream {journal_stream(0)} on this server was not made by flyball (it has no note "
            f"{PARTITIONS!r}): use another account or another server"
        )
    return Layout(int(noted), info.config.num_replicas or 1)


async def make(connection: Connection, name: str, do: Callable[[], Any]) -> None:
    """Make a stream or a store, unless it is there.

    Raises:
        UserError: the server does not make it; the message says why.
    """
    from nats.js.errors import APIError

    for pause in (0.05, 0.5, None):
        try:
            await connection.patiently(do)
        except APIError as error:
            # Another worker has made it, a moment ago or long since, perhaps with another number of copies.
            if error.err_code == _NAME_IN_USE:
                return
            if pause is None or (error.code or 0) < _SERVERS_FAULT:
                raise UserError(
                    f"the server does not make the stream {name}: {error.description or error}", stream=name
                ) from error
            # Such as one of the same name that is just being deleted.
            await asyncio.sleep(pause)
        else:
            return


async def make_bucket(connection: Connection, name: str, replicas: int, ttl: float | None = None) -> None:
    """Make a key-value bucket, unless it is there; raises as `make` does."""
    from nats.js.api import KeyValueConfig, StorageType

    config = KeyValueConfig(name, ttl=ttl, storage=StorageType.FILE, replicas=replicas)
    await make(connection, name, partial(connection.js.create_key_value, config))


def _journal(number: int, layout: Layout) -> Any:
    from nats.js.api import DiscardPolicy, RePublish, RetentionPolicy, StorageType, StreamConfig

    return StreamConfig(
        name=journal_stream(number),
        description="the events of flyball's loops: the truth",
        subjects=[journal_subjects(number)],
        retention=RetentionPolicy.LIMITS,
        storage=StorageType.FILE,
        num_replicas=layout.replicas,
        # What does not fit is refused; nothing old is thrown away for it.
        discard=DiscardPolicy.NEW,
        duplicate_window=120,
        allow_direct=True,
        # Told after it was stored, to whoever waits: a reader who was told finds it there.
        republish=RePublish(src=journal_subjects(number), dest=noticed_subjects(number), headers_only=True),
        metadata={PARTITIONS: str(layout.partitions)},
    )
