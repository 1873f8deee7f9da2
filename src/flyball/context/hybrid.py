"""HybridRetriever: several retrievers' findings as one list, by reciprocal rank fusion."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from msgspec.structs import replace

from flyball.context.chunk import Chunk
from flyball.context.retriever import Retriever, first
from flyball.core.errors import UserError

K = 60
"""What is added to each rank: how little the very first places count for more than those after them."""
DEPTH = 50
"""How many chunks each retriever is asked for at least, where not all are wanted."""


class HybridRetriever:
    """Asks several retrievers at once, and gives what they found in the order that they agree on best.

    A chunk's score is the sum of `1 / (k + rank)` over the retrievers that found it, with ranks from 1: only
    the order of each counts, because scores of different retrievers cannot be compared. What one retriever
    found first and another did not find at all is still there.

    If one of them fails, the others are cancelled and its error is raised as it is.

    Args:
        retrievers: who is asked.
        k: see above.
        depth: how many chunks each is asked for, if fewer are wanted: what stands further down in one list
            may be far up in another.

    Raises:
        UserError: there is no retriever, or a number is too small.
    """

    def __init__(self, *retrievers: Retriever, k: int = K, depth: int = DEPTH) -> None:
        if not retrievers:
            raise UserError("HybridRetriever takes one retriever at least")
        if k < 0 or depth < 1:
            raise UserError(f"k={k} must be 0 at least, and depth={depth} must be 1")
        self.retrievers = retrievers
        self.k = k
        self.depth = depth

    async def retrieve(self, query: str, limit: int) -> list[Chunk]:
        """See `Retriever.retrieve`."""
        wanted = max(limit, self.depth) if limit > 0 else 0
        asking = [asyncio.ensure_future(one.retrieve(query, wanted)) for one in self.retrievers]
        try:
            found = await asyncio.gather(*asking)
        finally:
            for task in asking:
                task.cancel()
            await asyncio.gather(*asking, return_exceptions=True)
        return first(fused(found, self.k), limit)

    def __repr__(self) -> str:
        return f"HybridRetriever({', '.join([repr(one) for one in self.retrievers])})"


def fused(rankings: Sequence[Sequence[Chunk]], k: int = K) -> list[Chunk]:
    """Several rankings as one, the best first; each chunk once, with the fused score.

    Of equal scores the one that an earlier ranking has, or has further up, comes first.
    """
    chunks: dict[tuple[str, bytes], Chunk] = {}
    scores: dict[tuple[str, bytes], float] = {}
    for ranking in rankings:
        keys = dict.fromkeys([chunk.key for chunk in ranking])  # who gives one twice has it counted once
        for rank, key in enumerate(keys, 1):
            scores[key] = scores.get(key, 0.0) + 1 / (k + rank)
        for chunk in ranking:
            chunks.setdefault(chunk.key, chunk)
    ordered = sorted(scores, key=lambda key: -scores[key])
    return [replace(chunks[key], score=scores[key]) for key in ordered]
