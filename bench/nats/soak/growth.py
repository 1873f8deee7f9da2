"""Whether what a soak takes stays as it is: memory and consumers, looked at again and again while it runs.

The first third of the samples is warming up: what is kept in mind (so many loops, and no more) has to be
full first. The last third is held against the middle one, each by its median. A server indexes the loops that
it keeps, so its memory grows with them: by so much for each, and no more.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from statistics import median
from typing import Any, NamedTuple

from bench.nats.nodes import Node
from bench.nats.usage import resident_bytes
from flyball.core.errors import FlyballError
from flyball.runtime.nats import NatsRuntime

WORKER = 1.15
"""How many times what a worker took in the middle third it may take in the last."""
SERVER, OF_A_LOOP = 1.25, 10_000
"""The same of a node, besides so many bytes for each loop that came in between."""
_ENOUGH = 30
"""Samples without which nothing is said."""
_LOOK = 1.0
_MB = 1e6


class Sample(NamedTuple):
    """One look: how many loops were over, the memory of the worker that is spared, of a node on average, and
    how many consumers there were."""

    loops: int
    worker: int
    server: float
    consumers: int


class Row(NamedTuple):
    """Something that was looked at: in the middle third, in the last, and how much is allowed there."""

    what: str
    middle: float
    last: float
    bound: float

    @property
    def flat(self) -> bool:
        return self.last <= self.bound


def judged(samples: Sequence[Sample]) -> list[Row]:
    """What became of each; nothing where there are too few samples to tell."""
    if len(samples) < _ENOUGH:
        return []
    third = len(samples) // 3
    middle, last = samples[third : 2 * third], samples[2 * third :]

    def both(of: Callable[[Sample], float]) -> tuple[float, float]:
        return median(map(of, middle)), median(map(of, last))

    loops, worker, server = (
        both(lambda one: one.loops),
        both(lambda one: one.worker / _MB),
        both(lambda one: one.server / _MB),
    )
    more = (loops[1] - loops[0]) * OF_A_LOOP / _MB
    # A node that is down is not asked, so there may be fewer: never more.
    consumers = [float(max(one.consumers for one in part)) for part in (middle, last)]
    return [
        Row("a worker, MB", *worker, WORKER * worker[0]),
        Row("a node, MB", *server, SERVER * server[0] + more),
        Row("consumers", *consumers, consumers[0]),
    ]


async def watch(
    samples: list[Sample], over: Callable[[], int], worker: int, nodes: Sequence[Node], runtime: NatsRuntime
) -> None:
    """Look, until cancelled. `worker`: the process of one that is never killed."""
    while True:
        await asyncio.sleep(_LOOK)
        up = [pid for node in nodes if (pid := node.pid) is not None]
        consumers = await _consumers(runtime)
        if len(up) == len(nodes) and consumers is not None:
            memory = _resident(up)
            if memory is not None:
                samples.append(Sample(over(), resident_bytes(worker), memory / len(up), consumers))


def _resident(pids: Sequence[int]) -> float | None:
    """The memory of processes; None where one has just been killed."""
    try:
        return sum(map(resident_bytes, pids))
    except (FileNotFoundError, ProcessLookupError):
        return None


async def _consumers(runtime: NatsRuntime) -> int | None:
    """How many there are on all streams; None while the cluster cannot tell."""
    from nats.js.errors import APIError

    connection = runtime.connection
    try:
        found: list[Any] = await connection.patiently(connection.js.streams_info)
    except (FlyballError, APIError):
        return None
    return sum(info.state.consumer_count for info in found)
