"""Workers ask servers whether what is acknowledged is on disk, and do not start where it is not."""

from __future__ import annotations

from pathlib import Path

import pytest
from bench.nats.nodes import Nodes, nodes
from msgspec.structs import replace

from flyball import Agent
from flyball.core.errors import UserError
from flyball.runtime.nats import Crew, NatsJournal, NatsOptions
from flyball.runtime.nats.connection import connect
from flyball.runtime.nats.synced import check_synced
from flyball.testing import ScriptedEngine
from tests.inference.wrapped import logged


async def test_workers_do_not_start_where_a_server_says_that_it_syncs_later(tmp_path: Path) -> None:
    async with nodes(tmp_path / "late", "default", 1, 1) as servers:
        late = servers.nodes[0].monitor
        options = replace(servers.options, synced=False, monitoring=(late,))
        async with await NatsJournal.open(options) as journal:
            with pytest.raises(UserError, match=f"{late} acknowledges what is not on its disk .* always"):
                async with Crew(journal, [Agent(ScriptedEngine("never"))]):
                    pass
            journal.connection.options = replace(options, synced=True)
            await check_synced(journal.connection)  # somebody vouches for it


async def test_servers_that_sync_are_no_reason_to_say_anything(tmp_path: Path) -> None:
    async with nodes(tmp_path / "now", "always", 1, 1) as servers:
        options = replace(servers.options, synced=False, monitoring=(servers.nodes[0].monitor,))
        with logged("flyball.nats") as said:
            async with (
                await NatsJournal.open(options) as journal,
                Crew(journal, [Agent(ScriptedEngine("-"))]),
            ):
                pass
    assert not said


async def told(servers: Nodes, *monitoring: str) -> list[str]:
    """What is said as workers look whether servers sync, by such addresses."""
    connection = await connect(replace(servers.options, synced=False, monitoring=monitoring))
    try:
        with logged("flyball.nats") as said:
            await check_synced(connection)
    finally:
        await connection.aclose()
    return said


async def test_what_cannot_be_seen_is_told(tmp_path: Path) -> None:
    async with nodes(tmp_path / "now", "always", 1, 1) as servers:
        (unknown,) = await told(servers)
        unreachable, unseen = await told(servers, "http://127.0.0.1:1")
    assert "name their monitoring addresses (--monitoring)" in unknown
    assert "whether http://127.0.0.1:1 has on disk what it acknowledges cannot be seen: " in unreachable
    assert "whether the NATS servers n0, which are used here, have on disk" in unseen


async def test_the_monitoring_of_another_server_says_nothing_of_this_one(tmp_path: Path) -> None:
    async with (
        nodes(tmp_path / "ours", "always", 1, 1) as ours,
        nodes(tmp_path / "theirs", "always", 1, 1) as theirs,
    ):
        here, elsewhere = ours.nodes[0].monitor, theirs.nodes[0].monitor
        (unseen,) = await told(ours, elsewhere)
        assert not await told(ours, here)
    assert "whether the NATS servers n0, which are used here, have on disk" in unseen
    assert f"--monitoring names {elsewhere}, and that is none of theirs" in unseen


async def test_all_servers_of_a_cluster_have_to_be_seen(tmp_path: Path) -> None:
    """Also those that this one is not connected to: they keep copies."""
    async with nodes(tmp_path / "three", "always", 3, 1) as servers:
        addresses = [node.monitor for node in servers.nodes]
        assert not await told(servers, *addresses)
        (unseen,) = await told(servers, *addresses[:1])
    assert "whether the NATS servers n1, n2, which are used here, have on disk" in unseen


@pytest.mark.parametrize(
    "address", ["nats:4222", "", "http://", "http://ann:secret@127.0.0.1:8222", "ftp://a"]
)
def test_an_address_of_no_monitoring_is_refused(address: str) -> None:
    with pytest.raises(UserError, match="it is an address such as"):
        NatsOptions(monitoring=(address,))
