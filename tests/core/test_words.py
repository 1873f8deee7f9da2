"""The words of texts, and how many two of them share."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flyball.core.words import COMMON, folded, overlap, terms, words_in


@pytest.mark.parametrize(
    ("word", "plain"),
    [("Library", "library"), ("CAFÉ", "cafe"), ("Größe", "grosse"), ("İzmir", "izmir"), ("漢字", "漢字")],
)
def test_case_and_accents_are_folded(word: str, plain: str) -> None:
    assert folded(word) == plain


@given(st.text())
def test_folding_twice_changes_nothing_more(word: str) -> None:
    assert folded(folded(word)) == folded(word)


@given(st.text())
def test_terms_are_folded_words_that_say_something(text: str) -> None:
    found = terms(text)
    assert not found & COMMON
    assert found <= {folded(word) for word in words_in(text)}


@given(st.text(), st.text())
def test_overlap_is_a_share(query: str, text: str) -> None:
    wanted = terms(query)
    assert 0.0 <= overlap(wanted, text) <= 1.0
    assert overlap(wanted, f"{text} {query}") == (1.0 if wanted else 0.0)


def test_overlap_counts_the_questions_words() -> None:
    wanted = terms("When does the library close?")
    assert wanted == {"library", "close"}
    assert overlap(wanted, "The LIBRARY is open.") == 0.5
    assert overlap(frozenset(), "anything") == 0.0
    assert terms("wer ist das", {"ist", "das"}) == {"wer"}
