"""Chunk: a piece of text that was found, where it is from, and how well it fits."""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import blake2b
from typing import Any

from msgspec import Struct, field

DOCUMENT = "document"
"""The key of a chunk's metadata that names the document it was cut from."""
HEADING = "heading"
"""The key of a chunk's metadata for the headings above it, the outermost first, or a definition's name."""


class Chunk(Struct, frozen=True, omit_defaults=True, repr_omit_defaults=True):
    """A piece of text with its provenance.

    `source` says where it is from, in words that may be shown: `guide.md#setting-up`. `score` is the one of
    the retriever that found it: higher is better, and no two retrievers' scores can be compared. `metadata`
    is JSON; flyball's own keys are `document`, `heading`, and `start` and `end`, the place in the document's
    text.
    """

    content: str
    source: str
    score: float = 0.0
    metadata: dict[str, Any] = field(default_factory=dict[str, Any])

    @property
    def document(self) -> str:
        """What it is added, replaced and removed with: the document's name, or without one the source."""
        return str(self.metadata.get(DOCUMENT) or self.source)

    @property
    def title(self) -> str:
        """The document and the headings that it stands under, or without them the source."""
        heading = self.metadata.get(HEADING)
        return f"{self.document} {heading}" if heading else self.source

    @property
    def key(self) -> tuple[str, bytes]:
        """What tells it from others: its source, and a hash of its content."""
        return self.source, blake2b(self.content.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def unique(chunks: Iterable[Chunk]) -> list[Chunk]:
    """Chunks without those that are there twice: of the same source and content the highest score stays.

    It stands where the first of them stood; the order is kept otherwise.
    """
    best: dict[tuple[str, bytes], Chunk] = {}
    for chunk in chunks:
        known = best.get(chunk.key)
        if known is None or chunk.score > known.score:
            best[chunk.key] = chunk
    return list(best.values())
