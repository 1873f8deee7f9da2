"""InMemoryRetriever: chunks that share words with the question. For tests, and for a handful of documents."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import NamedTuple

from msgspec.structs import replace

from flyball.context.chunk import Chunk
from flyball.context.retriever import first, prepared
from flyball.core.words import COMMON, folded, terms, words_in


class _Kept(NamedTuple):
    chunk: Chunk
    words: frozenset[str]


class InMemoryRetriever:
    """Finds chunks by keyword overlap: the score is which part of a question's words a chunk has, up to 1.0.

    A chunk's words are those of its content and of its headings, without case and accents and in the form in
    which they are written: "closing" does not find "closes". Of equal scores, what was added first comes
    first. It forgets with its process.

    Args:
        chunks: what there is to find from the beginning.
        common: words that say nothing about what is asked, in lower case.
    """

    def __init__(self, chunks: Iterable[Chunk] = (), *, common: Collection[str] = COMMON) -> None:
        self._common = common
        self._kept = _indexed(prepared(chunks))

    async def retrieve(self, query: str, limit: int) -> list[Chunk]:
        """See `Retriever.retrieve`."""
        wanted = terms(query, self._common)
        scored = [(len(wanted & kept.words), kept.chunk) for kept in self._kept]
        scored = sorted([one for one in scored if one[0]], key=lambda one: -one[0])
        return [replace(chunk, score=shared / len(wanted)) for shared, chunk in first(scored, limit)]

    async def add(self, chunks: Iterable[Chunk]) -> None:
        """See `Index.add`."""
        self._kept = _indexed([*[kept.chunk for kept in self._kept], *chunks], self._kept)

    async def replace(self, document: str, chunks: Iterable[Chunk]) -> None:
        """See `Index.replace`."""
        others = [kept.chunk for kept in self._kept if kept.chunk.document != document]
        self._kept = _indexed([*others, *prepared(chunks, document)], self._kept)

    async def remove(self, document: str) -> int:
        """See `Index.remove`."""
        before = len(self._kept)
        self._kept = tuple([kept for kept in self._kept if kept.chunk.document != document])
        return before - len(self._kept)

    async def documents(self) -> list[str]:
        """See `Index.documents`."""
        return sorted({kept.chunk.document for kept in self._kept})

    def __repr__(self) -> str:
        return f"InMemoryRetriever({len(self._kept)} chunks)"


def _indexed(chunks: Iterable[Chunk], known: Iterable[_Kept] = ()) -> tuple[_Kept, ...]:
    """Chunks with their words, each once; those that were indexed before are not read again."""
    read = {kept.chunk.key: kept.words for kept in known}
    return tuple([_Kept(chunk, read.get(chunk.key) or _words(chunk)) for chunk in prepared(chunks)])


def _words(chunk: Chunk) -> frozenset[str]:
    return frozenset(map(folded, words_in(f"{chunk.title}\n{chunk.content}")))
