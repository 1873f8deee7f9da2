"""Candidates in a better order."""

from __future__ import annotations

from collections.abc import Sequence
from math import nan
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flyball.core.errors import EngineError, UserError
from flyball.rerank.candidate import RETRIEVAL_SCORE, Candidate
from flyball.rerank.keyword import KeywordScorer
from flyball.rerank.reranker import Reranker
from flyball.rerank.scorer import Scorer


class Given:
    """Gives the scores that it is given."""

    def __init__(self, *scores: float) -> None:
        self.scores = scores

    async def score(self, query: str, candidates: Sequence[Candidate]) -> list[float]:
        return list(self.scores)

    def __repr__(self) -> str:
        return "Given()"


def candidates(*scores: float) -> list[Candidate]:
    return [Candidate(f"text {number}", score, f"{number}.md") for number, score in enumerate(scores)]


async def test_the_new_score_takes_the_place_of_the_old_one_which_is_kept() -> None:
    found = await Reranker(Given(0.2, 0.9)).rerank("?", candidates(7.5, 3.0))
    assert found == [
        Candidate("text 1", 0.9, "1.md", {RETRIEVAL_SCORE: 3.0}),
        Candidate("text 0", 0.2, "0.md", {RETRIEVAL_SCORE: 7.5}),
    ]
    again = await Reranker(Given(0.5, 0.1)).rerank("?", found)
    assert [one.metadata[RETRIEVAL_SCORE] for one in again] == [3.0, 7.5], "the one of the retriever"


@given(
    st.lists(st.sampled_from([0.0, 0.25, 0.5, 1.0]), max_size=10),
    st.sampled_from([0.0, 0.25, 0.6, 1.0]),
    st.integers(0, 6),
)
async def test_sorted_stably_cut_by_score_and_by_number(scores: list[float], least: float, most: int) -> None:
    given = candidates(*[0.0] * len(scores))
    found = await Reranker(Given(*scores), least, most).rerank("?", given)
    order = sorted(range(len(scores)), key=lambda number: (-scores[number], number))
    expected = [f"{number}.md" for number in order if scores[number] >= least]
    assert [one.source for one in found] == (expected[:most] if most else expected)
    assert given == candidates(*[0.0] * len(scores)), "what was given is not changed"


async def test_without_candidates_nobody_is_asked() -> None:
    assert await Reranker(Given(nan)).rerank("?", []) == []


@pytest.mark.parametrize(
    ("scores", "what"),
    [
        ((0.5,), r"Given\(\) gave 1 scores for 2 candidates"),
        ((0.5, 1.5), "gave the score 1.5: scores are from 0 to 1"),
        ((0.5, -0.1), "gave the score -0.1"),
        ((nan, 0.5), "gave the score nan"),
    ],
)
async def test_scores_that_are_none(scores: tuple[float, ...], what: str) -> None:
    with pytest.raises(UserError, match=what):
        await Reranker(Given(*scores)).rerank("?", candidates(0.0, 0.0))


async def test_what_the_scorer_raises_is_raised_as_it_is() -> None:
    class Failing:
        async def score(self, query: str, candidates: Sequence[Candidate]) -> list[float]:
            raise failure

    failure = EngineError("gone")
    with pytest.raises(EngineError) as caught:
        await Reranker(Failing()).rerank("?", candidates(1.0))
    assert caught.value is failure


@pytest.mark.parametrize(
    ("scorer", "options"),
    [("keyword", {}), (Given(), {"min_score": 1.5}), (Given(), {"min_score": nan}), (Given(), {"top_k": -1})],
    ids=str,
)
def test_what_cannot_be(scorer: Any, options: dict[str, Any]) -> None:
    with pytest.raises(UserError):
        Reranker(scorer, **options)


async def test_keywords() -> None:
    scorer = KeywordScorer()
    assert isinstance(scorer, Scorer)
    given = [Candidate("The LIBRARY closes."), Candidate("A library."), Candidate("Bread.")]
    assert await scorer.score("When is the library's closes?", given) == [
        pytest.approx(2 / 3),
        pytest.approx(1 / 3),
        0.0,
    ]
    assert await scorer.score("what is it", given) == [0.0] * 3
    assert repr(Reranker(scorer, 0.5, 3)) == "Reranker(KeywordScorer(), min_score=0.5, top_k=3)"


def test_a_candidate_is_plain_data() -> None:
    candidate = Candidate("text", 0.5, "a.md", {"page": 3})
    assert msgspec.json.decode(msgspec.json.encode(candidate), type=Candidate) == candidate
    assert msgspec.to_builtins(candidate) == {
        "content": "text",
        "score": 0.5,
        "source": "a.md",
        "metadata": {"page": 3},
    }
