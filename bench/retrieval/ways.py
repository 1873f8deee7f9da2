"""The ways to retrieve that are measured, from the simplest on."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from pathlib import Path

from flyball.context.chunking import Loaded
from flyball.context.embedding_retriever import EmbeddingRetriever
from flyball.context.hybrid import HybridRetriever
from flyball.context.in_memory import InMemoryRetriever
from flyball.context.refreshing import refresh_index
from flyball.context.retriever import Retriever
from flyball.context.sqlite_retriever import SQLiteRetriever
from flyball.inference.embedder import Embedder
from flyball.inference.engine import Engine
from flyball.inference.hashed_embedder import HashedEmbedder
from flyball.orchestrate.reranking import RerankedRetriever
from flyball.rerank.embedding import EmbeddingScorer
from flyball.rerank.keyword import KeywordScorer
from flyball.rerank.model import ModelScorer
from flyball.rerank.reranker import Reranker

FETCH = 20
"""How many chunks a reranker puts in order."""


async def ways_without(loaded: Loaded) -> AsyncGenerator[tuple[str, Retriever]]:
    """What needs no model."""
    yield "keyword", InMemoryRetriever(loaded.chunks)
    hashed = HashedEmbedder()
    with SQLiteRetriever() as words, EmbeddingRetriever(hashed) as vectors:
        await words.add(loaded.chunks)
        yield "fts5", words
        await vectors.add(loaded.chunks)
        yield "embeddings, hashed", vectors
        hybrid = HybridRetriever(words, vectors)
        yield "hybrid (fts5, hashed)", hybrid
        for name, scorer in (("keyword", KeywordScorer()), ("hashed", EmbeddingScorer(hashed))):
            yield f"hybrid, reranked by {name}", RerankedRetriever(hybrid, Reranker(scorer), fetch=FETCH)


async def ways_with(
    loaded: Loaded, name: str, embedder: Embedder, judge: Engine | None, vectors: Path
) -> AsyncGenerator[tuple[str, Retriever]]:
    """What needs a model; its vectors are kept in a file, so that they are made once."""
    with SQLiteRetriever() as words, EmbeddingRetriever(embedder, vectors) as near:
        await words.add(loaded.chunks)
        await refresh_index(near, loaded)
        yield f"embeddings, {name}", near
        hybrid = HybridRetriever(words, near)
        yield f"hybrid (fts5, {name})", hybrid
        if judge is not None:
            scored, judged = Reranker(EmbeddingScorer(embedder)), Reranker(ModelScorer(judge))
            yield f"hybrid, reranked by {name}'s embeddings", RerankedRetriever(hybrid, scored, fetch=FETCH)
            yield f"hybrid, reranked by asking {name}", RerankedRetriever(hybrid, judged, fetch=FETCH)
