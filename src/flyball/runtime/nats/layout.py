"""What flyball keeps on a NATS server: its streams and stores, made once and the same for everybody.

`JOURNAL_0 … JOURNAL_<n>` are the truth: a loop's entries are all in one of them, which its id decides, so
that loops are written side by side. How many there are is settled when they are made.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from msgspec import Struct

from flyball.core.errors import UserError
from flyball.runtime.nats.connection import Connection
from flyball.runtime.nats.naming import journal_stream, journal_subjects, noticed_subjects
from flyball.runtime.nats.wire import APART, TOGETHER, Wire

PARTITIONS = "flyball.partitions"
"""The note on a journal stream that says how many there are."""
_WIRE, _APART, _SALT = "flyball.wire", "apart", "flyball.salt"
"""The notes on one that say where the wire is, and what its subjects have in them."""
_NAME_IN_USE = 10058
_SERVERS_FAULT = 500
_NOT_UP = ("peer offline", "miscellaneous issue")
"""What a cluster says that has no place for copies, for want of nodes that it has not heard of yet."""


class Layout(Struct, frozen=True):
    """How much of it there is to be; only for a server that has none of it yet.

    `partitions`: streams of the journal. `replicas`: copies of everything, on that many servers. `apart`:
    whether the wire is laid out for workers that may not see each other's messages (see `wire`). `salt` is
    part of the journals' subjects then, and known to those only who may read them: a server sends what it
    answers wherever who asked wants it, and that must not be into a journal.
    """

    partitions: int = 4
    replicas: int = 1
    apart: bool = False
    salt: str = ""

    def __post_init__(self) -> None:
        if not 1 <= self.partitions <= 1024:
            raise UserError(f"partitions={self.partitions}: there may be 1 to 1024")
        if not 1 <= self.replicas <= 5:
            raise UserError(f"replicas={self.replicas}: a cluster keeps 1 to 5 copies")

    @property
    def wire(self) -> Wire:
        """Where the wire is."""
        return APART if self.apart else TOGETHER


async def set_up(connection: Connection, layout: Layout) -> Layout:
    """Make what is missing; gives the layout as it is there, which is that of the first who came.

    Raises:
        UserError: the server has streams of these names that are not flyball's, or does not make them.
    """
    who = connection.identity
    if who.is_set_up_for and not who.may_read_journals:
        return Layout(layout.partitions, layout.replicas, apart=True)  # it never asks how many there are
    settled = await _settled(connection)
    if who.is_set_up_for:
        if settled is None:
            raise UserError(
                f"the account of the tenant {who.tenant!r} has no journals: "
                f"`flyball tenants furnish {who.tenant}` makes them"
            )
        return settled
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
    apart = (notes or {}).get(_WIRE) == _APART
    return Layout(int(noted), info.config.num_replicas or 1, apart, (notes or {}).get(_SALT, ""))


async def make(connection: Connection, name: str, do: Callable[[], Any]) -> None:
    """Make a stream or a store, unless it is there. Nodes that are just coming up are waited for.

    Raises:
        UserError: the server does not make it; the message says why.
    """
    from nats.js.errors import APIError

    until, pauses = time.monotonic() + connection.patience, iter((0.05, 0.5))
    while True:
        try:
            await connection.patiently(do)
        except APIError as error:
            # Another worker has made it, a moment ago or long since, perhaps with another number of copies.
            if error.err_code == _NAME_IN_USE:
                return
            said = error.description or str(error)
            is_coming_up = any(one in said for one in _NOT_UP) and time.monotonic() < until
            is_passing = is_coming_up or (error.code or 0) >= _SERVERS_FAULT
            pause = 0.5 if is_coming_up else next(pauses, None)
            if pause is None or not is_passing:
                raise UserError(f"the server does not make the stream {name}: {said}", stream=name) from error
            # Such as one of the same name that is just being deleted.
            await asyncio.sleep(pause)
        else:
            return


async def make_bucket(connection: Connection, name: str, replicas: int, *, rollup: bool = True) -> None:
    """Make a key-value bucket, unless it is there; raises as `make` does.

    Without `rollup`, nobody who may write one key can take all others away by that.
    """
    from nats.js.api import DiscardPolicy, KeyValueConfig, StorageType, StreamConfig

    if connection.identity.is_set_up_for:
        return
    if rollup:
        config = KeyValueConfig(name, storage=StorageType.FILE, replicas=replicas)
        await make(connection, name, partial(connection.js.create_key_value, config))
        return
    stream = StreamConfig(
        name=f"KV_{name}",
        subjects=[f"$KV.{name}.>"],
        storage=StorageType.FILE,
        num_replicas=replicas,
        max_msgs_per_subject=1,
        discard=DiscardPolicy.NEW,
        deny_delete=True,
        allow_direct=True,
        duplicate_window=120,
    )
    await make(connection, name, partial(connection.js.add_stream, stream))


def opened_bucket(connection: Connection, name: str) -> Any:
    """A bucket that is there: nothing is asked of the server, which not everybody may."""
    from nats.js.kv import KeyValue

    # Not directly: such an answer is the value itself, and who asks says on which subject it comes. That is a
    # way to say anywhere what one may only write here.
    return KeyValue(name, f"KV_{name}", f"$KV.{name}.", connection.js, direct=False)


def _journal(number: int, layout: Layout) -> Any:
    from nats.js.api import DiscardPolicy, RePublish, RetentionPolicy, StorageType, StreamConfig

    subjects = journal_subjects(number, layout.salt)
    notes = {_WIRE: _APART, _SALT: layout.salt} if layout.apart else {}
    return StreamConfig(
        name=journal_stream(number),
        description="the events of flyball's loops: the truth",
        subjects=[subjects],
        retention=RetentionPolicy.LIMITS,
        storage=StorageType.FILE,
        num_replicas=layout.replicas,
        # What does not fit is refused; nothing old is thrown away for it.
        discard=DiscardPolicy.NEW,
        duplicate_window=120,
        allow_direct=True,
        # Told after it was stored, to whoever waits: a reader who was told finds it there.
        republish=RePublish(src=subjects, dest=noticed_subjects(number, layout.salt), headers_only=True),
        metadata={PARTITIONS: str(layout.partitions)} | notes,
    )
