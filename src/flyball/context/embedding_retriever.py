"""EmbeddingRetriever: chunks whose vectors are near the question's."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterable, Sequence
from operator import itemgetter
from typing import TYPE_CHECKING

from msgspec.structs import replace

from flyball.context.chunk import Chunk
from flyball.context.retriever import first, prepared
from flyball.context.sqlite_file import SQLiteFile
from flyball.context.vectors import TABLES, Key, Numbers, Row, changes, put, rows_of, take_out
from flyball.core.errors import UserError
from flyball.inference.embedder import BATCH, Embedder, check_embedder, cosine, embedded, embedder_name

if TYPE_CHECKING:
    from sqlite3 import Connection, Cursor


class EmbeddingRetriever:
    """Finds chunks by the cosine of their vectors with the question's; that is the score, up to 1.0.

    Vectors are held in memory and compared one by one, which suits some ten thousand chunks. With a `path`
    they are kept in a SQLite file too, durable when a call has returned, whole or not at all; then a text is
    embedded once and never again, and other processes find what was added. A file may hold vectors of several
    embedders: each finds its own.

    It may be used from many tasks and threads at once, if the embedder may; no event loop waits for the disk
    or for the comparing. What the embedder raises is raised as it is, and then nothing was added.

    Args:
        embedder: who makes vectors of texts.
        path: the file; it and its folder are made if they are not there. An `SQLiteRetriever`'s will do.
        min_score: chunks are found whose score is above it.
        batch: how many texts the embedder is given at once.
        timeout: how many seconds a call waits while others hold the file locked.

    Raises:
        UserError: the embedder is none, or a number cannot be.
        KnowledgeFailed: the file cannot be opened, or is none of SQLite's.
    """

    def __init__(
        self,
        embedder: Embedder,
        path: str | os.PathLike[str] = ":memory:",
        *,
        min_score: float = 0.0,
        batch: int = BATCH,
        timeout: float = 5.0,
    ) -> None:
        check_embedder(embedder)
        if not 0.0 <= min_score <= 1.0 or batch < 1:
            raise UserError(
                f"min_score={min_score} must be from 0 to 1, and batch={batch} must be 1 at least"
            )
        self.embedder = embedder
        self.min_score = min_score
        self._batch = batch
        self._name = embedder_name(embedder)
        self._file = SQLiteFile(path, TABLES, called="the index", timeout=timeout)
        self._read: tuple[int, tuple[Row, ...]] | None = None

    async def retrieve(self, query: str, limit: int) -> list[Chunk]:
        """See `Retriever.retrieve`.

        Raises:
            KnowledgeFailed: the file cannot be read.
            FlyballError: the embedder failed.
        """
        rows = await self._file.read(self._rows)
        if not rows or not query.strip():
            return []
        (wanted,) = await embedded(self.embedder, [query], size=len(rows[0].numbers))
        return await asyncio.to_thread(_nearest, rows, wanted, self.min_score, limit)

    async def add(self, chunks: Iterable[Chunk]) -> None:
        """See `Index.add`.

        Raises:
            KnowledgeFailed: the file cannot be read or written.
            FlyballError: the embedder failed.
        """
        await self._put(None, prepared(chunks))

    async def replace(self, document: str, chunks: Iterable[Chunk]) -> None:
        """See `Index.replace`. Only what has changed is embedded.

        Raises:
            KnowledgeFailed: the file cannot be read or written.
            FlyballError: the embedder failed, or a chunk is of another document.
        """
        await self._put(document, prepared(chunks, document))

    async def remove(self, document: str) -> int:
        """See `Index.remove`.

        Raises:
            KnowledgeFailed: the file cannot be written.
        """
        return await self._file.write(lambda cursor: self._changed(take_out(cursor, self._name, document)))

    async def documents(self) -> list[str]:
        """See `Index.documents`.

        Raises:
            KnowledgeFailed: the file cannot be read.
        """
        return sorted({row.chunk.document for row in await self._file.read(self._rows)})

    def close(self) -> None:
        """Close the file. Closing twice does no harm. The embedder is its owner's to close."""
        self._file.close()

    def __enter__(self) -> EmbeddingRetriever:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"EmbeddingRetriever({self.embedder!r}, {self._file.path!r})"

    def _rows(self, connection: Connection) -> tuple[Row, ...]:
        """All chunks with their vectors; read again only after something was written, by anybody."""
        version = changes(connection)
        if self._read is None or self._read[0] != version:
            self._read = (version, rows_of(connection, self._name))
        return self._read[1]

    async def _put(self, document: str | None, chunks: Sequence[Chunk]) -> None:
        """Add chunks, in the place of a document's if one is named."""
        rows = await self._file.read(self._rows)
        known: dict[Key, Numbers] = {row.chunk.key: row.numbers for row in rows}
        new = [chunk for chunk in chunks if chunk.key not in known]
        size = len(rows[0].numbers) if rows else 0
        texts = [f"{chunk.title}\n{chunk.content}" for chunk in new]
        vectors = await embedded(self.embedder, texts, size=size, batch=self._batch)
        known.update({chunk.key: numbers for chunk, numbers in zip(new, vectors, strict=True)})

        def work(cursor: Cursor) -> None:
            if document is not None:
                take_out(cursor, self._name, document)
            self._changed(put(cursor, self._name, chunks, known))

        await self._file.write(work)

    def _changed(self, done: int | None) -> int:
        """Have what was read forgotten: SQLite tells of others' changes only."""
        self._read = None
        return done or 0


def _nearest(rows: Sequence[Row], wanted: Numbers, above: float, limit: int) -> list[Chunk]:
    places = [place for place, number in enumerate(wanted) if number]
    if 1 < len(places) < len(wanted) // 4:  # a hashed question has few numbers that are not zero
        there = itemgetter(*places)
        few = there(wanted)
        scored = [(cosine(few, there(row.numbers)), row.chunk) for row in rows]
    else:
        scored = [(cosine(wanted, row.numbers), row.chunk) for row in rows]
    scored = sorted([one for one in scored if one[0] > above], key=lambda one: -one[0])
    return [replace(chunk, score=score) for score, chunk in first(scored, limit)]
