"""A catalogue of loops on a real server."""

from __future__ import annotations

from msgspec.structs import replace

from flyball.orchestrate.catalogue import Catalogue, LoopQuery
from flyball.orchestrate.catalogue.query import matcher
from flyball.runtime.nats import NatsJournal, NatsOptions
from tests.orchestrate.catalogue.filled import QUERIES, all_found, begun, fill, summaries


async def test_finding_is_filtering_all_summaries(journal: NatsJournal) -> None:
    await fill(journal)
    catalogue, every = Catalogue(journal), await summaries(journal)
    for query in QUERIES:
        found = await all_found(catalogue, replace(query, limit=3))
        assert found == [one for one in every if matcher(query)(one)], query


async def test_what_others_begin_meanwhile_comes_first_and_nothing_comes_twice(
    nats: NatsOptions, journal: NatsJournal
) -> None:
    for n in range(6):
        await journal.append(f"old {n}", [begun(f"old {n}")], 0)
    catalogue = Catalogue(journal)
    page = await catalogue.find(LoopQuery(limit=2))
    async with await NatsJournal.open(nats) as other:
        for n in range(5):
            await other.append(f"new {n}", [begun(f"new {n}")], 0)
        assert await other.loops() == await journal.loops()
    found = [*page.loops, *await all_found(catalogue, LoopQuery(limit=2, cursor=page.next))]
    assert [one.loop_id for one in found] == [f"old {n}" for n in reversed(range(6))]
    assert (await catalogue.find(LoopQuery(limit=1))).loops[0].loop_id == "new 4"
