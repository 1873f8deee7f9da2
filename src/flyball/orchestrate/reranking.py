"""Where retrieval and reranking meet: chunks as candidates, candidates as chunks, and a retriever of both.

The two packages do not know each other, and this is the one place that knows both.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from flyball.context.chunk import Chunk, unique
from flyball.context.retriever import Retriever, first
from flyball.core.errors import UserError
from flyball.rerank.candidate import Candidate


@runtime_checkable
class Reranks(Protocol):
    """What is wanted of a reranker here; `flyball.rerank.Reranker` is one."""

    async def rerank(self, query: str, candidates: Sequence[Candidate]) -> list[Candidate]:
        """The candidates that are good enough, the best first."""
        ...


def candidate_of(chunk: Chunk) -> Candidate:
    """A chunk as a candidate; nothing is lost."""
    return Candidate(chunk.content, chunk.score, chunk.source, chunk.metadata)


def chunk_of(candidate: Candidate) -> Chunk:
    """A candidate as a chunk; nothing is lost."""
    return Chunk(candidate.content, candidate.source, candidate.score, candidate.metadata)


class RerankedRetriever:
    """A retriever whose findings are put in a better order: it finds more than is wanted, and gives the best.

    What either of them raises is raised as it is.

    Args:
        retriever: who finds.
        reranker: who puts in order, and may drop some.
        fetch: how many are put in order, if fewer are wanted.

    Raises:
        UserError: one of them is none, or the number is too small.
    """

    def __init__(self, retriever: Retriever, reranker: Reranks, *, fetch: int = 20) -> None:
        if not callable(getattr(retriever, "retrieve", None)):
            raise UserError(
                f"RerankedRetriever takes a retriever, with retrieve(query, limit), not {retriever!r}"
            )
        if not callable(getattr(reranker, "rerank", None)):
            raise UserError(
                f"RerankedRetriever takes a reranker, with rerank(query, candidates), not {reranker!r}"
            )
        if fetch < 1:
            raise UserError(f"fetch={fetch} must be 1 at least")
        self.retriever = retriever
        self.reranker = reranker
        self.fetch = fetch

    async def retrieve(self, query: str, limit: int) -> list[Chunk]:
        """See `Retriever.retrieve`."""
        found = unique(await self.retriever.retrieve(query, max(limit, self.fetch) if limit > 0 else 0))
        ordered = await self.reranker.rerank(query, [candidate_of(chunk) for chunk in found])
        return first([chunk_of(candidate) for candidate in ordered], limit)

    def __repr__(self) -> str:
        return f"RerankedRetriever({self.retriever!r}, {self.reranker!r})"
