"""chunk_text: prose in chunks, cut between paragraphs, lines, sentences or words, in this order of liking."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from flyball.context.chunk import DOCUMENT, HEADING, Chunk
from flyball.context.chunking.packing import PROSE, WORDS, Span, overlapping, packed
from flyball.context.chunking.size import DEFAULT, ChunkSize


def chunk_text(text: str, source: str, size: ChunkSize = DEFAULT) -> list[Chunk]:
    """A text in chunks of its own words; none for a text without any."""
    pieces = packed(text, Span(0, len(text)), PROSE, size)
    return chunks_of(text, source, overlapping(text, pieces, WORDS, size))


def chunks_of(
    text: str, document: str, pieces: Iterable[Span], *, source: str = "", heading: str = ""
) -> list[Chunk]:
    """Pieces of a document as chunks. Without a source of their own they have the document's name."""
    about: dict[str, Any] = {DOCUMENT: document, **({HEADING: heading} if heading else {})}
    return [
        Chunk(text[start:end], source or document, metadata={**about, "start": start, "end": end})
        for start, end in pieces
    ]
