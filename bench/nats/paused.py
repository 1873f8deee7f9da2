"""A great many loops that wait, and how soon one of them goes on when it is told to.

Their journals are what workers would have written: a beginning, a model's answer, the wish for a pause, a
tool's result, each an append of its own. That is done in bulk; a worker writes down what is kept beside them,
and goes. Then another one comes, which knows of none of them, and some are resumed at random, one when the
one before has come to its end: measured from the call of `runtime.signal` until the server tells of the
loop's next event after the signal.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import msgspec
from msgspec.structs import replace

from bench.nats.children import children
from bench.nats.usage import Cores, Meter, resident_bytes
from bench.nats.work import PROMPT, check, make_agent
from flyball.core.events import Event, ModelAnswered, SignalReceived, Started, ToolReturned
from flyball.core.ids import new_id
from flyball.core.signals import Signal, SignalType
from flyball.orchestrate.machine import fold
from flyball.runtime.nats import EmbeddedServer, NatsJournal, NatsRuntime
from flyball.runtime.nats.naming import journal_stream, noticed_subjects

BUDGET = 0.100
"""Seconds in which any loop goes on."""
GROWTH = 1.10
"""How many times the memory it takes without them a worker may take."""
WAITING = 4
"""The events of a loop that waits."""
_AT_ONCE = 256
_LONGEST = 30.0
_LOOK = 0.5


class Paused(NamedTuple):
    """What came of it. Memory in bytes: of the worker with no loop there, with all, and as they go on."""

    loops: int
    resumed: int
    filling: float
    latencies: list[float]
    reading: list[float]
    worker: list[int]
    server: list[int]
    cores: Cores

    @property
    def met(self) -> bool:
        """Whether all were soon enough, and the worker's memory stayed as it was."""
        return max(self.latencies) <= BUDGET and self.flat

    @property
    def flat(self) -> bool:
        """Whether a worker takes no more memory with all of them, and no more as they go on."""
        return max(self.worker) <= GROWTH * self.worker[0]

    def part(self, share: float) -> float:
        """The latency that this share of the loops did not exceed."""
        ordered = sorted(self.latencies)
        return ordered[min(int(share * len(ordered)), len(ordered) - 1)]


async def measure(server: EmbeddedServer, loops: int, resumed: int, seed: int = 1) -> Paused:
    """Have so many loops wait, and resume some.

    Raises:
        RuntimeError: a loop that was resumed did not come to what it had to.
    """
    async with await NatsRuntime.open(server.options) as runtime:
        worker, served = [await _worker_memory(server)], [resident_bytes(server.pid)]
        began = time.perf_counter()
        ids = await fill(runtime.journal, loops)
        await _caught_up(server, runtime)
        filling = time.perf_counter() - began
        served.append(resident_bytes(server.pid))
        chosen = random.Random(seed).sample(ids, resumed)
        reading = await _reading(server, random.Random(seed + 1).sample(ids, min(100, loops)))
        latencies: list[float] = []
        async with children("bench.nats.worker", [_told(server)]) as (child,):
            child.tell("go")
            notices = await Notices.of(runtime)
            await _resume(runtime, notices, ids[0])  # the first one finds the worker ready
            worker.append(resident_bytes(child.pid))
            meter, began = Meter([child.pid], server.pid), time.perf_counter()
            for quarter in _quarters([loop_id for loop_id in chosen if loop_id != ids[0]]):
                latencies += [await _resume(runtime, notices, loop_id) for loop_id in quarter]
                worker.append(resident_bytes(child.pid))
                served.append(resident_bytes(server.pid))
            cores = meter.cores(time.perf_counter() - began)
            await _over(runtime, chosen)
    return Paused(loops, len(latencies), filling, latencies, reading, worker, served, cores)


async def fill(journal: NatsJournal, loops: int) -> list[str]:
    """Write loops that wait; their ids."""
    appends = await _appends()
    ids = [new_id() for _ in range(loops)]
    left = iter(ids)

    async def some() -> None:
        for loop_id in left:
            for number, event in enumerate(appends):
                own = replace(event, loop_id=loop_id) if isinstance(event, Started) else event
                await journal.append(loop_id, (own,), number)

    await asyncio.gather(*[some() for _ in range(_AT_ONCE)])
    return ids


