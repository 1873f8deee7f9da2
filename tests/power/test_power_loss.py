"""Nodes lose their power in the middle of loops: what was acknowledged is there when they are back.

Root only: each node has a file system of its own, which is cut off (`bench.nats.power`).
"""

from __future__ import annotations

from pathlib import Path

import pytest
from bench.nats.nodes import all_ready, nodes
from bench.nats.power import disks, lose_power, why_not
from bench.nats.soak.work import PROMPT, Notes, make_agent

from flyball.core.events import Event
from flyball.runtime.nats import NatsJournal, NatsRuntime
from tests.runtime.nats.cluster_world import World, world

LOOPS = [f"loop-{n}" for n in range(20)]


@pytest.fixture(autouse=True)
def _power_can_be_lost() -> None:  # pyright: ignore[reportUnusedFunction]
    if why := why_not():
        pytest.skip(why)


async def test_all_nodes_lose_their_power_at_once_and_then_one_alone(tmp_path: Path) -> None:
    with disks(3) as drives:
        async with world(tmp_path, [drive.folder for drive in drives]) as now:
            for chosen in (range(3), range(1)):
                before = await recorded(now)
                await lose_power([drives[number] for number in chosen])
                for number in chosen:
                    await now.cluster.nodes[number].kill()
                    drives[number].unmount()
                if len(chosen) < len(drives):
                    await now.load.goes_on()
                for number in chosen:
                    drives[number].mount()
                    await now.cluster.nodes[number].start()
                await all_ready(now.cluster.nodes)
                assert await recorded(now, list(before)) == before
                await now.load.goes_on()


async def recorded(now: World, loops: list[str] | None = None) -> dict[str, list[Event]]:
    """The events of loops, as a connection reads them that has seen nothing before; of all that are over."""
    names = list(now.load.over) if loops is None else loops
    async with await NatsRuntime.open(now.cluster.options) as runtime:
        return {name: await runtime.journal.read(name) for name in names}


async def test_with_the_servers_default_what_was_acknowledged_is_lost(tmp_path: Path) -> None:
    """Why `sync_interval: always` is asked for; and that power is really lost here."""
    with disks(3) as drives:
        stores = [drive.folder for drive in drives]
        async with nodes(tmp_path / "nodes", "default", 3, partitions=1, stores=stores) as cluster:
            async with await NatsJournal.open(cluster.options) as journal:
                events = await (await make_agent().run(PROMPT, deps=Notes(tmp_path / "notes"))).events()
                for name in LOOPS:
                    assert await journal.append(name, events, 0) == len(events)
            await lose_power(drives)
            for node, drive in zip(cluster.nodes, drives, strict=True):
                await node.kill()
                drive.unmount()
                drive.mount()
                await node.start()
            await all_ready(cluster.nodes)
            async with await NatsJournal.open(cluster.options) as journal:
                assert set(await journal.loops()) < set(LOOPS)
