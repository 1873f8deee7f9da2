"""SQLiteRetriever: documents in a file, found by their words."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING

import msgspec

from flyball.context.chunk import Chunk
from flyball.context.retriever import prepared
from flyball.context.sqlite_file import SQLiteFile, word_index
from flyball.context.words import search_for
from flyball.core.encodable import clean_text
from flyball.core.words import COMMON

if TYPE_CHECKING:
    from sqlite3 import Connection, Cursor

TITLE_WEIGHT = 2.0
"""How much more a word counts in the name and the headings of a document than in its text."""

_TABLES = (
    "CREATE TABLE IF NOT EXISTS chunk (id INTEGER PRIMARY KEY, document TEXT NOT NULL, source TEXT NOT NULL, "
    "digest BLOB NOT NULL, title TEXT NOT NULL, content TEXT NOT NULL, metadata BLOB NOT NULL, "
    "UNIQUE (source, digest))",
    "CREATE INDEX IF NOT EXISTS chunk_by_document ON chunk (document)",
    *word_index("chunk", "title", "content"),
)
_FIND = (
    f"SELECT chunk.content, chunk.source, bm25(chunk_words, {TITLE_WEIGHT}, 1.0) AS fit, chunk.metadata "
    "FROM chunk_words JOIN chunk ON chunk.id = chunk_words.rowid "
    "WHERE chunk_words MATCH ? ORDER BY fit, chunk.id LIMIT ?"
)
_ADD = (
    "INSERT OR IGNORE INTO chunk (document, source, digest, title, content, metadata) "
    "VALUES (?, ?, ?, ?, ?, ?)"
)
_REMOVE = "DELETE FROM chunk WHERE document = ?"
_DOCUMENTS = "SELECT DISTINCT document FROM chunk ORDER BY document"
_METADATA = msgspec.json.Decoder(dict)


class SQLiteRetriever:
    """Documents in one SQLite file, found by their words (BM25), the best first. In memory without a file.

    What `add`, `replace` and `remove` did is durable when they have returned, whole or not at all, `kill -9`
    included. Words are looked for in any form that English gives them, and without accents; one in a heading
    or a document's name counts more than one in the text. The score is BM25's, above 0.

    It may be used from many tasks and threads at once, and a file from many processes, each of which finds
    what the others have added; no event loop waits for the disk. Close it with `close()` or `with`; if that
    is forgotten, nothing is lost.

    Args:
        path: the file; it and its folder are made if they are not there. A knowledge base's file will do.
        common: words that say nothing about what is asked, in lower case.
        timeout: how many seconds a call waits while others hold the file locked.

    Raises:
        KnowledgeFailed: the file cannot be opened, or is none of SQLite's.
        MissingLibrary: this Python's SQLite has no full-text search.
    """

    def __init__(
        self,
        path: str | os.PathLike[str] = ":memory:",
        *,
        common: Collection[str] = COMMON,
        timeout: float = 5.0,
    ) -> None:
        self._common = common
        self._file = SQLiteFile(path, _TABLES, called="the index", timeout=timeout)

    async def retrieve(self, query: str, limit: int) -> list[Chunk]:
        """See `Retriever.retrieve`.

        Raises:
            KnowledgeFailed: the file cannot be read.
        """
        search = search_for(clean_text(query), self._common)
        if not search:
            return []
        return await self._file.read(lambda connection: _found(connection, search, limit))

    async def add(self, chunks: Iterable[Chunk]) -> None:
        """See `Index.add`.

        Raises:
            KnowledgeFailed: the file cannot be written.
        """
        rows = [_row(chunk) for chunk in prepared(chunks)]
        await self._file.write(lambda cursor: cursor.executemany(_ADD, rows))

    async def replace(self, document: str, chunks: Iterable[Chunk]) -> None:
        """See `Index.replace`.

        Raises:
            KnowledgeFailed: the file cannot be written.
            UserError: a chunk is of another document.
        """
        document = clean_text(document)
        rows = [_row(chunk) for chunk in prepared(chunks, document)]

        def put(cursor: Cursor) -> None:
            cursor.execute(_REMOVE, (document,))
            cursor.executemany(_ADD, rows)

        await self._file.write(put)

    async def remove(self, document: str) -> int:
        """See `Index.remove`.

        Raises:
            KnowledgeFailed: the file cannot be written.
        """
        name = clean_text(document)
        return await self._file.write(lambda cursor: cursor.execute(_REMOVE, (name,)).rowcount)

    async def documents(self) -> list[str]:
        """See `Index.documents`.

        Raises:
            KnowledgeFailed: the file cannot be read.
        """
        found = await self._file.read(lambda connection: connection.execute(_DOCUMENTS).fetchall())
        return sorted([name for (name,) in found])

    def close(self) -> None:
        """Close the file. Closing twice does no harm."""
        self._file.close()

    def __enter__(self) -> SQLiteRetriever:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"SQLiteRetriever({self._file.path!r})"


def _row(chunk: Chunk) -> tuple[object, ...]:
    source, digest = chunk.key
    return chunk.document, source, digest, chunk.title, chunk.content, msgspec.json.encode(chunk.metadata)


def _found(connection: Connection, search: str, limit: int) -> list[Chunk]:
    rows = connection.execute(_FIND, (search, limit if limit > 0 else -1))
    return [
        Chunk(content, source, -fit, _METADATA.decode(metadata)) for content, source, fit, metadata in rows
    ]
