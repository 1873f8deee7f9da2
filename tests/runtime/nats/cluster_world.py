"""Three nodes that keep three copies of everything, and loops under way there until all is judged."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path

import msgspec
from bench.nats.nodes import Node, Nodes, all_ready, nodes
from bench.nats.soak.verdict import judge
from bench.nats.soak.work import ANSWER, PROMPT, Notes, make_agent
from nats.errors import TimeoutError as NoAnswer
from nats.js.errors import APIError

from flyball.runtime.nats import Crew, NatsJournal, NatsRuntime
from flyball.runtime.nats.crew import let_go
from flyball.runtime.nats.naming import journal_stream
from tests.patience import PATIENCE

CALLERS = 6
NO_MAJORITY = 10008
"""What JetStream says where too many nodes are down."""


class Load:
    """Callers who ask for one loop after the other; all of it in this process."""

    def __init__(self, runtime: NatsRuntime) -> None:
        self.runtime = runtime
        self.asked: list[str] = []
        self.over: list[str] = []
        self._agent = make_agent()
        self._numbers = count()
        self._going_on = True
        self.callers = [asyncio.create_task(self._call()) for _ in range(CALLERS)]

    async def _call(self) -> None:
        while self._going_on:
            await self.ask()

    async def ask(self) -> None:
        """Ask for one loop, and wait for it."""
        self.asked.append(loop_id := f"loop-{next(self._numbers)}")
        result = await self._agent.run(PROMPT, runtime=self.runtime, loop_id=loop_id)
        assert result.output == ANSWER
        self.over.append(loop_id)

    async def goes_on(self, loops: int = CALLERS) -> None:
        """Wait until so many more have come to their ends than there are now: one of each caller at least."""
        enough = len(self.over) + loops
        async with asyncio.timeout(PATIENCE):
            while len(self.over) < enough:
                await asyncio.sleep(0.02)
                for caller in self.callers:
                    if caller.done():
                        caller.result()

    async def stop(self) -> None:
        """No more are begun; those that were come to their ends."""
        self._going_on = False
        async with asyncio.timeout(PATIENCE):
            await asyncio.gather(*self.callers)


class World(msgspec.Struct):
    """A cluster with loops under way."""

    cluster: Nodes
    load: Load

    async def restart(self, node: Node, how: signal.Signals) -> None:
        """Have a node down until loops have gone on without it, and then back, with all that it missed."""
        await node.end(how)
        await self.load.goes_on()
        await node.start()
        await all_ready(self.cluster.nodes)

    async def leader(self, stream: str) -> Node:
        """The node that leads a stream, once one does."""
        connection = self.load.runtime.connection
        async with asyncio.timeout(PATIENCE):
            while True:
                info = await connection.patiently(lambda: connection.js.stream_info(stream))
                if info.cluster.leader:
                    return self.cluster.named(info.cluster.leader)
                await asyncio.sleep(0.05)

    async def led_by(self, node: Node, stream: str) -> None:
        """Have a stream led by a node."""
        ask = msgspec.json.encode({"placement": {"preferred": node.name}})
        async with asyncio.timeout(PATIENCE):
            while await self.leader(stream) is not node:
                await self.load.runtime.connection.request(f"$JS.API.STREAM.LEADER.STEPDOWN.{stream}", ask)

    async def has_no_majority(self) -> None:
        """Wait until the cluster has noticed it: then it says so, where it said nothing before."""
        js = self.load.runtime.connection.js
        async with asyncio.timeout(PATIENCE):
            while True:
                try:
                    await js.get_msg(journal_stream(0), seq=1)
                except APIError as error:
                    if error.err_code == NO_MAJORITY:
                        return
                except NoAnswer:
                    continue
                await asyncio.sleep(0.1)


@asynccontextmanager
async def world(folder: Path, stores: Sequence[Path] | None = None) -> AsyncGenerator[World]:
    """Loops under way inside the block; at its end all is judged. `stores`: where nodes keep their data."""
    notes = folder / "notes"
    async with nodes(folder / "nodes", "always", 3, partitions=1, stores=stores) as cluster:
        options = msgspec.structs.replace(cluster.options, patience=PATIENCE)
        async with (
            await NatsJournal.open(options) as journal,
            Crew(journal, [make_agent()], deps=Notes(notes), hold=2.0),
            await NatsRuntime.open(options) as runtime,
        ):
            load = Load(runtime)
            try:
                await load.goes_on()
                yield World(cluster, load)
                await load.stop()
            finally:
                await let_go(load.callers)
        verdict = await judge(options, load.asked, notes)
    assert verdict.broken == []
    assert verdict.loops == len(load.over) == len(load.asked)
