"""Scorer: how well candidates fit a question."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from flyball.rerank.candidate import Candidate


@runtime_checkable
class Scorer(Protocol):
    """Scores candidates against a question.

    Guarantees: one score for each candidate, in their order, from 0.0 (it does not help) to 1.0 (it is the
    answer). A candidate's score does not depend on the order of the others. A failure is an error of the
    taxonomy.
    """

    async def score(self, query: str, candidates: Sequence[Candidate]) -> list[float]:
        """A score for each candidate."""
        ...
