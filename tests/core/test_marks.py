"""Rows of combining marks: no more of them than can be put in order in linear time."""

from __future__ import annotations

import time
import unicodedata
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flyball.core.marks import with_few_marks

WRITTEN = [
    *[
        "plain",
        "vi\u1ec7t e\u0323\u0302",
        "\u05d1\u05bc\u05b0\u05e8\u05b5\u05d0",
        "\u0e17\u0e35\u0e48\u0e19\u0e35\u0e48",
    ],
    *[
        "\u2014" * 20,
        "\U0001f600" * 20,
        "\u0928\u092e\u0938\u094d\u0924\u0947",
        "\uff76\uff9e",
        "\u00e9" * 20,
    ],
]


@pytest.mark.parametrize("text", WRITTEN)
def test_what_people_write_stays(text: str) -> None:
    assert with_few_marks(text) == text


@given(st.text(alphabet=st.sampled_from("ab\u0301\u0316\u0f73\uff9e\u2014 "), max_size=60))
def test_no_row_is_long_and_nothing_else_is_gone(text: str) -> None:
    left = with_few_marks(text)
    marks = "\u0301\u0316\u0f73\uff9e"
    assert [char for char in left if char not in marks] == [char for char in text if char not in marks]
    rows = "".join([char if char in marks else " " for char in left]).split()
    assert all(len(row) <= 8 for row in rows)
    assert with_few_marks(left) == left


@pytest.mark.slow
@pytest.mark.parametrize("form", ["NFC", "NFKC", "NFD", "NFKD"])
@pytest.mark.parametrize(
    "row", ["\u0301\u0316", "\u0f73\u0301", "\uff9e\u0316", "\u0344\u0316", "\u0345\u0301"]
)
def test_what_is_left_is_normalised_in_linear_time(
    form: Literal["NFC", "NFKC", "NFD", "NFKD"], row: str
) -> None:
    def taken(size: int) -> float:
        text, best = "a" + row * (size // len(row)), float("inf")
        for _ in range(3):
            began = time.process_time()
            unicodedata.normalize(form, with_few_marks(text))
            best = min(best, time.process_time() - began)
        return best

    assert taken(160_000) < 20 * max(taken(20_000), 0.005), "eight times the text"