async def _appends() -> list[Event]:
    """What a worker writes until a loop waits after its first turn: an event each time."""
    events = await (await make_agent().run(PROMPT, loop_id="any")).events()
    started, answered, returned = events[:3]
    assert isinstance(started, Started)
    assert isinstance(answered, ModelAnswered)
    assert isinstance(returned, ToolReturned)
    # Asked for while the tool runs: the pause begins with what comes after it.
    appends: list[Event] = [
        started,
        answered,
        SignalReceived(answered.at, Signal(SignalType.PAUSE)),
        returned,
    ]
    assert fold(appends, "any").paused
    assert len(appends) == WAITING
    return appends


class Notices:
    """What the server tells of journals, and when."""

    def __init__(self) -> None:
        self._waiting: dict[tuple[str, str], asyncio.Future[float]] = {}

    @classmethod
    async def of(cls, runtime: NatsRuntime) -> Notices:
        notices = cls()
        for number in range(runtime.journal.partitions):
            await runtime.connection.subscribe(noticed_subjects(number), notices._heard)
        await runtime.connection.flush()
        return notices

    def next(self, loop_id: str, kind: str) -> asyncio.Future[float]:
        """When an append whose last event is of this kind is told of."""
        future: asyncio.Future[float] = asyncio.get_running_loop().create_future()
        self._waiting[loop_id, kind] = future
        return future

    async def _heard(self, message: Any) -> None:
        *_, loop_id, kind = message.subject.split(".")
        future = self._waiting.pop((loop_id, kind), None)
        if future is not None:
            future.set_result(time.perf_counter())


async def _resume(runtime: NatsRuntime, notices: Notices, loop_id: str) -> float:
    """Resume a loop; how long it took until it had gone on."""
    gone_on, ended = notices.next(loop_id, "modelanswered"), notices.next(loop_id, "ended")
    began = time.perf_counter()
    await runtime.signal(loop_id, Signal(SignalType.RESUME))
    async with asyncio.timeout(_LONGEST):
        took = await gone_on - began
        await ended
    return took


async def _reading(server: EmbeddedServer, ids: Sequence[str]) -> list[float]:
    """How long it takes to read a loop that nobody knows of."""
    took: list[float] = []
    async with await NatsJournal.open(server.options) as journal:
        for loop_id in ids:
            began = time.perf_counter()
            await journal.read(loop_id)
            took.append(time.perf_counter() - began)
    return took


async def _worker_memory(server: EmbeddedServer) -> int:
    """What a worker takes that has carried a loop or two on, where there are no others."""
    async with await NatsRuntime.open(server.options) as runtime:
        ids = await fill(runtime.journal, 2)
        async with children("bench.nats.worker", [_told(server)]) as (child,):
            child.tell("go")
            notices = await Notices.of(runtime)
            for loop_id in ids:
                await _resume(runtime, notices, loop_id)
            return resident_bytes(child.pid)


async def _caught_up(server: EmbeddedServer, runtime: NatsRuntime) -> None:
    """Have a worker write down what is kept beside the journals, as it would have while they were made."""
    connection = runtime.connection
    streams = [journal_stream(number) for number in range(runtime.journal.partitions)]
    async with children("bench.nats.worker", [_told(server)]) as (child,):
        child.tell("go")
        left = 1
        while left:
            await asyncio.sleep(_LOOK)
            left = 0
            for stream in streams:
                listed = await connection.patiently(partial(connection.js.consumers_info, stream))
                left += sum([one.num_pending + one.num_ack_pending for one in listed])


async def _over(runtime: NatsRuntime, ids: Sequence[str]) -> None:
    """Wait until loops are over, and look at what became of them."""
    for loop_id in ids:
        async with asyncio.timeout(_LONGEST):
            events = await runtime.journal.read(loop_id)
            while fold(events, loop_id).at != "done":
                await runtime.journal.wait(loop_id, len(events))
                events = await runtime.journal.read(loop_id)
        check(loop_id, events)


def _told(server: EmbeddedServer) -> dict[str, Any]:
    return {"options": msgspec.to_builtins(server.options), "serve": ["loop", "model", "tools"]}


def _quarters(ids: Sequence[str]) -> list[Sequence[str]]:
    step = max(len(ids) // 4, 1)
    return [ids[n : n + step] for n in range(0, len(ids), step)]
