"""The streams and stores in a new account: everything that its users need, since they may make nothing."""

from __future__ import annotations

from functools import partial

from flyball.core.errors import UserError
from flyball.runtime.nats.bus import KEPT, Bus
from flyball.runtime.nats.connection import Connection
from flyball.runtime.nats.governance import make_governance
from flyball.runtime.nats.layout import Layout, make, make_bucket, set_up
from flyball.runtime.nats.subjects import DEAD
from flyball.runtime.nats.wire import BLOBS, TOOL_BLOBS, WIRE_BLOBS
from flyball.runtime.nats.workers.projector import LARGE, LOOPS, TRAJECTORIES

_STORES = {BLOBS: None, WIRE_BLOBS: KEPT, TOOL_BLOBS: KEPT, LARGE: None}


_PART_FOR_DEAD = 10
"""What part of a tenant's disk may be taken by what was put aside: who may write there may write much."""


async def furnish(connection: Connection, layout: Layout, disk: int = 0) -> Layout:
    """Make what is missing; gives the layout as it is there. `disk`: the tenant's quota, 0 for none.

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
    await limit_dead(connection, disk)
    return settled


async def limit_dead(connection: Connection, disk: int) -> None:
    """Have what was put aside take no more than its part of a quota: nothing of it is lost for that.

    What does not fit is not put aside, and tried again until it does.

    Raises:
        UserError: the server does not change it; the message says why.
    """
    from nats.js.api import DiscardPolicy
    from nats.js.errors import APIError

    js = connection.js
    config = (await connection.patiently(lambda: js.stream_info(DEAD))).config
    limit = disk // _PART_FOR_DEAD // (config.num_replicas or 1) if disk else -1
    if (config.max_bytes, config.discard) == (limit, DiscardPolicy.NEW):
        return
    config.max_bytes, config.discard = limit, DiscardPolicy.NEW
    try:
        await connection.patiently(lambda: js.update_stream(config))
    except APIError as error:
        said = error.description or str(error)
        raise UserError(f"the server does not limit the stream {DEAD}: {said}", stream=DEAD) from error
