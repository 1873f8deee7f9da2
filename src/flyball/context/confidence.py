"""How sure one may be of what was found, as one number from 0 to 1: for gates and responses."""

from __future__ import annotations

from collections.abc import Sequence

from flyball.context.chunk import Chunk
from flyball.core.words import overlap, terms


def mean_score(chunks: Sequence[Chunk]) -> float:
    """The average of the scores, at most 1.0 and at least 0.0; 0.0 where nothing was found.

    It says something for scores from 0 to 1, such as a reranker's, a cosine or a keyword overlap; BM25 and
    reciprocal ranks have another scale.
    """
    if not chunks:
        return 0.0
    # In this order: scores that are no numbers (NaN) say nothing for what was found.
    return min(1.0, max(0.0, sum([chunk.score for chunk in chunks]) / len(chunks)))


def covered(query: str, chunks: Sequence[Chunk]) -> float:
    """Which part of a question's words stand anywhere in what was found: whatever the scores mean."""
    return overlap(terms(query), "\n".join([chunk.content for chunk in chunks]))
