"""Where retrieval and reranking meet."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flyball.context.builder import ContextBuilder
from flyball.context.chunk import Chunk
from flyball.context.in_memory import InMemoryRetriever
from flyball.core.errors import UserError
from flyball.orchestrate.reranking import RerankedRetriever, candidate_of, chunk_of
from flyball.rerank.candidate import RETRIEVAL_SCORE, Candidate
from flyball.rerank.keyword import KeywordScorer
from flyball.rerank.reranker import Reranker

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(), lambda inner: st.lists(inner, max_size=3)
)
METADATA = st.dictionaries(st.text(), JSON, max_size=3)


@given(st.builds(Chunk, st.text(), st.text(), st.floats(allow_nan=False), METADATA))
def test_a_chunk_comes_back_as_it_was(chunk: Chunk) -> None:
    assert chunk_of(candidate_of(chunk)) == chunk


@given(st.builds(Candidate, st.text(), st.floats(allow_nan=False), st.text(), METADATA))
def test_a_candidate_comes_back_as_it_was(candidate: Candidate) -> None:
    assert candidate_of(chunk_of(candidate)) == candidate


class Asked(InMemoryRetriever):
    limits: list[int]

    async def retrieve(self, query: str, limit: int) -> list[Chunk]:
        self.limits = [*getattr(self, "limits", []), limit]
        return await super().retrieve(query, limit)


async def test_more_is_found_than_is_wanted_and_the_best_are_given() -> None:
    chunks = [Chunk("library " + "word " * number, f"{number}.md") for number in range(5)]
    chunks.append(Chunk("When the library closes", "best.md"))
    retriever = Asked(chunks)
    best = RerankedRetriever(retriever, Reranker(KeywordScorer(), min_score=0.6), fetch=10)
    (found,) = await best.retrieve("library closes", 1)
    assert (found.source, found.score) == ("best.md", 1.0)
    assert found.metadata[RETRIEVAL_SCORE] == 1.0
    assert [chunk.source for chunk in await best.retrieve("library closes", 0)] == ["best.md"]
    await best.retrieve("library", 30)
    assert retriever.limits == [10, 0, 30]
    (message,) = await ContextBuilder(best, 1).build("library closes")
    assert message.text == "Relevant context:\n\n[1] (best.md): When the library closes"


@pytest.mark.parametrize(
    ("retriever", "reranker", "fetch"),
    [
        ("x", Reranker(KeywordScorer()), 1),
        (Asked(), KeywordScorer(), 1),
        (Asked(), Reranker(KeywordScorer()), 0),
    ],
    ids=str,
)
def test_what_cannot_be(retriever: Any, reranker: Any, fetch: int) -> None:
    with pytest.raises(UserError):
        RerankedRetriever(retriever, reranker, fetch=fetch)
    assert "RerankedRetriever(InMemory" in repr(RerankedRetriever(Asked(), Reranker(KeywordScorer())))
