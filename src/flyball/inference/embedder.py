"""Embedder: texts become vectors, and near vectors mean like texts. Retrieval and reranking share it."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from operator import mul
from typing import Any, Protocol, runtime_checkable

from flyball.core.encodable import clean_text
from flyball.core.errors import UnexpectedModelBehavior, UserError

BATCH = 32
"""How many texts an embedder is given at once, unless somebody says otherwise."""

product: Callable[[Sequence[float], Sequence[float]], float] = getattr(
    math, "sumprod", lambda one, other: sum(map(mul, one, other))
)
"""The sum of the products of two vectors' numbers; Python has it from 3.12 on, several times as fast."""


@runtime_checkable
class Embedder(Protocol):
    """Gives each text a vector.

    Guarantees: as many vectors as texts, in their order, all of one length; the same text always gives the
    same vector, nearly. A failure is an error of the taxonomy. An attribute `name` may say which it is:
    vectors of embedders with different names are never compared. The embedded engine is one: see
    `docs/local.md`.
    """

    async def embed(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        """A vector for each text."""
        ...


def embedder_name(embedder: Embedder) -> str:
    """What tells an embedder's vectors from those of another: its name, its model's, or its class's."""
    given: Any = embedder
    name = getattr(given, "name", None)
    if isinstance(name, str) and name:
        return name
    return str(given.model_info().name) if hasattr(given, "model_info") else type(given).__name__


def check_embedder(given: object) -> None:
    """Refuse what is no embedder.

    Raises:
        UserError: it has no `embed`.
    """
    if not callable(getattr(given, "embed", None)):
        raise UserError(
            f"an embedder has a method embed(texts), such as HashedEmbedder() or the engine of 'local', "
            f"and {given!r:.100} has none"
        )


async def embedded(
    embedder: Embedder, texts: Sequence[str], *, size: int = 0, batch: int = BATCH
) -> list[tuple[float, ...]]:
    """The vectors of texts, each of length one; asked for in batches, and looked at.

    `size` is how many numbers a vector must have, 0 if that is not known yet. A text without a word in it may
    give a vector of zeros, which is like nothing.

    Raises:
        UnexpectedModelBehavior: another number of vectors than of texts, vectors of several lengths, or
            numbers that are none.
        FlyballError: whatever the embedder raises.
    """
    found: list[tuple[float, ...]] = []
    for start in range(0, len(texts), batch):
        asked = [clean_text(text) for text in texts[start : start + batch]]
        given = await embedder.embed(asked)
        if len(given) != len(asked):
            raise _unusable(embedder, f"{len(given)} vectors for {len(asked)} texts")
        for vector in given:
            size = size or len(vector)
            if len(vector) != size or not size:
                raise _unusable(embedder, f"a vector of {len(vector)} numbers where others have {size}")
            found.append(_of_length_one(embedder, vector))
    return found


def cosine(one: Sequence[float], other: Sequence[float]) -> float:
    """How alike two vectors of length one are: from -1.0 to 1.0."""
    return max(-1.0, min(1.0, product(one, other)))


def _of_length_one(embedder: Embedder, vector: Sequence[float]) -> tuple[float, ...]:
    numbers = tuple([float(number) for number in vector])
    length = math.sqrt(product(numbers, numbers))
    if not math.isfinite(length):
        raise _unusable(embedder, "a vector with numbers that are none")
    return tuple([number / length for number in numbers]) if length else numbers


def _unusable(embedder: Embedder, what: str) -> UnexpectedModelBehavior:
    return UnexpectedModelBehavior(
        f"the embedder {embedder_name(embedder)} gave {what}",
        retryable=False,
        embedder=embedder_name(embedder),
    )
