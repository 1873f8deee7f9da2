"""Figures: how far up the right section stands, and how long a question takes."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
from time import perf_counter

from msgspec import Struct

from bench.retrieval.questions import Question
from flyball.context.retriever import Retriever

LOOKED_AT = 10
"""How many sections are looked at; what stands further down counts as not found."""
ASKED_FOR = 40
"""How many chunks a retriever is asked for: several may be of one section, and it counts once."""


class Figures(Struct, frozen=True):
    """What came of a way to retrieve. `ranks` are the places of the right sections, 0 for none."""

    way: str
    ranks: tuple[int, ...]
    seconds: float

    def hit(self, at: int) -> float:
        """In which part of the questions a right section is among the first."""
        return sum(1 for rank in self.ranks if 0 < rank <= at) / len(self.ranks)

    @property
    def mrr(self) -> float:
        """The mean of the reciprocal ranks."""
        return sum([1 / rank for rank in self.ranks if rank]) / len(self.ranks)


async def measure(way: str, retriever: Retriever, questions: Sequence[Question]) -> Figures:
    """Ask a retriever all questions; the time of a question is the median of all."""
    ranks: list[int] = []
    times: list[float] = []
    for question in questions:
        begun = perf_counter()
        found = await retriever.retrieve(question.ask, ASKED_FOR)
        times.append(perf_counter() - begun)
        ranks.append(rank_of(question, [chunk.source for chunk in found]))
    return Figures(way, tuple(ranks), median(times))


def rank_of(question: Question, sources: Sequence[str]) -> int:
    """The place of the first right section among those found, each counted once; 0 if there is none."""
    sections = list(dict.fromkeys(sources))[:LOOKED_AT]
    return next((place for place, name in enumerate(sections, 1) if name in question.answered), 0)
