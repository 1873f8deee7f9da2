"""Reranker: candidates in the order of a scorer, without those that are not good enough."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from flyball.core.errors import UserError
from flyball.rerank.candidate import RETRIEVAL_SCORE, Candidate
from flyball.rerank.scorer import Scorer


class Reranker:
    """Scores candidates, sorts them, drops those below a score, and keeps the first.

    The best come first, and of equals the one that came first. The new score takes the place of the old one,
    which is kept in the metadata under `retrieval_score`; one that is there already, from an earlier
    reranker, stays. What was given is not changed.

    Args:
        scorer: who scores.
        min_score: what a candidate must have to be kept, from 0 to 1; 0 keeps all.
        top_k: how many are kept at most; 0 keeps all.

    Raises:
        UserError: the scorer is none, or a number cannot be.
    """

    def __init__(self, scorer: Scorer, min_score: float = 0.0, top_k: int = 0) -> None:
        if not callable(getattr(scorer, "score", None)):
            raise UserError(f"Reranker takes a scorer, with score(query, candidates), not {scorer!r}")
        if not 0.0 <= min_score <= 1.0:
            raise UserError(f"min_score= is a score from 0 to 1, not {min_score!r}")
        if top_k < 0:
            raise UserError(f"top_k= is how many are kept, or 0 for all, not {top_k!r}")
        self.scorer = scorer
        self.min_score = min_score
        self.top_k = top_k

    async def rerank(self, query: str, candidates: Sequence[Candidate]) -> list[Candidate]:
        """The candidates that are good enough, the best first. Without any, the scorer is not asked.

        Raises:
            UserError: the scorer gave something else than a score from 0 to 1 for each candidate.
            FlyballError: whatever the scorer raises, as it is.
        """
        if not candidates:
            return []
        scores = await self.scorer.score(query, candidates)
        self._check(scores, len(candidates))
        scored = [_scored(one, float(score)) for one, score in zip(candidates, scores, strict=True)]
        kept = [candidate for candidate in scored if candidate.score >= self.min_score]
        kept.sort(key=lambda candidate: -candidate.score)
        return kept[: self.top_k] if self.top_k else kept

    def _check(self, scores: Sequence[float], wanted: int) -> None:
        if len(scores) != wanted:
            raise UserError(f"{self.scorer!r} gave {len(scores)} scores for {wanted} candidates")
        for score in scores:
            if not 0.0 <= score <= 1.0:  # NaN is neither
                raise UserError(f"{self.scorer!r} gave the score {score!r}: scores are from 0 to 1")

    def __repr__(self) -> str:
        return f"Reranker({self.scorer!r}, min_score={self.min_score}, top_k={self.top_k})"


def _scored(candidate: Candidate, score: float) -> Candidate:
    metadata = {RETRIEVAL_SCORE: candidate.score, **candidate.metadata}
    return replace(candidate, score=score, metadata=metadata)
