"""flyball: many loops at once, carried on by worker processes, in journal events a second from end to end.

The loops are asked for before any worker is there, as the floor's messages are there before it begins. The
clock runs from the word to begin until the last loop has ended, as the server tells of it. Afterwards every
journal is read and folded: a loop that did not come to its answer, or whose tools did not run, voids it all.
"""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from bench.nats.children import children
from bench.nats.usage import Cores, Meter
from bench.nats.work import PROMPT, check, make_agent
from flyball.core.events import VERSION, Started
from flyball.core.ids import new_id
from flyball.core.messages import user
from flyball.runtime.nats import EmbeddedServer, NatsRuntime
from flyball.runtime.nats.naming import journal_stream, noticed_subjects
from flyball.runtime.nats.wire import AGENT

_LONGEST = 300.0


class Speed(NamedTuple):
    """What the workers did: journal events and appends, messages on the wire, and the time it took."""

    loops: int
    events: int
    appends: int
    wire: int
    seconds: float
    cores: Cores

    @property
    def rate(self) -> float:
        """Events in a second."""
        return self.events / self.seconds


async def measure(server: EmbeddedServer, processes: int, loops: int, profile: Path | None = None) -> Speed:
    """Have loops carried on by so many processes, each of which serves everything.

    Raises:
        RuntimeError: a loop did not come to what it had to.
    """
    told: dict[str, Any] = {
        "options": msgspec.to_builtins(server.options),
        "serve": ["loop", "model", "tools"],
    }
    first = {**told, "profile": None if profile is None else str(profile)}
    async with await NatsRuntime.open(server.options) as runtime:
        ids = [new_id() for _ in range(loops)]
        await _ask_for(server, runtime, ids)
        appends, wire = await _appended(runtime), await _last(runtime, AGENT)
        async with children("bench.nats.worker", [first, *[told] * (processes - 1)]) as workers:
            ends = await _Ends.of(runtime, loops)
            meter = Meter([worker.pid for worker in workers], server.pid)
            began = time.perf_counter()
            for worker in workers:
                worker.tell("go")
            async with asyncio.timeout(_LONGEST):
                await ends.all.wait()
            took = time.perf_counter() - began
            cores = meter.cores(took)
        appends, wire = await _appended(runtime) - appends, await _last(runtime, AGENT) - wire
        events = 0
        for loop_id in ids:
            read = await runtime.journal.read(loop_id)
            check(loop_id, read)
            events += len(read)
    return Speed(loops, events, appends, wire + loops, took, cores)


async def _ask_for(server: EmbeddedServer, runtime: NatsRuntime, ids: list[str]) -> None:
    """Put the tasks on the wire; who asks for them goes away before a worker comes."""
    spec, before = make_agent().spec, await _last(runtime, AGENT)
    async with await NatsRuntime.open(server.options) as asker:
        asking = [
            asyncio.ensure_future(asker.begin(Started(time.time(), VERSION, loop_id, spec, user(PROMPT))))
            for loop_id in ids
        ]
        try:
            async with asyncio.timeout(_LONGEST):
                while await _last(runtime, AGENT) < before + len(ids):  # noqa: ASYNC110 - there is no bell
                    await asyncio.sleep(0.05)
        finally:
            for task in asking:
                task.cancel()
            await asyncio.gather(*asking, return_exceptions=True)


async def _appended(runtime: NatsRuntime) -> int:
    return sum([await _last(runtime, journal_stream(n)) for n in range(runtime.journal.partitions)])


async def _last(runtime: NatsRuntime, stream: str) -> int:
    connection = runtime.connection
    return (await connection.patiently(lambda: connection.js.stream_info(stream))).state.last_seq


class _Ends:
    """Counts the loops that end, as the server tells of it."""

    def __init__(self, loops: int) -> None:
        self.all = asyncio.Event()
        self._left = loops

    @classmethod
    async def of(cls, runtime: NatsRuntime, loops: int) -> _Ends:
        ends = cls(loops)
        for number in range(runtime.journal.partitions):
            await runtime.connection.subscribe(f"{noticed_subjects(number)[:-1]}*.ended", ends._ended)
        await runtime.connection.flush()
        return ends

    async def _ended(self, _: Any) -> None:
        self._left -= 1
        if not self._left:
            self.all.set()
