"""A question's words as a search."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flyball.context.words import MOST, search_for
from flyball.core.words import COMMON


@pytest.mark.parametrize(
    ("query", "search"),
    [
        ("When does the library close?", '"library" OR "close"'),
        ("LIBRARY, Library; library!", '"library"'),
        ("Größenwahn in İzmir", '"Größenwahn" OR "İzmir"'),
        ('a" OR content:b NEAR(c, d) -e ^f*', '"content" OR "b" OR "NEAR" OR "c" OR "d" OR "e" OR "f"'),
        ("What is it?", ""),
        ("", ""),
        ("?!", ""),
    ],
)
def test_only_words_get_through_each_in_quotes(query: str, search: str) -> None:
    assert search_for(query) == search


@given(
    st.text() | st.lists(st.text(st.characters(categories=("L",)), min_size=1), min_size=MOST).map(" ".join)
)
def test_whatever_is_asked_a_search_is_quoted_words(query: str) -> None:
    search = search_for(query)
    assert re.fullmatch(r'("\w+"( OR "\w+")*)?', search)
    words = search.split(" OR ") if search else []
    assert len(set(words)) == len(words) <= MOST
    assert not COMMON & {word.strip('"').lower() for word in words}


def test_of_too_many_words_the_longest_are_looked_for() -> None:
    words = [f"word{'s' * number}" for number in range(MOST + 10)]
    assert search_for(" ".join(words)).split(" OR ")[-1] == f'"{words[10]}"'


def test_what_is_common_can_be_said() -> None:
    assert search_for("the wer ist das", {"ist", "das"}) == '"the" OR "wer"'
