"""Vectors of chunks in SQLite: what an embedder gave, so that it is asked once for each text."""

from __future__ import annotations

import sys
from array import array
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import msgspec

from flyball.context.chunk import Chunk

if TYPE_CHECKING:
    from sqlite3 import Connection, Cursor

TABLES = (
    "CREATE TABLE IF NOT EXISTS vector (id INTEGER PRIMARY KEY, embedder TEXT NOT NULL, "
    "document TEXT NOT NULL, source TEXT NOT NULL, digest BLOB NOT NULL, content TEXT NOT NULL, "
    "metadata BLOB NOT NULL, numbers BLOB NOT NULL, UNIQUE (embedder, source, digest))",
    "CREATE INDEX IF NOT EXISTS vector_by_document ON vector (embedder, document)",
)
_ALL = "SELECT content, source, metadata, numbers FROM vector WHERE embedder = ? ORDER BY id"
_ADD = (
    "INSERT OR IGNORE INTO vector (embedder, document, source, digest, content, metadata, numbers) "
    "VALUES (?, ?, ?, ?, ?, ?, ?)"
)
_REMOVE = "DELETE FROM vector WHERE embedder = ? AND document = ?"
_METADATA = msgspec.json.Decoder(dict)

Key: TypeAlias = tuple[str, bytes]
Numbers: TypeAlias = Sequence[float]


class Row(NamedTuple):
    """A chunk and its vector, which has the length one."""

    chunk: Chunk
    numbers: Numbers


def changes(connection: Connection) -> int:
    """A number that is another one once somebody else has written to the file."""
    (version,) = connection.execute("PRAGMA data_version").fetchone()
    return version


def rows_of(connection: Connection, embedder: str) -> tuple[Row, ...]:
    """All chunks of an embedder, in the order in which they were added."""
    return tuple(
        [
            Row(Chunk(content, source, 0.0, _METADATA.decode(metadata)), _unpacked(numbers))
            for content, source, metadata, numbers in connection.execute(_ALL, (embedder,))
        ]
    )


def put(cursor: Cursor, embedder: str, chunks: Iterable[Chunk], numbers: Mapping[Key, Numbers]) -> None:
    """Add chunks with their vectors; those that are there already stay as they are."""
    cursor.executemany(_ADD, [_values(embedder, chunk, numbers[chunk.key]) for chunk in chunks])


def take_out(cursor: Cursor, embedder: str, document: str) -> int:
    """Remove a document; gives how many chunks it had."""
    return cursor.execute(_REMOVE, (embedder, document)).rowcount


def _values(embedder: str, chunk: Chunk, numbers: Numbers) -> tuple[object, ...]:
    source, digest = chunk.key
    metadata = msgspec.json.encode(chunk.metadata)
    return embedder, chunk.document, source, digest, chunk.content, metadata, _packed(numbers)


def _packed(numbers: Numbers) -> bytes:
    """Numbers as bytes: 32 bits each, the lowest byte first on every machine."""
    packed = array("f", numbers)
    if sys.byteorder == "big":
        packed.byteswap()
    return packed.tobytes()


def _unpacked(raw: bytes) -> Numbers:
    numbers = array("f")
    numbers.frombytes(raw)
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers
