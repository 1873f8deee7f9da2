"""Each test of the suite catches a retriever that lies. Those that tell the truth are in tests/context."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any
from unittest import SkipTest

import pytest
from msgspec.structs import replace

from flyball.context.chunk import Chunk
from flyball.context.in_memory import InMemoryRetriever
from flyball.context.retriever import Index, Retriever
from flyball.testing.conformance import RetrieverConformance


class Backwards(InMemoryRetriever):
    async def retrieve(self, query: str, limit: int) -> list[Chunk]:
        return (await super().retrieve(query, limit))[::-1]


class WithoutScores(InMemoryRetriever):
    async def retrieve(self, query: str, limit: int) -> list[Chunk]:
        return [replace(chunk, score=0.0) for chunk in await super().retrieve(query, limit)]


class Unlimited(InMemoryRetriever):
    async def retrieve(self, query: str, limit: int) -> list[Chunk]:
        return await super().retrieve(query, 0)


class Literal(InMemoryRetriever):
    """Takes 0 at its word."""

    async def retrieve(self, query: str, limit: int) -> list[Chunk]:
        return (await super().retrieve(query, 0))[: max(limit, 0)]


class Changing(InMemoryRetriever):
    async def retrieve(self, query: str, limit: int) -> list[Chunk]:
        found = await super().retrieve(query, limit)
        self._kept = self._kept[1:]
        return found


class Doubling(InMemoryRetriever):
    async def retrieve(self, query: str, limit: int) -> list[Chunk]:
        found = await super().retrieve(query, limit)
        return [*found, *found]


class Brittle(InMemoryRetriever):
    async def retrieve(self, query: str, limit: int) -> list[Chunk]:
        query.encode("utf-8")
        return await super().retrieve(query, limit)


class Forgetful(InMemoryRetriever):
    async def retrieve(self, query: str, limit: int) -> list[Chunk]:
        return [replace(chunk, metadata={}) for chunk in await super().retrieve(query, limit)]


class Inventive(InMemoryRetriever):
    async def retrieve(self, query: str, limit: int) -> list[Chunk]:
        return await super().retrieve(query, limit) or [Chunk("something", "somewhere", 1.0)]


class NeverAdding(InMemoryRetriever):
    async def add(self, chunks: Iterable[Chunk]) -> None:
        del chunks


class Piling(InMemoryRetriever):
    async def replace(self, document: str, chunks: Iterable[Chunk]) -> None:
        await self.add(chunks)


class Careless(InMemoryRetriever):
    async def replace(self, document: str, chunks: Iterable[Chunk]) -> None:
        await self.remove(document)
        await self.add(chunks)


class NeverRemoving(InMemoryRetriever):
    async def remove(self, document: str) -> int:
        return 2


async def lies(kind: type[InMemoryRetriever], test: str) -> None:
    class Suite(RetrieverConformance):
        async def make_retriever(self, chunks: Sequence[Chunk]) -> Retriever:
            return kind(chunks)

    await getattr(Suite(), test)()


@pytest.mark.parametrize(
    ("kind", "test"),
    [
        (Backwards, "test_what_fits_best_comes_first"),
        (Forgetful, "test_what_fits_best_comes_first"),
        (WithoutScores, "test_scores_fall"),
        (Backwards, "test_scores_fall"),
        (Unlimited, "test_the_limit_is_kept_and_none_means_all"),
        (Literal, "test_the_limit_is_kept_and_none_means_all"),
        (Changing, "test_the_same_question_has_the_same_answer"),
        (Doubling, "test_no_chunk_comes_twice"),
        (Unlimited, "test_whatever_is_asked_does_no_harm"),
        (Inventive, "test_nothing_is_found_where_nothing_is"),
        (NeverAdding, "test_what_is_added_is_found"),
        (Piling, "test_a_document_is_replaced_whole"),
        (Careless, "test_a_chunk_of_another_document_is_refused"),
        (NeverRemoving, "test_a_document_is_removed"),
    ],
    ids=lambda value: value if isinstance(value, str) else value.__name__,
)
async def test_a_lie_is_caught(kind: type[InMemoryRetriever], test: str) -> None:
    with pytest.raises(AssertionError):
        await lies(kind, test)


async def test_a_question_that_breaks_it_is_caught() -> None:
    with pytest.raises(UnicodeEncodeError):
        await lies(Brittle, "test_whatever_is_asked_does_no_harm")


async def test_what_does_not_outlive_its_process_is_skipped_and_what_lies_about_it_is_caught() -> None:
    with pytest.raises(SkipTest, match="does not outlive"):
        await lies(InMemoryRetriever, "test_what_was_added_outlives_the_process")

    class Suite(RetrieverConformance):
        async def make_retriever(self, chunks: Sequence[Chunk]) -> Retriever:
            return InMemoryRetriever(chunks)

        async def reopen(self, retriever: Retriever) -> Retriever | None:
            return InMemoryRetriever()

    with pytest.raises((AssertionError, IndexError)):
        await Suite().test_what_was_added_outlives_the_process()


async def test_what_only_finds_is_not_asked_to_add() -> None:
    class Only:
        async def retrieve(self, query: str, limit: int) -> list[Chunk]:
            return []

    class Suite(RetrieverConformance):
        async def make_retriever(self, chunks: Sequence[Chunk]) -> Retriever:
            return Only()

    assert not isinstance(Only(), Index)
    with pytest.raises(SkipTest, match="is no Index"):
        await Suite().test_a_document_is_removed()
    hook: Any = RetrieverConformance()
    with pytest.raises(NotImplementedError):
        await hook.test_scores_fall()
