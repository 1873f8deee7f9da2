"""What every `Retriever` promises, as tests that a retriever's author can run.

    class TestMyRetriever(RetrieverConformance):
        async def make_retriever(self, chunks: Sequence[Chunk]) -> Retriever:
            return MyRetriever(chunks)

The methods are coroutines: run them with pytest-asyncio's auto mode, or with the marker of your runner. What
an `Index` promises is tested where the retriever is one, and skipped otherwise.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from math import inf
from unittest import SkipTest

from flyball.context.chunk import Chunk
from flyball.context.retriever import Index, Retriever
from flyball.core.errors import FlyballError, UserError

LIBRARY = Chunk("The library closes at nine.", "town.md#library", metadata={"document": "town.md"})
POOL = Chunk("The swimming pool is heated.", "town.md#pool", metadata={"document": "town.md", "page": 3})
BAKERY = Chunk("The bakery sells bread and pretzels.", "shops.md")
CHUNKS = (LIBRARY, POOL, BAKERY)

ODD_QUERIES = (
    "",
    " ",
    "?!",
    '"',
    "'; DROP TABLE chunk; --",
    "library* NEAR(pool) -bakery ^title: {",
    "nul\0byte",
    "lone \ud800 surrogate",
    "漢字 🎛️",
    "%s {0}",
    "word " * 2_000,
)
"""Questions that an implementation may stumble over."""


class RetrieverConformance:
    """The promises of `Retriever` and `Index`. Subclass it, name it `Test…`, and give it `make_retriever`."""

    async def make_retriever(self, chunks: Sequence[Chunk]) -> Retriever:
        """A retriever that has these chunks and no others. Every test makes its own."""
        raise NotImplementedError("RetrieverConformance needs make_retriever(chunks)")

    async def reopen(self, retriever: Retriever) -> Retriever | None:
        """The same as another process would open it, or None if it does not outlive its process."""
        del retriever
        return None

    async def close_retriever(self, retriever: Retriever) -> None:
        """Let go of a retriever that `make_retriever` or `reopen` gave."""
        del retriever

    @asynccontextmanager
    async def retriever(self, *chunks: Chunk) -> AsyncGenerator[Retriever]:
        """A retriever for a block, closed after it."""
        made = await self.make_retriever(chunks)
        try:
            yield made
        finally:
            await self.close_retriever(made)

    @asynccontextmanager
    async def index(self, *chunks: Chunk) -> AsyncGenerator[Index]:
        """The same, if chunks can be added to it."""
        async with self.retriever(*chunks) as made:
            if not isinstance(made, Index):
                raise SkipTest(f"{made!r} is no Index: nothing can be added to it")
            yield made

    async def test_what_fits_best_comes_first(self) -> None:
        """A question in a chunk's own words finds it before others that have one of them."""
        async with self.retriever(*CHUNKS) as retriever:
            for chunk in CHUNKS:
                found = await retriever.retrieve(f"{chunk.content} library, pool, bakery", 0)
                assert len(found) == len(CHUNKS), f"{len(found)} of {len(CHUNKS)} were found"
                best = found[0]
                assert (best.content, best.source) == (chunk.content, chunk.source), f"{best} came first"
                kept = {**best.metadata, **chunk.metadata} == best.metadata
                assert kept, f"the metadata became {best.metadata}"

    async def test_scores_fall(self) -> None:
        """The order is that of the scores, which are numbers."""
        async with self.retriever(*CHUNKS) as retriever:
            scores = [chunk.score for chunk in await retriever.retrieve("library bread swimming pool", 0)]
            assert scores == sorted(scores, reverse=True), f"the scores are {scores}"
            assert all(0 < score < inf for score in scores), f"the scores are {scores}"

    async def test_the_limit_is_kept_and_none_means_all(self) -> None:
        """A limit bounds what is given, and takes from the end; 0 and less are no limit."""
        query = "The library, the swimming pool, the bakery"
        async with self.retriever(*CHUNKS) as retriever:
            everything = await retriever.retrieve(query, 0)
            assert len(everything) == len(CHUNKS), f"{len(everything)} of {len(CHUNKS)} were found"
            assert await retriever.retrieve(query, -1) == everything, "-1 is no limit either"
            for limit in range(1, len(CHUNKS) + 2):
                found = await retriever.retrieve(query, limit)
                assert found == everything[:limit], f"the limit {limit} gave {found}"

    async def test_the_same_question_has_the_same_answer(self) -> None:
        """Asking changes nothing, also asking much at once."""
        async with self.retriever(*CHUNKS) as retriever:
            first = await retriever.retrieve("heated library", 2)
            again = await asyncio.gather(*[retriever.retrieve("heated library", 2) for _ in range(8)])
            assert all(found == first for found in again), "the same question gave different answers"

    async def test_no_chunk_comes_twice(self) -> None:
        """What it was given twice is found once."""
        async with self.retriever(*CHUNKS, LIBRARY) as retriever:
            found = await retriever.retrieve(LIBRARY.content, 0)
            keys = [chunk.key for chunk in found]
            assert len(set(keys)) == len(keys), f"there are doubles in {found}"

    async def test_whatever_is_asked_does_no_harm(self) -> None:
        """Any text is a question: it is answered, or refused with a FlyballError; then all is as before."""
        async with self.retriever(*CHUNKS) as retriever:
            for query in ODD_QUERIES:
                try:
                    found = await retriever.retrieve(query, 2)
                except FlyballError:
                    continue
                assert len(found) <= 2, f"{query[:40]!r} gave {len(found)} chunks"
            assert (await retriever.retrieve(LIBRARY.content, 1))[0].source == LIBRARY.source

    async def test_nothing_is_found_where_nothing_is(self) -> None:
        """An empty retriever finds nothing."""
        async with self.retriever() as retriever:
            assert await retriever.retrieve(LIBRARY.content, 5) == []

    async def test_what_is_added_is_found(self) -> None:
        """`add` adds, and adding the same again changes nothing."""
        async with self.index(LIBRARY) as index:
            await index.add([BAKERY, BAKERY])
            await index.add([LIBRARY])
            assert await index.documents() == ["shops.md", "town.md"]
            found = await index.retrieve(BAKERY.content, 0)
            assert found[0].source == BAKERY.source
            assert len([chunk for chunk in found if chunk.source == BAKERY.source]) == 1

    async def test_a_document_is_replaced_whole(self) -> None:
        """`replace` leaves nothing of what a document had, and touches no other."""
        async with self.index(*CHUNKS) as index:
            new = Chunk("The museum is free.", "town.md#museum", metadata={"document": "town.md"})
            await index.replace("town.md", [new])
            assert [chunk.source for chunk in await index.retrieve(new.content, 1)] == [new.source]
            left = await index.retrieve(f"{LIBRARY.content} {POOL.content}", 0)
            assert not {LIBRARY.source, POOL.source} & {chunk.source for chunk in left}, f"there is {left}"
            assert await index.documents() == ["shops.md", "town.md"]
            await index.replace("town.md", [])
            assert await index.documents() == ["shops.md"]

    async def test_a_chunk_of_another_document_is_refused(self) -> None:
        """`replace` takes a document's own chunks; what it refuses changes nothing."""
        async with self.index(*CHUNKS) as index:
            try:
                await index.replace("town.md", [BAKERY])
            except UserError:
                pass
            else:
                raise AssertionError("a chunk of shops.md was taken for one of town.md")
            assert (await index.retrieve(LIBRARY.content, 1))[0].source == LIBRARY.source

    async def test_a_document_is_removed(self) -> None:
        """`remove` says how many chunks there were, and they are not found again."""
        async with self.index(*CHUNKS) as index:
            assert await index.remove("town.md") == 2
            assert await index.remove("town.md") == 0
            assert await index.documents() == ["shops.md"]
            assert LIBRARY.source not in [chunk.source for chunk in await index.retrieve(LIBRARY.content, 0)]

    async def test_what_was_added_outlives_the_process(self) -> None:
        """Whoever opens it anew finds what was added and removed before."""
        async with self.index(*CHUNKS) as index:
            await index.remove("shops.md")
            again = await self.reopen(index)
            if again is None:
                raise SkipTest("it does not outlive its process: reopen() gives None")
            try:
                assert (await again.retrieve(POOL.content, 1))[0].metadata == POOL.metadata
                assert isinstance(again, Index)
                assert await again.documents() == ["town.md"]
                await again.add([BAKERY])  # and the first finds what the other adds
                assert (await index.retrieve(BAKERY.content, 1))[0].source == BAKERY.source
            finally:
                await self.close_retriever(again)
