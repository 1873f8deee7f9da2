"""EmbeddingScorer: candidates whose vectors are near the question's."""

from __future__ import annotations

from collections.abc import Sequence

from flyball.core.errors import UserError
from flyball.inference.embedder import BATCH, Embedder, check_embedder, cosine, embedded
from flyball.rerank.candidate import Candidate


class EmbeddingScorer:
    """Scores by the cosine of vectors; below 0, which is unlike, is 0.

    The candidates' vectors are made anew each time: it is for the few that a search has found.

    Args:
        embedder: who makes vectors of texts.
        batch: how many texts it is given at once.

    Raises:
        UserError: the embedder is none, or the number too small.
    """

    def __init__(self, embedder: Embedder, *, batch: int = BATCH) -> None:
        check_embedder(embedder)
        if batch < 1:
            raise UserError(f"batch={batch} must be 1 at least")
        self.embedder = embedder
        self._batch = batch

    async def score(self, query: str, candidates: Sequence[Candidate]) -> list[float]:
        """See `Scorer.score`.

        Raises:
            FlyballError: the embedder failed.
        """
        texts = [query, *[candidate.content for candidate in candidates]]
        wanted, *vectors = await embedded(self.embedder, texts, batch=self._batch)
        return [max(0.0, cosine(wanted, vector)) for vector in vectors]

    def __repr__(self) -> str:
        return f"EmbeddingScorer({self.embedder!r})"
