"""KeywordScorer: candidates that share words with the question. pagantic's SimpleScorer."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from flyball.core.words import COMMON, overlap, terms
from flyball.rerank.candidate import Candidate


class KeywordScorer:
    """Scores by keyword overlap: which part of the question's words stand in a candidate's content.

    It needs nothing and takes no time, and is for tests and for trying things out: a search by words has
    looked at the same words before.

    Args:
        common: words that say nothing about what is asked, in lower case.
    """

    def __init__(self, *, common: Collection[str] = COMMON) -> None:
        self._common = common

    async def score(self, query: str, candidates: Sequence[Candidate]) -> list[float]:
        """See `Scorer.score`."""
        wanted = terms(query, self._common)
        return [overlap(wanted, candidate.content) for candidate in candidates]

    def __repr__(self) -> str:
        return "KeywordScorer()"
