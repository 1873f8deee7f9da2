"""Embedders: what is looked at before their vectors are used, and the one that needs no model."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Sequence
from math import nan, sqrt
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flyball.core.errors import UnexpectedModelBehavior, UserError
from flyball.inference.embedder import Embedder, check_embedder, cosine, embedded, embedder_name
from flyball.inference.hashed_embedder import HashedEmbedder
from flyball.inference.request import ModelInfo


class Fixed:
    """Gives what it is told to, and says how much it was asked."""

    def __init__(self, *vectors: Sequence[float]) -> None:
        self.vectors = vectors
        self.asked: list[list[str]] = []

    async def embed(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        self.asked.append(list(texts))
        return self.vectors[: len(texts)]


async def test_vectors_have_the_length_one() -> None:
    assert await embedded(Fixed([3.0, 4.0]), ["a"]) == [(0.6, 0.8)]
    assert await embedded(Fixed([0.0, 0.0]), [""]) == [(0.0, 0.0)], "zeros are like nothing"
    assert await embedded(Fixed(), []) == []


async def test_texts_are_given_in_batches() -> None:
    embedder = Fixed([1.0, 0.0], [1.0, 0.0])
    assert len(await embedded(embedder, ["a", "b", "c", "d", "\ud800"], batch=2)) == 5
    assert embedder.asked == [["a", "b"], ["c", "d"], ["\N{REPLACEMENT CHARACTER}"]]


@pytest.mark.parametrize(
    ("vectors", "size", "what"),
    [
        ([[1.0]], 0, "1 vectors for 2 texts"),
        ([[1.0], [1.0, 2.0]], 0, "a vector of 2 numbers where others have 1"),
        ([[1.0], [1.0]], 3, "a vector of 1 numbers where others have 3"),
        ([(), ()], 0, "a vector of 0 numbers"),
        ([[1.0], [nan]], 0, "numbers that are none"),
    ],
)
async def test_vectors_that_cannot_be_used(vectors: Any, size: int, what: str) -> None:
    with pytest.raises(UnexpectedModelBehavior, match=what) as caught:
        await embedded(Fixed(*vectors), ["a", "b"], size=size)
    assert not caught.value.retryable


def test_names_tell_embedders_apart() -> None:
    class Engine(Fixed):
        def model_info(self) -> ModelInfo:
            return ModelInfo("small")

    assert embedder_name(Fixed()) == "Fixed"
    assert embedder_name(Engine()) == "small"
    assert embedder_name(HashedEmbedder(64)) == "hashed-64-4" != embedder_name(HashedEmbedder(64, letters=3))


def test_what_is_no_embedder_is_refused() -> None:
    check_embedder(Fixed())
    with pytest.raises(UserError, match=r"an embedder has a method embed\(texts\)"):
        check_embedder("local")


@pytest.mark.parametrize("wrong", [{"size": 0}, {"letters": 1}])
def test_numbers_that_cannot_be(wrong: dict[str, Any]) -> None:
    with pytest.raises(UserError, match="must be"):
        HashedEmbedder(**wrong)


async def test_what_shares_words_is_near() -> None:
    embedder = HashedEmbedder()
    assert isinstance(embedder, Embedder)
    texts = ["when does the library close", "Library closing times", "bread and pretzels", "the of and"]
    question, near, far, nothing = await embedded(embedder, texts)
    assert cosine(question, near) > 0.3 > cosine(question, far)
    assert cosine(question, question) == pytest.approx(1.0)
    assert set(nothing) == {0.0}
    assert repr(embedder) == "HashedEmbedder(1024, letters=4)"


@pytest.mark.integration
def test_another_process_gives_the_same_vector() -> None:
    code = (
        "import asyncio\nfrom flyball.inference.hashed_embedder import HashedEmbedder\n"
        "print(asyncio.run(HashedEmbedder(16).embed(['The library'])))"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert ran.stdout.strip() == str(asyncio.run(HashedEmbedder(16).embed(["The library"])))


@given(st.lists(st.text(), max_size=5))
async def test_any_text_has_a_vector(texts: list[str]) -> None:
    for vector in await embedded(HashedEmbedder(32), texts):
        length = sqrt(sum(number * number for number in vector))
        assert length == pytest.approx(1.0) or length == 0.0
