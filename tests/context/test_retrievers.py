"""Every retriever keeps the promises of all of them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from flyball.context.chunk import Chunk
from flyball.context.embedding_retriever import EmbeddingRetriever
from flyball.context.hybrid import HybridRetriever
from flyball.context.in_memory import InMemoryRetriever
from flyball.context.retriever import Retriever
from flyball.context.sqlite_retriever import SQLiteRetriever
from flyball.inference.hashed_embedder import HashedEmbedder
from flyball.orchestrate.reranking import RerankedRetriever
from flyball.rerank.keyword import KeywordScorer
from flyball.rerank.reranker import Reranker
from flyball.testing.conformance import RetrieverConformance


class TestInMemory(RetrieverConformance):
    async def make_retriever(self, chunks: Sequence[Chunk]) -> Retriever:
        return InMemoryRetriever(chunks)


class _InAFile(RetrieverConformance):
    @pytest.fixture(autouse=True)
    def _folder(self, tmp_path: Path) -> None:
        self.path = tmp_path / "deep" / "index.db"

    def opened(self) -> Any:
        raise NotImplementedError

    async def make_retriever(self, chunks: Sequence[Chunk]) -> Retriever:
        retriever = self.opened()
        await retriever.add(chunks)
        return retriever

    async def reopen(self, retriever: Retriever) -> Retriever | None:
        return self.opened()

    async def close_retriever(self, retriever: Any) -> None:
        retriever.close()


class TestSQLite(_InAFile):
    def opened(self) -> SQLiteRetriever:
        return SQLiteRetriever(self.path)


class TestEmbeddings(_InAFile):
    def opened(self) -> EmbeddingRetriever:
        return EmbeddingRetriever(HashedEmbedder(), self.path)


class TestEmbeddingsInMemory(RetrieverConformance):
    async def make_retriever(self, chunks: Sequence[Chunk]) -> Retriever:
        retriever = EmbeddingRetriever(HashedEmbedder())
        await retriever.add(chunks)
        return retriever

    async def close_retriever(self, retriever: Any) -> None:
        retriever.close()


class TestHybrid(RetrieverConformance):
    async def make_retriever(self, chunks: Sequence[Chunk]) -> Retriever:
        words = SQLiteRetriever()
        await words.add(chunks)
        return HybridRetriever(words, InMemoryRetriever(chunks))

    async def close_retriever(self, retriever: Any) -> None:
        retriever.retrievers[0].close()


class TestReranked(RetrieverConformance):
    async def make_retriever(self, chunks: Sequence[Chunk]) -> Retriever:
        return RerankedRetriever(InMemoryRetriever(chunks), Reranker(KeywordScorer()))
