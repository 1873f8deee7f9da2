"""Workers ask servers whether what is acknowledged is on disk, and do not start where it is not."""

from __future__ import annotations

from pathlib import Path

import pytest
from bench.nats.nodes import nodes
from msgspec.structs import replace

from flyball import Agent
from flyball.core.errors import UserError
from flyball.runtime.nats import Crew, NatsJournal, NatsOptions
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
        await check_synced(replace(options, synced=True))  # somebody vouches for it


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


async def test_what_cannot_be_seen_is_told() -> None:
    with logged("flyball.nats") as said:
        await check_synced(NatsOptions())
        await check_synced(NatsOptions(monitoring=("http://127.0.0.1:1",)))
    unknown, unreachable = said
    assert "name their monitoring addresses (--monitoring)" in unknown
    assert "whether http://127.0.0.1:1 has on disk what it acknowledges cannot be seen: " in unreachable


@pytest.mark.parametrize(
    "address", ["nats:4222", "", "http://", "http://ann:secret@127.0.0.1:8222", "ftp://a"]
)
def test_an_address_of_no_monitoring_is_refused(address: str) -> None:
    with pytest.raises(UserError, match="it is an address such as"):
        NatsOptions(monitoring=(address,))
