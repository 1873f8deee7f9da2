"""Notes that are found by their words: durable, from many tasks and threads, whatever is asked."""

from __future__ import annotations

import asyncio
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flyball import KnowledgeBase, SQLiteKnowledgeBase
from flyball.core.errors import KnowledgeFailed, MissingLibrary, UserError
from tests.effort import examples
from tests.patience import PATIENCE

LIBRARY = "The library closes at nine."
POOL = "The swimming pool closes at eight."
CAFE = "Das Café heißt Größenwahn."


@pytest.fixture
def base() -> Iterator[SQLiteKnowledgeBase]:
    with SQLiteKnowledgeBase() as opened:
        yield opened


async def test_it_finds_notes_by_their_words_the_best_first(base: SQLiteKnowledgeBase) -> None:
    assert isinstance(base, KnowledgeBase)
    for note in (LIBRARY, POOL, CAFE):
        await base.store(note)
    assert await base.retrieve("When is the library closing?") == f"{LIBRARY}\n\n{POOL}"
    assert await base.retrieve("Is there a POOL?") == POOL
    assert await base.retrieve("GRÖSSENWAHN, größenwahn? cafe!") == CAFE
    assert await base.retrieve("What is it?") == ""
    assert await base.retrieve("bicycles") == ""


async def test_a_note_that_is_there_is_not_stored_again(base: SQLiteKnowledgeBase) -> None:
    for note in (POOL, f" {POOL}\n", POOL, "", "  "):
        await base.store(note)
    assert await base.retrieve("pool") == POOL


async def test_what_is_given_is_not_too_long() -> None:
    with SQLiteKnowledgeBase(limit=3, max_characters=12) as base:
        for note in ("tea cup", "tea x", "tea tea tea tea tea", "tea"):
            await base.store(note)
        assert len(await base.retrieve("tea")) <= 12
    with SQLiteKnowledgeBase(max_characters=5) as base:
        await base.store("tea and biscuits")
        assert await base.retrieve("tea") == "tea a"
    with SQLiteKnowledgeBase(limit=1) as base:
        await base.store("tea one")
        await base.store("tea two")
        assert await base.retrieve("tea") == "tea one"


_ODD = st.sampled_from(
    ['"', "' OR 1=1 --", "* NEAR(", "content:", "\0", "\ud800", ";DROP TABLE knowledge;", "()"]
)


@examples(30)
@given(st.lists(st.text() | _ODD), st.lists(st.text() | _ODD))
def test_whatever_is_stored_and_asked_nothing_breaks(notes: list[str], queries: list[str]) -> None:
    async def play() -> None:
        with SQLiteKnowledgeBase() as base:
            await base.store("tea")
            for note in notes:
                await base.store(note)
            for query in queries:
                assert isinstance(await base.retrieve(query), str)
            assert "tea" in (await base.retrieve("tea")).split("\n\n")

    asyncio.run(play())


@examples(30)
@given(st.text(st.characters(categories=("L", "N"), max_codepoint=0x24F), min_size=1, max_size=20))
def test_a_note_of_one_word_is_found_by_it(word: str) -> None:
    async def play() -> None:
        with SQLiteKnowledgeBase(common=()) as base:
            await base.store(word)
            await base.store(f"x{word}")
            assert word in (await base.retrieve(f"({word})")).split("\n\n")

    asyncio.run(play())


# In a file


async def test_a_file_keeps_its_notes(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "notes.db"
    with SQLiteKnowledgeBase(path) as base:
        await base.store(LIBRARY)
    with SQLiteKnowledgeBase(str(path)) as base:
        await base.store(LIBRARY)
        assert await base.retrieve("library") == LIBRARY


@pytest.mark.integration
def test_a_process_that_is_killed_keeps_what_it_stored(tmp_path: Path) -> None:
    path = tmp_path / "notes.db"
    code = (
        "import asyncio, os, sys\nfrom flyball import SQLiteKnowledgeBase\n"
        "base = SQLiteKnowledgeBase(sys.argv[1])\nasyncio.run(base.store(sys.argv[2]))\n"
        "os.kill(os.getpid(), 9)\n"
    )
    killed = subprocess.run([sys.executable, "-c", code, str(path), LIBRARY], check=False, timeout=PATIENCE)
    assert killed.returncode == -9
    with SQLiteKnowledgeBase(path) as base:
        assert asyncio.run(base.retrieve("library")) == LIBRARY


async def test_tasks_and_threads_at_once(tmp_path: Path) -> None:
    path = tmp_path / "notes.db"
    options: dict[str, Any] = {"limit": 100, "timeout": PATIENCE}
    with SQLiteKnowledgeBase(path, **options) as one, SQLiteKnowledgeBase(path, **options) as other:
        notes = [f"note number{index}" for index in range(40)]
        threads = [Thread(target=asyncio.run, args=(one.store(note),)) for note in notes[:10]]
        for thread in threads:
            thread.start()
        await asyncio.gather(
            *[(one, other)[index % 2].store(note) for index, note in enumerate(notes[5:], 5)]
        )
        for thread in threads:
            await asyncio.to_thread(thread.join)
        assert set((await other.retrieve("note")).split("\n\n")) == set(notes)


async def test_a_file_that_is_locked_is_waited_for_and_then_told(tmp_path: Path) -> None:
    path = tmp_path / "notes.db"
    with SQLiteKnowledgeBase(path, timeout=0.0) as base:
        held = sqlite3.connect(path, isolation_level=None)
        held.execute("BEGIN IMMEDIATE")
        with pytest.raises(
            KnowledgeFailed, match=r"notes.db could not be written: database is locked"
        ) as caught:
            await base.store(LIBRARY)
        assert caught.value.retryable
        held.execute("ROLLBACK")
        held.close()
        await base.store(LIBRARY)
        assert await base.retrieve("library") == LIBRARY


async def test_a_note_and_its_words_are_kept_together(tmp_path: Path) -> None:
    path = tmp_path / "notes.db"
    with SQLiteKnowledgeBase(path) as base:
        spoilt = sqlite3.connect(path)
        spoilt.execute("DROP TABLE knowledge_words")
        spoilt.commit()
        with pytest.raises(KnowledgeFailed, match="no such table"):
            await base.store(LIBRARY)
        assert spoilt.execute("SELECT count(*) FROM knowledge").fetchone() == (0,)
        spoilt.close()


def test_what_is_no_file_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("no database, but long enough to be taken for one" * 30)
    for path in (tmp_path / "text", tmp_path, "\0"):
        with pytest.raises(KnowledgeFailed, match="could not be opened") as caught:
            SQLiteKnowledgeBase(path)
        assert not caught.value.retryable


def test_a_python_without_full_text_search(monkeypatch: pytest.MonkeyPatch) -> None:
    tables = ("CREATE VIRTUAL TABLE words USING fts5_that_is_not_there(content)",)
    monkeypatch.setattr("flyball.context.sqlite_knowledge._TABLES", tables)
    with pytest.raises(MissingLibrary, match="FTS5"):
        SQLiteKnowledgeBase()


async def test_closed_is_closed() -> None:
    base = SQLiteKnowledgeBase()
    base.close()
    base.close()
    with pytest.raises(KnowledgeFailed, match="is closed: open it anew"):
        await base.retrieve("tea")
    assert repr(base) == "SQLiteKnowledgeBase(':memory:')"


@pytest.mark.parametrize("wrong", [{"limit": 0}, {"max_characters": 0}])
def test_numbers_that_cannot_be(wrong: dict[str, Any]) -> None:
    with pytest.raises(UserError, match="must be 1 at least"):
        SQLiteKnowledgeBase(**wrong)
