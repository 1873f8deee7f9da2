"""Retriever: finds chunks. Index: a retriever whose chunks can be changed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Protocol, TypeVar, runtime_checkable

from msgspec.structs import replace

from flyball.context.chunk import Chunk
from flyball.core.encodable import NotEncodable, clean_text, to_json
from flyball.core.errors import UserError

T = TypeVar("T")


@runtime_checkable
class Retriever(Protocol):
    """Finds what helps with a question.

    Guarantees: the best come first; none that has nothing to do with the question; no chunk twice; any text
        may be asked, and does no harm. A failure is an error of the taxonomy. The limit has to be said: what
        can be asked without one is a `KnowledgeBase`. `flyball.testing.conformance.RetrieverConformance`
        checks an implementation.
    """

    async def retrieve(self, query: str, limit: int) -> list[Chunk]:
        """At most `limit` chunks that fit a question; all that fit if it is 0 or less."""
        ...


@runtime_checkable
class Index(Retriever, Protocol):
    """A retriever that is told what there is to find, document by document.

    Each call happens whole or not at all. A chunk belongs to its `document`.
    """

    async def add(self, chunks: Iterable[Chunk]) -> None:
        """Add chunks. One that is there already, by its source and content, is not added again."""
        ...

    async def replace(self, document: str, chunks: Iterable[Chunk]) -> None:
        """Put chunks in the place of all that a document had; none of them removes it.

        Raises:
            UserError: a chunk is of another document.
        """
        ...

    async def remove(self, document: str) -> int:
        """Remove a document; gives how many chunks it had."""
        ...

    async def documents(self) -> list[str]:
        """The names of the documents that are there, sorted."""
        ...


def prepared(chunks: Iterable[Chunk], document: str | None = None) -> list[Chunk]:
    """Chunks as an index keeps them: as JSON can hold them, each once; all of one document, if one is named.

    Raises:
        UserError: a chunk is of another document, or its metadata has no JSON form.
    """
    kept: dict[tuple[str, bytes], Chunk] = {}
    for given in chunks:
        chunk = replace(
            given, content=clean_text(given.content), source=clean_text(given.source), metadata=_json(given)
        )
        if document is not None and chunk.document != document:
            raise UserError(
                f"replace({document!r}, ...) was given a chunk of {chunk.document!r}: its metadata should "
                f"have 'document': {document!r}"
            )
        kept.setdefault(chunk.key, chunk)
    return list(kept.values())


def _json(chunk: Chunk) -> dict[str, Any]:
    try:
        return to_json(chunk.metadata, "metadata")
    except NotEncodable as error:
        raise UserError(f"a chunk of {chunk.source!r} cannot be kept: its {error}") from error


def first(found: Sequence[T], limit: int) -> list[T]:
    """As many as are wanted; all if the limit is 0 or less."""
    return list(found[:limit]) if limit > 0 else list(found)
