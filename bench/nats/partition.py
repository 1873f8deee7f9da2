"""One partition: loops, steps, bytes and memory, with each way of syncing; what docs/sizing.md begins with.

Callers wait for their loops, one after another each: few of them show how long a loop takes, many how many
loops there are in a second. A step is one durable message, in whatever stream.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from bench.nats.children import children
from bench.nats.nodes import Nodes, Sync, nodes
from bench.nats.usage import cpu_seconds
from bench.nats.work import PROMPT, make_agent
from flyball.core.ids import new_id
from flyball.runtime.nats import NatsRuntime
from flyball.runtime.nats.wire import AGENT

_JOURNAL = "JOURNAL_0"


class Row(NamedTuple):
    """Loops by so many callers: seconds of the clock, and what one loop took of everything, on average."""

    sync: str
    replicas: int
    nearby: bool
    callers: int
    loops: int
    seconds: float
    p50: float
    p99: float
    appends: float
    wire: float
    steps: float
    journal_bytes: float
    wire_bytes: float
    other_bytes: float
    disk_bytes: float
    client_bytes: float
    route_bytes: float
    worker_cpu: float
    server_cpu: float
    server_memory: float
    caller_cpu: float

    @property
    def rate(self) -> float:
        """Loops in a second."""
        return self.loops / self.seconds


async def measure(
    folder: Path, sync: Sync, replicas: int, callers: Sequence[int], seconds: float, *, nearby: bool
) -> list[Row]:
    """Rows for some numbers of callers, on a fresh server, with one process of workers."""
    async with (
        nodes(folder, sync, replicas, partitions=1) as servers,
        await NatsRuntime.open(servers.options) as runtime,
    ):
        told: dict[str, Any] = {
            "options": msgspec.to_builtins(servers.options),
            "serve": ["loop", "model", "tools"],
            "nearby": nearby,
        }
        async with children("bench.nats.worker", [told]) as (worker,):
            worker.tell("go")
            await _loops(runtime, 4, 1.0)  # the first ones find nothing ready
            told_of = _Told(sync, nearby, worker.pid, seconds)
            return [await _row(servers, runtime, told_of, number) for number in callers]


class _Told(NamedTuple):
    sync: Sync
    nearby: bool
    worker: int
    seconds: float


async def _row(servers: Nodes, runtime: NatsRuntime, told: _Told, callers: int) -> Row:
    kept, used, cpu = await _kept(runtime), servers.used(), cpu_seconds(told.worker)
    began, mine = time.perf_counter(), time.process_time()
    latencies = await _loops(runtime, callers, told.seconds)
    took, mine = time.perf_counter() - began, time.process_time() - mine
    after, spent, cpu = servers.used(), await _kept(runtime), cpu_seconds(told.worker) - cpu
    loops = len(latencies)

    def each(what: float) -> float:
        return what / loops

    def stored(names: Sequence[str], of: int) -> float:
        return each(sum(spent[name][of] - kept.get(name, (0, 0))[of] for name in names))

    others = [name for name in spent if name not in (_JOURNAL, AGENT)]
    latencies.sort()
    return Row(
        told.sync,
        len(servers.nodes),
        told.nearby,
        callers,
        loops,
        took,
        latencies[loops // 2],
        latencies[loops * 99 // 100],
        stored([_JOURNAL], 0),
        stored([AGENT], 0),
        stored(list(spent), 0),
        stored([_JOURNAL], 1),
        stored([AGENT], 1),
        stored(others, 1),
        each(after.disk - used.disk),
        each(after.clients - used.clients),
        each(after.routes - used.routes),
        each(cpu),
        each(after.cpu - used.cpu),
        each(after.memory - used.memory),
        each(mine),
    )


async def _loops(runtime: NatsRuntime, callers: int, seconds: float) -> list[float]:
    """How long each loop took, for who waited for it."""
    agent, latencies, until = make_agent(), list[float](), time.perf_counter() + seconds

    async def call() -> None:
        while (began := time.perf_counter()) < until:
            await agent.run(PROMPT, runtime=runtime, loop_id=new_id())
            latencies.append(time.perf_counter() - began)

    await asyncio.gather(*[call() for _ in range(callers)])
    return latencies


async def _kept(runtime: NatsRuntime) -> dict[str, tuple[int, int]]:
    """What was ever put into each stream, and the bytes that are there."""
    connection = runtime.connection
    found = await connection.patiently(connection.js.streams_info)
    return {info.config.name: (info.state.last_seq, info.state.bytes) for info in found}
