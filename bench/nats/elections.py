"""How long a stream of three copies takes nothing after the node that leads it was killed."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any

from bench.nats.nodes import all_ready, nodes
from flyball.runtime.nats import NatsJournal

_PROBE = "PROBE"
_ATTEMPT = 0.1


async def measure(folder: Path, times: int) -> list[float]:
    """Seconds until a publish is answered again, for so many kills; each node comes again before the next."""
    found: list[float] = []
    async with (
        nodes(folder, "always", 3, partitions=1) as servers,
        await NatsJournal.open(servers.options) as journal,
    ):
        js, patiently = journal.connection.js, journal.connection.patiently
        await patiently(lambda: js.add_stream(name=_PROBE, subjects=["probe"], num_replicas=3))
        for _ in range(times):
            info = await patiently(lambda: js.stream_info(_PROBE))
            leader = servers.named(info.cluster.leader)
            await _until_answered(js)
            await leader.kill()
            began = time.perf_counter()
            await _until_answered(js)
            found.append(time.perf_counter() - began)
            await leader.start()
            await all_ready(servers.nodes)
            await asyncio.sleep(1)  # its copies catch up
    return found


async def _until_answered(js: Any) -> None:
    while True:
        try:
            await js.publish("probe", b"x" * 512, timeout=_ATTEMPT)
        except Exception:  # whatever it says: it is not there yet
            await asyncio.sleep(0.02)
        else:
            return
