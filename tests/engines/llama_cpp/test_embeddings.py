"""The embedded engine is an embedder: retrievers and scorers take it as it is."""

from __future__ import annotations

from pathlib import Path

import pytest

from flyball.context.chunk import Chunk
from flyball.context.embedding_retriever import EmbeddingRetriever
from flyball.core.errors import ModelRequestsForbidden
from flyball.engines.llama_cpp import LlamaCppEngine
from flyball.inference.embedder import Embedder, embedded, embedder_name
from flyball.inference.permission import forbid_model_requests
from flyball.models import SMALL
from flyball.rerank.candidate import Candidate
from flyball.rerank.embedding import EmbeddingScorer
from flyball.rerank.model import ModelScorer
from flyball.rerank.reranker import Reranker

CHUNKS = [Chunk("The library closes at nine.", "town.md"), Chunk("Bread is made of flour.", "bread.md")]


async def test_it_embeds_for_a_retriever(engine: LlamaCppEngine, tmp_path: Path) -> None:
    assert isinstance(engine, Embedder)
    assert embedder_name(engine) == SMALL.name
    with EmbeddingRetriever(engine, tmp_path / "vectors.db") as index:
        await index.add(CHUNKS)
        found = await index.retrieve("When does the library close?", 0)
        assert {chunk.source for chunk in found} == {"town.md", "bread.md"}
        assert all(0.0 < chunk.score <= 1.0 for chunk in found)
    with forbid_model_requests(), EmbeddingRetriever(engine, tmp_path / "vectors.db") as index:
        await index.add(CHUNKS)  # they are known: nobody is asked
        with pytest.raises(ModelRequestsForbidden):
            await index.retrieve("When does the library close?", 0)


async def test_it_embeds_for_a_scorer(engine: LlamaCppEngine) -> None:
    (vector,) = await embedded(engine, ["tea"])
    assert sum(number * number for number in vector) == pytest.approx(1.0)
    same, _ = await EmbeddingScorer(engine).score(
        CHUNKS[0].content, [Candidate(chunk.content) for chunk in CHUNKS]
    )
    assert same == pytest.approx(1.0, abs=0.01)


async def test_it_judges_under_a_grammar(engine: LlamaCppEngine) -> None:
    given = [Candidate(chunk.content, 1.0, chunk.source) for chunk in CHUNKS]
    found = await Reranker(ModelScorer(engine)).rerank("When does the library close?", given)
    assert {one.source for one in found} == {"town.md", "bread.md"}
    assert all(one.score * 10 in range(11) for one in found)
