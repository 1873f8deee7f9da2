"""What came of a row: flyball's figure beside the fastest peer's, held against the target."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple, TypeAlias

from bench.peers.frameworks import FLYBALL
from bench.peers.rounds import Results
from bench.peers.rows import Row

Verdict: TypeAlias = Literal["met", "missed", "void", "shown"]


class Fastest(NamedTuple):
    """The peer with the lowest figure."""

    name: str
    figure: float


class Outcome(NamedTuple):
    """A row, what came of each framework, and which peer was the fastest, by any way to do the workload."""

    row: Row
    results: Results
    fastest: Fastest | None

    @property
    def times(self) -> float | None:
        """How many times flyball's figure the fastest peer's is."""
        ours = self.results[FLYBALL.name].figure
        return None if ours is None or self.fastest is None else self.fastest.figure / ours

    @property
    def verdict(self) -> Verdict:
        """Whether the target is met; `void` if a figure does not count, `shown` if there is no target."""
        if any(result.void for result in self.results.values()):
            return "void"
        if self.row.target is None or self.times is None:
            return "shown"
        return "met" if self.times >= self.row.target else "missed"


def outcomes_of(rows: Sequence[Row], measured: Mapping[str, Results]) -> list[Outcome]:
    """The outcomes of rows whose results are given by name."""
    outcomes: list[Outcome] = []
    for row in rows:
        ways = [measured[other.name] for other in rows if other.workload == row.workload]
        outcomes.append(Outcome(row, measured[row.name], _fastest(ways)))
    return outcomes


def _fastest(several: Sequence[Results]) -> Fastest | None:
    figures = [
        Fastest(name, result.figure)
        for results in several
        for name, result in results.items()
        if name != FLYBALL.name and result.figure is not None
    ]
    return min(figures, key=lambda one: one.figure, default=None)
