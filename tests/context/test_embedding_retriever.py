"""Chunks by their vectors: embedded once, kept in a file, never mixed with another embedder's."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from flyball.context.chunk import Chunk
from flyball.context.embedding_retriever import EmbeddingRetriever
from flyball.context.sqlite_retriever import SQLiteRetriever
from flyball.core.errors import EngineError, KnowledgeFailed, UnexpectedModelBehavior, UserError
from flyball.inference.hashed_embedder import HashedEmbedder

TEA, BREAD = Chunk("Tea is served at four.", "tea.md"), Chunk("Bread is sold at nine.", "bread.md")


class Counting(HashedEmbedder):
    """Says what it was asked for."""

    def __init__(self, size: int = 64, name: str = "counting") -> None:
        super().__init__(size)
        self.name = name
        self.asked: list[str] = []

    async def embed(self, texts: Sequence[str]) -> list[list[float]]:
        self.asked += texts
        return await super().embed(texts)


async def test_a_text_is_embedded_once(tmp_path: Path) -> None:
    path = tmp_path / "vectors.db"
    embedder = Counting()
    with EmbeddingRetriever(embedder, path, batch=1) as index:
        await index.add([TEA, BREAD])
        await index.add([TEA])
        await index.replace("tea.md", [TEA, Chunk("New.", "tea.md")])
        assert embedder.asked == [f"{one.source}\n{one.content}" for one in (TEA, BREAD)] + ["tea.md\nNew."]
    embedder.asked.clear()
    with EmbeddingRetriever(embedder, path) as index:
        found = await index.retrieve("tea served", 1)
        assert [chunk.content for chunk in found] == [TEA.content]
        assert 0.0 < found[0].score <= 1.0
        assert embedder.asked == ["tea served"]


async def test_vectors_of_another_embedder_are_not_its_own(tmp_path: Path) -> None:
    path = tmp_path / "vectors.db"
    with (
        EmbeddingRetriever(Counting(64), path) as one,
        EmbeddingRetriever(Counting(32, "small"), path) as other,
    ):
        await one.add([TEA])
        assert await other.retrieve("tea", 0) == []
        await other.add([BREAD])
        assert await one.documents() == ["tea.md"]
        assert await other.documents() == ["bread.md"]
        assert await other.remove("tea.md") == 0
    with EmbeddingRetriever(Counting(32), path) as changed:
        with pytest.raises(UnexpectedModelBehavior, match="a vector of 32 numbers where others have 64"):
            await changed.retrieve("tea", 1)
        with pytest.raises(UnexpectedModelBehavior, match="32 numbers"):
            await changed.add([BREAD])


async def test_it_sees_what_others_add_and_shares_a_file(tmp_path: Path) -> None:
    path = tmp_path / "index.db"
    with EmbeddingRetriever(Counting(), path) as one, EmbeddingRetriever(Counting(), path) as other:
        await one.add([TEA])
        assert await other.documents() == ["tea.md"]
        await other.remove("tea.md")
        assert await one.retrieve("tea", 0) == []
        with SQLiteRetriever(path) as words:
            await words.add([BREAD])
        assert await one.documents() == []


@pytest.mark.integration
def test_a_process_that_is_killed_keeps_what_it_did(tmp_path: Path) -> None:
    path = tmp_path / "vectors.db"
    code = (
        "import asyncio, os, sys\nfrom flyball.context.chunk import Chunk\n"
        "from flyball.context.embedding_retriever import EmbeddingRetriever\n"
        "from flyball.inference.hashed_embedder import HashedEmbedder\n"
        "index = EmbeddingRetriever(HashedEmbedder(), sys.argv[1])\n"
        "asyncio.run(index.add([Chunk('tea', 'a.md')]))\nos.kill(os.getpid(), 9)\n"
    )
    killed = subprocess.run([sys.executable, "-c", code, str(path)], check=False, timeout=60)
    assert killed.returncode == -9
    with EmbeddingRetriever(HashedEmbedder(), path) as index:
        assert [chunk.content for chunk in asyncio.run(index.retrieve("tea", 0))] == ["tea"]


async def test_what_the_embedder_raises_is_raised_and_nothing_is_added() -> None:
    failure = EngineError("the child has died")

    class Broken(Counting):
        async def embed(self, texts: Sequence[str]) -> list[list[float]]:
            if "New.\nNew." in texts:
                raise failure
            return await super().embed(texts)

    index = EmbeddingRetriever(Broken(), batch=1)
    await index.add([TEA])
    with pytest.raises(EngineError) as caught:
        await index.replace("New.", [Chunk("Old.", "New."), Chunk("New.", "New.")])
    assert caught.value is failure
    assert await index.documents() == ["tea.md"]


async def test_only_what_is_near_enough_is_found() -> None:
    index = EmbeddingRetriever(HashedEmbedder(), min_score=0.5)
    await index.add([TEA, BREAD])
    assert [chunk.source for chunk in await index.retrieve("Tea is served at four.", 0)] == ["tea.md"]
    assert await index.retrieve("   ", 0) == await index.retrieve("of the", 0) == []
    assert "EmbeddingRetriever(HashedEmbedder(1024" in repr(index)
    index.close()
    with pytest.raises(KnowledgeFailed, match="is closed"):
        await index.retrieve("tea", 1)


@pytest.mark.parametrize(
    ("embedder", "options"),
    [("local", {}), (HashedEmbedder(), {"min_score": 2}), (HashedEmbedder(), {"batch": 0})],
    ids=str,
)
def test_what_cannot_be(embedder: Any, options: dict[str, Any]) -> None:
    with pytest.raises(UserError):
        EmbeddingRetriever(embedder, **options)
