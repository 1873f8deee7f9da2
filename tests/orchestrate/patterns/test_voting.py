"""Voting: the documents' cases, and what holds for any candidates."""

from __future__ import annotations

from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.json import decode

from flyball.core.errors import NoConsensus, UserError
from flyball.orchestrate.patterns.voting import (
    MajorityVoting,
    SimilarityVoting,
    UnanimityVoting,
    VotingStrategy,
    canonical,
)

some = st.lists(st.sampled_from("abc"), min_size=1, max_size=9)


@pytest.mark.parametrize(
    ("candidates", "winner", "confidence"),
    [("aab", "a", 2 / 3), ("ababc", "a", 0.4), ("ba", "b", 0.5), ("ccc", "c", 1.0)],
)
def test_majority(candidates: str, winner: str, confidence: float) -> None:
    assert MajorityVoting().vote(list(candidates)) == (winner, confidence)


def test_unanimity() -> None:
    assert UnanimityVoting().vote(["a", "a", "a"]) == ("a", 1.0)
    with pytest.raises(
        NoConsensus, match=r"^unanimity voting: candidate 2 differs from candidate 0$"
    ) as caught:
        UnanimityVoting().vote(["a", "a", "b"])
    assert (caught.value.code, caught.value.retryable) == ("ORCHESTRATION_NO_CONSENSUS", False)


def test_similarity() -> None:
    texts = ["the river is high", "the river is very high", "cats sleep"]
    winner, confidence = SimilarityVoting().vote(texts)
    assert winner == "the river is high"
    assert 0 < confidence < 1
    assert SimilarityVoting().vote(["alone"]) == ("alone", 1.0)
    assert SimilarityVoting(lambda one, other: 2.0).vote(["a", "b"]) == ("a", 1.0)
    wrong: Any = "words"
    with pytest.raises(UserError, match="a function of two texts"):
        SimilarityVoting(wrong)


@pytest.mark.parametrize("voting", [MajorityVoting(), UnanimityVoting(), SimilarityVoting()])
def test_no_candidates(voting: VotingStrategy) -> None:
    with pytest.raises(NoConsensus, match="no candidates"):
        voting.vote([])


@given(some, st.lists(st.sampled_from("abcd"), max_size=6))
def test_a_majority_that_is_decided_stays(candidates: list[str], more: list[str]) -> None:
    voting = MajorityVoting()
    if voting.decided(candidates, len(more)):
        assert voting.vote([*candidates, *more])[0] == voting.vote(candidates)[0]


@given(some, st.integers(1, 6))
def test_a_majority_that_is_not_decided_may_yet_change(candidates: list[str], remaining: int) -> None:
    voting = MajorityVoting()
    if not voting.decided(candidates, remaining):
        winner = voting.vote(candidates)[0]
        others = {voting.vote([*candidates, *[rival] * remaining])[0] for rival in {*candidates, "z"}}
        assert others - {winner}


@given(some, st.lists(st.sampled_from("abc"), max_size=4))
def test_unanimity_that_is_decided_fails_or_is_whole(candidates: list[str], more: list[str]) -> None:
    voting = UnanimityVoting()
    if voting.decided(candidates, len(more)) and more:
        with pytest.raises(NoConsensus):
            voting.vote([*candidates, *more])


json = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**40), 2**40) | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


@given(json)
def test_what_means_the_same_is_the_same_text(value: Any) -> None:
    turned: Any = value
    if isinstance(value, dict):
        turned = dict(reversed(cast("dict[str, Any]", value).items()))
    assert canonical(value) == canonical(turned) == canonical(decode(canonical(value)))


def test_numbers_in_one_form() -> None:
    assert canonical({"b": 1.0, "a": [2.5, True]}) == '{"a":[2.5,true],"b":1}'
