"""SQLiteKnowledgeBase: notes that are found by their words, in a file or in memory."""

from __future__ import annotations

import os
from collections.abc import Collection
from typing import TYPE_CHECKING

from flyball.context.sqlite_file import SQLiteFile, word_index
from flyball.context.words import search_for
from flyball.core.encodable import clean_text
from flyball.core.errors import UserError
from flyball.core.words import COMMON

if TYPE_CHECKING:
    from sqlite3 import Connection

_TABLES = (
    "CREATE TABLE IF NOT EXISTS knowledge (id INTEGER PRIMARY KEY, content TEXT NOT NULL UNIQUE)",
    *word_index("knowledge", "content"),
)
_FIND = (
    "SELECT knowledge.content FROM knowledge_words JOIN knowledge ON knowledge.id = knowledge_words.rowid "
    "WHERE knowledge_words MATCH ? ORDER BY knowledge_words.rank, knowledge.id LIMIT ?"
)
_KEEP = "INSERT OR IGNORE INTO knowledge (content) VALUES (?)"
_BETWEEN = "\n\n"


class SQLiteKnowledgeBase:
    """Notes in one SQLite file, found by their words (BM25), the best first. In memory without a file.

    A note that is stored is durable when `store` has returned, and a note that is there already is not stored
    again. A question's words are looked for in any form that English gives them, and without accents;
    those in `common` do not count. What words are is decided by spaces and punctuation.

    It may be used from many tasks and threads at once, and a file from many processes; no event loop waits
    for the disk. Close it with `close()` or `with`; if that is forgotten, nothing is lost.

    Args:
        path: the file; it and its folder are made if they are not there.
        limit: how many notes are given at most.
        max_characters: how long what is given may be; a note that does not fit as well is left out, and the
            best one, if it alone is longer, is cut.
        common: words that say nothing about what is asked, in lower case.
        timeout: how many seconds a call waits while others hold the file locked.

    Raises:
        UserError: a number is too small.
        KnowledgeFailed: the file cannot be opened, or is none of SQLite's.
        MissingLibrary: this Python's SQLite has no full-text search.
    """

    def __init__(
        self,
        path: str | os.PathLike[str] = ":memory:",
        *,
        limit: int = 5,
        max_characters: int = 8000,
        common: Collection[str] = COMMON,
        timeout: float = 5.0,
    ) -> None:
        if limit < 1 or max_characters < 1:
            raise UserError(f"limit={limit} and max_characters={max_characters} must be 1 at least")
        self.limit = limit
        self.max_characters = max_characters
        self._common = common
        self._file = SQLiteFile(path, _TABLES, called="the knowledge base", timeout=timeout)

    async def retrieve(self, query: str) -> str:
        """The notes that have most in common with a question, with an empty line between them.

        Raises:
            KnowledgeFailed: the file cannot be read.
        """
        search = search_for(clean_text(query), self._common)
        if not search:
            return ""
        return self._fitting(await self._file.read(lambda connection: self._found(connection, search)))

    async def store(self, content: str) -> None:
        """Keep a note. One without a word in it is not kept.

        Raises:
            KnowledgeFailed: the file cannot be written.
        """
        note = clean_text(content).strip()
        if note:
            await self._file.write(lambda cursor: cursor.execute(_KEEP, (note,)))

    def close(self) -> None:
        """Close the file. Closing twice does no harm."""
        self._file.close()

    def __enter__(self) -> SQLiteKnowledgeBase:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"SQLiteKnowledgeBase({self._file.path!r})"

    def _found(self, connection: Connection, search: str) -> list[str]:
        return [content for (content,) in connection.execute(_FIND, (search, self.limit))]

    def _fitting(self, notes: list[str]) -> str:
        """The notes as one text that is not too long."""
        kept: list[str] = []
        room = self.max_characters
        for note in notes:
            needed = len(note) + (len(_BETWEEN) if kept else 0)
            if needed <= room:
                kept.append(note)
                room -= needed
        return _BETWEEN.join(kept) if kept or not notes else notes[0][: self.max_characters]
