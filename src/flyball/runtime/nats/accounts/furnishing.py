"""The streams and stores in a new account: everything that its users need, since they may make nothing."""

from __future__ import annotations

from functools import partial

from flyball.runtime.nats.bus import KEPT, Bus
from flyball.runtime.nats.connection import Connection
from flyball.runtime.nats.governance import make_governance
from flyball.runtime.nats.layout import Layout, make, make_bucket, set_up
from flyball.runtime.nats.wire import BLOBS, TOOL_BLOBS, WIRE_BLOBS
from flyball.runtime.nats.workers.projector import LARGE, LOOPS, TRAJECTORIES

_STORES = {BLOBS: None, WIRE_BLOBS: KEPT, TOOL_BLOBS: KEPT, LARGE: None}


async def furnish(connection: Connection, layout: Layout) -> Layout:
    """Make what is missing; gives the layout as it is there.

    Raises:
        UserError: the server does not make it; the message says why.
    """
    settled = await set_up(connection, layout)
    await Bus(connection, settled).set_up()
    for name in (LOOPS, TRAJECTORIES):
        await make_bucket(connection, name, settled.replicas)
    await make_governance(connection, settled.replicas)
    for name, kept in _STORES.items():
        do = partial(connection.js.create_object_store, name, replicas=settled.replicas, ttl=kept)
        await make(connection, f"OBJ_{name}", do)
    return settled
