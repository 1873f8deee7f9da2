"""Voting: which of several answers counts, and how sure that is.

Candidates are texts that are equal if they mean the same: JSON is brought into one form first (`canonical`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeAlias, runtime_checkable

import msgspec
from msgspec import Struct

from flyball.core.errors import NoConsensus, UserError

Vote: TypeAlias = tuple[str, float]
"""The winner, and the confidence from 0 to 1."""


@runtime_checkable
class VotingStrategy(Protocol):
    """Chooses among candidates.

    It may have a method `decided(candidates, remaining)` besides, which says whether `remaining` more of them
    could change nothing: then a loop that may stop early does.
    """

    def vote(self, candidates: Sequence[str]) -> Vote:
        """The winner, and how sure that is.

        Raises:
            NoConsensus: none of them can be chosen.
        """
        ...


class MajorityVoting(Struct, frozen=True):
    """The candidate that came most often; of several, the first. The confidence is its share."""

    def vote(self, candidates: Sequence[str]) -> Vote:
        """See `VotingStrategy.vote`."""
        _some(candidates, "majority")
        winner, votes = Counter(candidates).most_common(1)[0]  # which keeps the order of their first coming
        return winner, votes / len(candidates)

    def decided(self, candidates: Sequence[str], remaining: int) -> bool:
        """Whether the leader would win against any that are still to come."""
        if not candidates:
            return not remaining
        votes = Counter(candidates)  # in the order of their first coming, by which equals are decided
        leader, most = votes.most_common(1)[0]
        earlier = True
        for rival, count in votes.items():
            earlier = earlier and rival != leader
            if rival != leader and count + remaining + earlier > most:
                return False
        return remaining <= most


class UnanimityVoting(Struct, frozen=True):
    """All candidates must be the same; the confidence is then 1."""

    def vote(self, candidates: Sequence[str]) -> Vote:
        """See `VotingStrategy.vote`."""
        _some(candidates, "unanimity")
        for index, candidate in enumerate(candidates):
            if candidate != candidates[0]:
                raise NoConsensus(
                    f"unanimity voting: candidate {index} differs from candidate 0", candidate=index
                )
        return candidates[0], 1.0

    def decided(self, candidates: Sequence[str], remaining: int) -> bool:
        """Whether two of them differ: then nothing helps."""
        return not remaining or len(set(candidates)) > 1


class SimilarityVoting:
    """The candidate that is most like all others, on average, which is its confidence.

    Args:
        similarity: how alike two texts are, from 0 to 1. Without it, by the words that they share.
    """

    def __init__(self, similarity: Callable[[str, str], float] | None = None) -> None:
        if similarity is not None and not callable(similarity):
            raise UserError(f"SimilarityVoting takes a function of two texts, not {similarity!r}")
        self._similarity = similarity or shared_words

    def vote(self, candidates: Sequence[str]) -> Vote:
        """See `VotingStrategy.vote`."""
        _some(candidates, "similarity")
        if len(candidates) == 1:
            return candidates[0], 1.0
        alike = [
            sum(self._similarity(one, other) for at, other in enumerate(candidates) if at != index)
            / (len(candidates) - 1)
            for index, one in enumerate(candidates)
        ]
        best = max(range(len(alike)), key=alike.__getitem__)
        return candidates[best], min(max(alike[best], 0.0), 1.0)


def shared_words(one: str, other: str) -> float:
    """How much of the words of two texts is in both: 1 if they have the same ones."""
    first, second = set(one.lower().split()), set(other.lower().split())
    return len(first & second) / len(first | second) if first | second else 1.0


def canonical(output: Any) -> str:
    """A JSON value in the form that all which mean the same share: keys sorted, no spaces, 1.0 as 1."""
    return str(msgspec.json.encode(_plain(output), order="sorted"), "utf-8")


def _plain(value: Any) -> Any:
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return int(value)
    if isinstance(value, dict):
        return {key: _plain(inner) for key, inner in value.items()}  # pyright: ignore[reportUnknownVariableType]
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]  # pyright: ignore[reportUnknownVariableType]
    return value


def _some(candidates: Sequence[str], kind: str) -> None:
    if not candidates:
        raise NoConsensus(f"{kind} voting: no candidates")
