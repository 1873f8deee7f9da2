"""Three nodes that keep three copies of everything: some go, and come back, while loops are under way.

Whatever goes, all loops come to their ends, callers are told of nothing, and the journals are as they have to
be: `bench.nats.soak.verdict` looks at them as `make soak` does.
"""

from __future__ import annotations

import asyncio
import signal
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
from bench.nats.nodes import nodes
from msgspec.structs import replace

from flyball import Agent
from flyball.core.errors import UserError
from flyball.runtime.nats import NatsRuntime
from flyball.runtime.nats.naming import journal_stream
from flyball.runtime.nats.wire import AGENT
from flyball.testing import ScriptedEngine
from tests.patience import PATIENCE
from tests.runtime.nats.cluster_world import world

pytestmark = pytest.mark.slow
WRITERS = 4


async def test_a_node_that_was_killed_catches_up_and_another_may_go(tmp_path: Path) -> None:
    """What the first has missed, it has when it is back: while the second is down, it is needed."""
    async with world(tmp_path) as now:
        for node in now.cluster.nodes[:2]:
            await now.restart(node, signal.SIGKILL)
        await now.load.goes_on()


async def test_nodes_are_restarted_one_after_the_other(tmp_path: Path) -> None:
    """As they are when they are brought up to date: told to end, or to send their clients away first."""
    async with world(tmp_path) as now:
        for node, how in zip(
            now.cluster.nodes, (signal.SIGTERM, signal.SIGUSR2, signal.SIGTERM), strict=True
        ):
            await now.restart(node, how)
        await now.load.goes_on()


async def test_the_leader_of_everything_is_killed(tmp_path: Path) -> None:
    async with world(tmp_path) as now:
        doomed = await now.cluster.meta_leader()
        for stream in (journal_stream(0), AGENT):
            await now.led_by(doomed, stream)
        await doomed.kill()
        await now.load.goes_on()
        for stream in (journal_stream(0), AGENT):
            assert await now.leader(stream) is not doomed
        assert await now.cluster.meta_leader() is not doomed


async def test_with_two_nodes_down_everybody_waits_until_they_are_back(tmp_path: Path) -> None:
    async with world(tmp_path) as now:
        left, *gone = now.cluster.nodes
        for node in gone:
            await node.kill()
        await now.has_no_majority()
        before = len(now.load.over)
        new = asyncio.create_task(now.load.ask())
        await now.has_no_majority()  # asked after them, answered after them
        assert not new.done()
        assert len(now.load.over) == before
        for node in gone:
            await node.start()
        await now.load.goes_on()
        async with asyncio.timeout(PATIENCE):
            await new
        assert left.pid is not None


async def test_streams_are_made_when_the_nodes_that_they_need_have_come_up(tmp_path: Path) -> None:
    """Whoever comes first may come before them: a cluster has no place on those that it has not heard of."""
    async with nodes(tmp_path / "nodes", "always", 3, partitions=1) as cluster, asyncio.timeout(PATIENCE):
        for node in cluster.nodes:
            await node.kill()
        late, *there = cluster.nodes
        for node in there:
            await node.start()
        await cluster.meta_leader()
        with pytest.raises(UserError, match=r"does not make the stream JOURNAL_0: no suitable peers"):
            await NatsRuntime.open(replace(cluster.options, patience=1))
        opening = asyncio.create_task(NatsRuntime.open(cluster.options))
        await late.start()
        async with await opening as runtime:
            assert runtime.journal.layout.replicas == 3


async def test_of_several_who_write_at_the_same_time_one_wins(tmp_path: Path) -> None:
    """Where something else is on its way, a cluster says so: that is not its last word."""
    result = await Agent(ScriptedEngine("Hello."), name="greeter").run("?", loop_id="any")
    events = await result.events()
    async with nodes(tmp_path / "nodes", "always", 3, partitions=1) as cluster, AsyncExitStack() as stack:
        opened = [
            await stack.enter_async_context(await NatsRuntime.open(cluster.options)) for _ in range(WRITERS)
        ]
        for number in range(20):
            appends = [one.journal.append(f"loop-{number}", events, 0) for one in opened]
            taken = await asyncio.gather(*appends, return_exceptions=True)
            assert sorted([type(one).__name__ for one in taken]) == ["JournalConflict"] * (WRITERS - 1) + [
                "int"
            ]
            claims = await asyncio.gather(*[one.bus.claim(f"call-{number}") for one in opened])
            assert sorted(claims) == [False] * (WRITERS - 1) + [True]
