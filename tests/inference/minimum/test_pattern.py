from __future__ import annotations

import re
from warnings import catch_warnings, simplefilter

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from flyball.inference.minimum.pattern import shortest_match
from tests.inference.minimum.strategies import PATTERNS


@pytest.mark.parametrize("pattern", PATTERNS)
def test_it_matches(pattern: str) -> None:
    text = shortest_match(pattern)
    assert text is not None
    assert re.search(pattern, text)


@pytest.mark.parametrize(
    ("pattern", "shortest"),
    [
        ("", ""),
        ("^$", ""),
        ("abc", "abc"),
        ("^a*$", ""),
        ("^a+$", "a"),
        (r"^\d{3}-[x-z]$", "000-x"),
        ("cat|dog|a", "a"),
        ("(?P<x>b)(?P=x)", "bb"),
        (r"^[^\w]$", "-"),
        (r"^[\s]$", " "),
        (r"^\W\D\S$", "-aa"),
        ("^[é]$", "é"),
        ("(?>ab)", "ab"),
    ],
)
def test_it_takes_the_least(pattern: str, shortest: str) -> None:
    assert shortest_match(pattern) == shortest


@given(st.sampled_from(["^a*$", "b", "^[a-f]+$", "^(ab?)+$"]), st.integers(0, 9), st.integers(0, 9))
def test_it_keeps_to_the_lengths(pattern: str, least: int, room: int) -> None:
    text = shortest_match(pattern, least, least + room)
    assume(text is not None)
    assert text is not None
    assert least <= len(text) <= least + room
    assert re.search(pattern, text)


def test_what_is_not_anchored_may_stand_in_a_longer_text() -> None:
    assert shortest_match("b$", 3) == "aab"
    assert shortest_match("^b", 3) == "baa"


@pytest.mark.parametrize("pattern", ["(", r"\p{L}", "(?=b)a$", "a{99999}", "(?!)"])
def test_what_is_not_found_is_none(pattern: str) -> None:
    assert shortest_match(pattern) is None


@given(st.from_regex(r"[ab01\[\]\(\)\|\*\+\?\.\^\$\{\}\\dws-]{0,8}", fullmatch=True))
def test_any_pattern_gives_a_match_or_none(pattern: str) -> None:
    text = shortest_match(pattern)
    with catch_warnings():
        simplefilter("ignore")
        assert text is None or re.search(pattern, text)
