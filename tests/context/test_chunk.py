"""Chunks: what they are called, what is the same, how sure one may be of them."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flyball.context.chunk import Chunk, unique
from flyball.context.confidence import covered, mean_score

chunks = st.lists(
    st.builds(Chunk, st.sampled_from(["tea", "bread"]), st.sampled_from(["a", "b"]), st.floats(0, 1)),
    max_size=12,
)


@given(chunks)
def test_of_the_same_source_and_content_the_highest_score_stays(found: list[Chunk]) -> None:
    kept = unique(found)
    best = {chunk.key: max([one.score for one in found if one.key == chunk.key]) for chunk in found}
    assert {chunk.key: chunk.score for chunk in kept} == best
    assert [chunk.key for chunk in kept] == list(dict.fromkeys([chunk.key for chunk in found]))
    assert unique(kept) == kept


def test_the_same_words_of_another_source_are_something_else() -> None:
    assert len(unique([Chunk("tea", "a"), Chunk("tea", "b"), Chunk("tea", "a")])) == 2
    assert Chunk("\ud800", "a").key != Chunk("\ud801", "a").key


def test_a_chunk_is_plain_data() -> None:
    chunk = Chunk("tea", "a.md#tea", 0.5, {"document": "a.md", "heading": "A > Tea"})
    assert msgspec.json.decode(msgspec.json.encode(chunk), type=Chunk) == chunk
    assert (chunk.document, chunk.title) == ("a.md", "a.md A > Tea")
    assert Chunk("x", "s").document == Chunk("x", "s").title == "s"
    with pytest.raises(AttributeError):
        chunk.score = 1.0  # pyright: ignore[reportAttributeAccessIssue]


def test_how_sure_one_may_be() -> None:
    found = [Chunk("The library closes.", "a", 0.9), Chunk("At nine.", "b", 0.3)]
    assert mean_score(found) == pytest.approx(0.6)
    assert mean_score([]) == 0.0
    assert mean_score([Chunk("x", "y", 7.5)]) == 1.0
    assert covered("When does the library closes? Nine or ten?", found) == pytest.approx(3 / 4)
    assert covered("What is it?", found) == covered("tea", []) == 0.0
