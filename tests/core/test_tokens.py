"""Tokens, estimated: the three rules of thumb, and that nothing which is sent is left out."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flyball import by_bytes, by_characters, by_words, estimate_tokens
from flyball.core.messages import (
    Audio,
    Document,
    Image,
    Message,
    Part,
    Retry,
    Role,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)
from flyball.core.tokens import MEDIA_TOKENS, TokenEstimator
from tests.histories import histories

ESTIMATORS = {"words": by_words, "characters": by_characters, "bytes": by_bytes}


@pytest.mark.parametrize(
    ("text", "words", "characters", "size"),
    [
        ("", 0, 0, 0),
        ("one two three four five six seven eight nine ten", 13, 12, 12),
        ("word", 2, 1, 1),
        ('{"a":[1,2,3]}', 2, 4, 4),
        ("漢字漢字", 2, 1, 3),
        ("\ud800", 2, 1, 1),
    ],
)
def test_the_rules_of_thumb(text: str, words: int, characters: int, size: int) -> None:
    assert (by_words(text), by_characters(text), by_bytes(text)) == (words, characters, size)


@given(st.text(max_size=60))
def test_they_count_what_their_names_say(text: str) -> None:
    assert by_words(text) == math.ceil(len(text.split()) * 1.3 - 1e-9)
    assert by_characters(text) == math.ceil(len(text) / 4)
    assert by_bytes(text) == math.ceil(len(text.encode()) / 4)


@pytest.mark.parametrize("estimator", ESTIMATORS.values(), ids=ESTIMATORS)
@given(one=histories(6), other=histories(6))
def test_what_is_added_is_counted(
    estimator: TokenEstimator, one: list[Message], other: list[Message]
) -> None:
    both = estimate_tokens([*one, *other], estimator)
    assert both == estimate_tokens(one, estimator) + estimate_tokens(other, estimator)


@pytest.mark.parametrize(
    ("part", "tokens"),
    [
        (Text("four"), 1),
        (Thinking("four"), 1),
        (Retry("four"), 1),
        (ToolCall("a", "look", '{"a":1}'), 1 + 2),
        (ToolResult("a", "look", {"rain": True}), 1 + 4),
        (ToolResult("a", "look", error="it broke"), 1 + 2),
        (ToolResult("a", "look", "ok", images=(Image("a"), Image("b"))), 1 + 1 + 2 * MEDIA_TOKENS),
        (Image("data:image/png;base64,AAAA"), MEDIA_TOKENS),
        (Audio("a.mp3"), MEDIA_TOKENS),
        (Document("a.pdf"), MEDIA_TOKENS),
    ],
    ids=lambda value: type(value).__name__ if not isinstance(value, int) else "",
)
def test_each_part_is_counted(part: Part, tokens: int) -> None:
    assert estimate_tokens([Message(Role.USER, (part,))]) == tokens


def test_fractions_are_rounded_up_in_the_end() -> None:
    def a_third(_: str) -> float:
        return 0.4

    tokens = estimate_tokens([Message(Role.USER, (Text("a"), Text("b"), Text("c")))], a_third)
    assert (tokens, type(tokens)) == (2, int)


def test_a_tokenizer_is_an_estimator() -> None:
    def per_letter(text: str) -> int:
        return len(text)

    assert estimate_tokens([Message(Role.USER, (Text("abc"), Image("a")))], per_letter) == 3 + MEDIA_TOKENS
