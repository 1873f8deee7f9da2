"""Several retrievers' findings as one list."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flyball.context.chunk import Chunk
from flyball.context.hybrid import HybridRetriever, fused
from flyball.core.errors import EngineError, UserError

A, B, C = (Chunk(name, f"{name}.md", 7.0) for name in "abc")
rankings = st.lists(st.lists(st.sampled_from([A, B, C, Chunk("d", "d.md")]), max_size=6), max_size=4)


class Fixed:
    def __init__(self, *found: Chunk) -> None:
        self.found = found
        self.limits: list[int] = []

    async def retrieve(self, query: str, limit: int) -> list[Chunk]:
        self.limits.append(limit)
        return list(self.found[: limit or None])


async def test_what_several_find_comes_first() -> None:
    one, other = Fixed(A, B), Fixed(B, C)
    found = await HybridRetriever(one, other).retrieve("?", 2)
    assert [chunk.source for chunk in found] == ["b.md", "a.md"]
    assert found[0].score == pytest.approx(1 / 62 + 1 / 61)
    assert found[1].score == pytest.approx(1 / 61)
    assert one.limits == other.limits == [50], "what stands further down may be far up with the other"
    assert len(await HybridRetriever(one, other).retrieve("?", 0)) == 3
    assert one.limits == [50, 0]


@given(rankings, st.integers(0, 100))
def test_fusion_keeps_each_chunk_once_and_falls(given: list[list[Chunk]], k: int) -> None:
    found = fused(given, k)
    assert {chunk.key for chunk in found} == {chunk.key for ranking in given for chunk in ranking}
    assert len({chunk.key for chunk in found}) == len(found)
    scores = [chunk.score for chunk in found]
    assert scores == sorted(scores, reverse=True)
    assert fused([*given, []], k) == found


@given(st.lists(st.sampled_from([A, B, C]), unique_by=lambda chunk: chunk.key))
def test_one_ranking_keeps_its_order(ranking: list[Chunk]) -> None:
    assert [chunk.key for chunk in fused([ranking])] == [chunk.key for chunk in ranking]


async def test_if_one_fails_the_others_are_cancelled_and_its_error_is_raised() -> None:
    cancelled = asyncio.Event()
    failure = EngineError("no model")

    class Waiting:
        async def retrieve(self, query: str, limit: int) -> list[Chunk]:
            try:
                await asyncio.Event().wait()
            finally:
                cancelled.set()
            return []

    class Failing:
        async def retrieve(self, query: str, limit: int) -> list[Chunk]:
            await asyncio.sleep(0)
            raise failure

    with pytest.raises(EngineError) as caught:
        await HybridRetriever(Waiting(), Failing()).retrieve("?", 1)
    assert caught.value is failure
    assert cancelled.is_set()


@pytest.mark.parametrize(
    ("retrievers", "options"),
    [((), {}), ((Fixed(),), {"k": -1}), ((Fixed(),), {"depth": 0})],
    ids=["none", "k", "depth"],
)
def test_what_cannot_be(retrievers: Any, options: dict[str, Any]) -> None:
    with pytest.raises(UserError):
        HybridRetriever(*retrievers, **options)
    assert repr(HybridRetriever(Fixed())).startswith("HybridRetriever(")
