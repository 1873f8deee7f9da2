"""Prose in chunks."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given

from flyball import by_words
from flyball.context.chunk import Chunk
from flyball.context.chunking import ChunkSize, chunk_text
from flyball.core.errors import UserError
from tests.context.chunking.texts import check_chunks, sizes, texts


@given(texts, sizes)
def test_nothing_is_lost_order_is_kept_sizes_are_bounded(text: str, size: ChunkSize) -> None:
    check_chunks(text, chunk_text(text, "a.txt", size), size)


def contents(text: str, size: ChunkSize) -> list[str]:
    return [chunk.content for chunk in chunk_text(text, "a.txt", size)]


def test_it_is_cut_between_paragraphs_lines_sentences_and_words_in_this_order() -> None:
    size = ChunkSize(6, 0)  # 24 characters
    assert contents("One two.\n\nThree four.", size) == ["One two.\n\nThree four."]
    assert contents("One two three.\n\nFour five six seven.", size) == [
        "One two three.",
        "Four five six seven.",
    ]
    assert contents("A line of some words\nand another of words", size) == [
        "A line of some words",
        "and another of words",
    ]
    assert contents("Tea is at four. Bread is at nine.", size) == ["Tea is at four.", "Bread is at nine."]
    assert contents("some words without any end to them", size) == ["some words without any", "end to them"]
    assert contents("x" * 50, size) == ["x" * 24, "x" * 24, "xx"]


def test_chunks_begin_with_the_end_of_the_one_before() -> None:
    found = contents("one two three four five six seven eight nine ten", ChunkSize(6, 2))
    assert found == ["one two three", "three four five six", "six seven eight nine", "nine ten"]


def test_what_fits_is_one_chunk_and_nothing_is_none() -> None:
    (chunk,) = chunk_text("\n\n  Tea.  \n", "a.txt")
    assert chunk == Chunk("  Tea.", "a.txt", metadata={"document": "a.txt", "start": 2, "end": 8})
    assert (chunk.document, chunk.title) == ("a.txt", "a.txt")
    assert chunk_text(" \n\t\n", "a.txt") == []


def test_white_space_without_end_is_left_out_in_no_time() -> None:
    words = " ".join(["word"] * 300)
    found = contents(f"{words}{chr(10) * 100_000}{words}{' ' * 100_000}end", ChunkSize(64, 0))
    assert " ".join(found).split() == [*["word"] * 600, "end"]
    assert all(len(content) <= 256 for content in found)


def test_tokens_are_counted_as_one_likes() -> None:
    assert contents("one two three four", ChunkSize(3, 0, by_words)) == ["one two", "three four"]


@pytest.mark.parametrize(
    "wrong", [{"max_tokens": 0}, {"max_tokens": 8, "overlap": 8}, {"overlap": -1}], ids=str
)
def test_sizes_that_cannot_be(wrong: dict[str, Any]) -> None:
    with pytest.raises(UserError, match="must be"):
        ChunkSize(**wrong)
