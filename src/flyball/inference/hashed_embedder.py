"""HashedEmbedder: vectors of the pieces that texts are made of. No model, the same everywhere."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from functools import lru_cache
from hashlib import blake2b
from math import log1p

from flyball.core.errors import UserError
from flyball.core.words import COMMON, folded, words_in

_ENDS = "\N{START OF HEADING}"
"""Stands before and after a word, so that its beginning and its end are pieces of their own."""


class HashedEmbedder:
    """Gives texts with the same words, or with words that have pieces in common, vectors that are near.

    Each word, and each run of `letters` letters in it, is hashed to one place of the vector. So "closing" is
    near "closes", and a slip of a letter does little; but it knows no meaning: "car" and "automobile" are
    strangers. For tests, for machines without a model, and beside a search by words, which it helps where
    endings differ.

    The same text gives the same vector in every process and on every machine.

    Args:
        size: how many numbers a vector has. With fewer, more words fall onto the same place.
        letters: how long the pieces of words are.
        common: words that do not count.

    Raises:
        UserError: a number is too small.
    """

    def __init__(self, size: int = 1024, *, letters: int = 4, common: Collection[str] = COMMON) -> None:
        if size < 8 or letters < 2:
            raise UserError(f"size={size} must be 8 at least, and letters={letters} must be 2")
        self.size = size
        self.letters = letters
        self.name = f"hashed-{size}-{letters}"
        self._common = common

    async def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """See `Embedder.embed`."""
        return await asyncio.to_thread(self._vectors, list(texts))

    def _vectors(self, texts: Sequence[str]) -> list[list[float]]:
        return [self._vector(text) for text in texts]

    def _vector(self, text: str) -> list[float]:
        vector = [0.0] * self.size
        for piece, times in Counter(self._pieces(text)).items():
            number = _number(piece)
            # The sign keeps words that fall onto one place from always adding up.
            sign = 1.0 if number & 1 else -1.0
            vector[(number >> 1) % self.size] += sign * log1p(times)
        return vector

    def _pieces(self, text: str) -> Iterator[str]:
        for word in map(folded, words_in(text)):
            if word in self._common:
                continue
            yield word
            ended = f"{_ENDS}{word}{_ENDS}"
            for start in range(len(ended) - self.letters + 1):
                yield ended[start : start + self.letters]

    def __repr__(self) -> str:
        return f"HashedEmbedder({self.size}, letters={self.letters})"


@lru_cache(1 << 16)
def _number(piece: str) -> int:
    """A number for a piece of a word, the same everywhere."""
    return int.from_bytes(blake2b(piece.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "big")
