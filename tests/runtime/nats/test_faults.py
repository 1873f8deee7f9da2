"""A line that goes wrong at every moment of a history, in every way: the history comes out the same."""

from __future__ import annotations

import asyncio

import msgspec
import pytest

from flyball.runtime.nats import NatsJournal, NatsOptions, connection
from flyball.testing.conformance.samples import numbered
from tests.patience import PATIENCE
from tests.runtime.nats.proxy import Fault, Proxy, Way, proxied


async def history(journal: NatsJournal, loop_id: str) -> None:
    """A few appends, with a wait and a read between them."""
    await journal.append(loop_id, numbered(1), 0)
    await journal.append(loop_id, numbered(2, 1), 1)
    assert await journal.wait(loop_id, 2)
    assert await journal.read(loop_id) == numbered(3)
    await journal.append(loop_id, numbered(1, 3), 3)


async def pieces_of(proxy: Proxy, journal: NatsJournal, way: Way) -> int:
    """How many pieces a history takes when nothing goes wrong."""
    proxy.plan(way, 0, "cut")
    await history(journal, "calm")
    return proxy.pieces[way]


@pytest.mark.parametrize("way", ["up", "down"])
@pytest.mark.parametrize("fault", ["cut", "cut after", "swallow", "half-close"])
async def test_every_history_comes_out_the_same(
    nats: NatsOptions, journal: NatsJournal, way: Way, fault: Fault, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A line that swallows is only noticed by waiting: not for as long as in life.
    monkeypatch.setattr(connection, "_ATTEMPT", 0.2)
    monkeypatch.setattr("flyball.runtime.nats.fetching._ATTEMPT", 0.2)
    async with proxied(nats.servers[0]) as (proxy, url):
        calm = msgspec.structs.replace(nats, servers=(url,))
        async with await NatsJournal.open(calm) as through:
            count = await pieces_of(proxy, through, way)
        options, struck = msgspec.structs.replace(calm, ping_interval=0.2), 0
        for at in range(1, count + 1):
            loop_id = f"{way}-{at}"
            async with await NatsJournal.open(options) as through:
                proxy.plan(way, at, fault)
                async with asyncio.timeout(PATIENCE):
                    await history(through, loop_id)
                assert await journal.read(loop_id) == numbered(4), f"at piece {at}"
                struck += proxy.struck
    # How bytes come in pieces is up to the system: a history may take fewer than the calm one did.
    assert struck > 5
