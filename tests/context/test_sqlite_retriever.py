"""Documents in a file: durable, from many tasks, threads and processes, whatever is in them."""

from __future__ import annotations

import asyncio
import sqlite3
import subprocess
import sys
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flyball.context.chunk import Chunk
from flyball.context.retriever import Index
from flyball.context.sqlite_knowledge import SQLiteKnowledgeBase
from flyball.context.sqlite_retriever import SQLiteRetriever
from flyball.core.errors import KnowledgeFailed, UserError
from tests.effort import examples

TEA = Chunk("Tea is served at four.", "tea.md#when", metadata={"document": "tea.md", "heading": "Afternoon"})


async def test_words_count_in_any_form_and_more_in_headings() -> None:
    with SQLiteRetriever() as index:
        assert isinstance(index, Index)
        plain = Chunk("They are closing the library in the afternoon.", "a.md")
        await index.add([plain, TEA])
        assert [chunk.source for chunk in await index.retrieve("afternoons", 0)] == ["tea.md#when", "a.md"]
        (found,) = await index.retrieve("closed", 0)
        assert (found.content, found.source) == (plain.content, plain.source)
        assert found.score > 0
        assert await index.retrieve("what is it?", 0) == []


_TEXTS = st.text() | st.sampled_from(
    ['"', "' OR 1=1 --", "* NEAR(", "title:", "\0", "\ud800", ";DROP TABLE chunk;"]
)
_CHUNKS = st.lists(
    st.builds(Chunk, _TEXTS, _TEXTS, metadata=st.dictionaries(_TEXTS, _TEXTS, max_size=2)), max_size=6
)


@examples(30)
@given(_CHUNKS, st.lists(_TEXTS))
def test_whatever_is_added_and_asked_nothing_breaks(chunks: list[Chunk], queries: list[str]) -> None:
    async def play() -> None:
        with SQLiteRetriever() as index:
            await index.add([TEA])
            await index.add(chunks)
            for query in queries:
                found = await index.retrieve(query, 0)
                assert len({chunk.key for chunk in found}) == len(found)
            assert TEA.content in [chunk.content for chunk in await index.retrieve("tea served", 0)]
            for document in await index.documents():
                assert await index.remove(document) > 0
            assert await index.documents() == await index.retrieve("tea", 0) == []

    asyncio.run(play())


async def test_what_is_removed_leaves_no_words() -> None:
    with SQLiteRetriever() as index:
        for _ in range(3):
            await index.replace(
                "tea.md", [TEA, Chunk("Biscuits.", "tea.md#more", metadata={"document": "tea.md"})]
            )
        assert len(await index.retrieve("tea biscuits", 0)) == 2
        assert await index.remove("tea.md") == 2
        assert await index.retrieve("tea biscuits", 0) == []


@pytest.mark.integration
def test_a_process_that_is_killed_keeps_what_it_did(tmp_path: Path) -> None:
    path = tmp_path / "index.db"
    code = (
        "import asyncio, os, sys\nfrom flyball.context.chunk import Chunk\n"
        "from flyball.context.sqlite_retriever import SQLiteRetriever\n"
        "index = SQLiteRetriever(sys.argv[1])\n"
        "asyncio.run(index.add([Chunk('old tea', 'a.md'), Chunk('bread', 'b.md')]))\n"
        "asyncio.run(index.replace('a.md', [Chunk('new tea', 'a.md')]))\n"
        "asyncio.run(index.remove('b.md'))\n"
        "os.kill(os.getpid(), 9)\n"
    )
    killed = subprocess.run([sys.executable, "-c", code, str(path)], check=False, timeout=60)
    assert killed.returncode == -9
    with SQLiteRetriever(path) as index:
        assert [chunk.content for chunk in asyncio.run(index.retrieve("tea bread", 0))] == ["new tea"]


@pytest.mark.integration
def test_a_replacement_that_is_cut_off_changes_nothing(tmp_path: Path) -> None:
    """The process dies inside the transaction, with the old chunks taken out and half of the new ones in."""
    path = tmp_path / "index.db"
    with SQLiteRetriever(path) as index:
        asyncio.run(index.add([Chunk("old tea", "a.md")]))
    code = (
        "import asyncio, os, sys\nimport flyball.context.sqlite_retriever as it\n"
        "from flyball.context.chunk import Chunk\n"
        "index = it.SQLiteRetriever(sys.argv[1])\n"
        "index._file._connection.create_function('die', 0, lambda: os.kill(os.getpid(), 9))\n"
        "it._ADD = it._ADD.replace('VALUES (?,', \"VALUES (CASE ? WHEN 'die' THEN die() ELSE 'a.md' END,\")\n"
        "parts = [Chunk('new tea', 'a.md'), Chunk('more', 'a.md#b', metadata={'document': 'a.md'})]\n"
        "it.prepared = lambda chunks, document=None: [*chunks, Chunk('x', 'die')]\n"
        "asyncio.run(index.replace('a.md', parts))\n"
    )
    killed = subprocess.run([sys.executable, "-c", code, str(path)], check=False, timeout=60)
    assert killed.returncode == -9
    with SQLiteRetriever(path) as index:
        assert [chunk.content for chunk in asyncio.run(index.retrieve("tea more", 0))] == ["old tea"]


@pytest.mark.integration
async def test_tasks_threads_and_processes_at_once(tmp_path: Path) -> None:
    path = tmp_path / "index.db"
    code = (
        "import asyncio, sys\nfrom flyball.context.chunk import Chunk\n"
        "from flyball.context.sqlite_retriever import SQLiteRetriever\n"
        "async def main():\n"
        "    with SQLiteRetriever(sys.argv[1], timeout=60) as index:\n"
        "        added = [[Chunk(f'note {n}', f'{sys.argv[2]}-{n}')] for n in range(10)]\n"
        "        await asyncio.gather(*[index.add(chunks) for chunks in added])\n"
        "asyncio.run(main())\n"
    )
    with SQLiteRetriever(path, timeout=60) as index:
        running = [
            await asyncio.create_subprocess_exec(sys.executable, "-c", code, str(path), name)
            for name in ("one", "two")
        ]
        added = [index.add([Chunk(f"note {number}", f"thread-{number}")]) for number in range(10)]
        threads = [Thread(target=asyncio.run, args=(one,)) for one in added[:5]]
        for thread in threads:
            thread.start()
        await asyncio.gather(*added[5:])
        for thread in threads:
            await asyncio.to_thread(thread.join)
        assert [await process.wait() for process in running] == [0, 0]
        assert len(await index.retrieve("note", 0)) == 30


async def test_a_file_may_hold_notes_and_documents(tmp_path: Path) -> None:
    path = tmp_path / "both.db"
    with SQLiteRetriever(path) as index, SQLiteKnowledgeBase(path) as notes:
        await index.add([TEA])
        await notes.store("Tea is out.")
        assert await notes.retrieve("tea") == "Tea is out."
        assert [chunk.content for chunk in await index.retrieve("tea", 0)] == [TEA.content]


async def test_failures_are_told_with_the_file(tmp_path: Path) -> None:
    path = tmp_path / "index.db"
    with SQLiteRetriever(path, timeout=0.0) as index:
        held = sqlite3.connect(path, isolation_level=None)
        held.execute("BEGIN IMMEDIATE")
        with pytest.raises(
            KnowledgeFailed, match=r"the index .*index.db could not be written: .*locked"
        ) as caught:
            await index.add([TEA])
        assert caught.value.retryable
        held.execute("ROLLBACK")
        held.close()
        with pytest.raises(UserError, match=r"a chunk of 'a' cannot be kept: its metadata\['x'\]"):
            await index.add([Chunk("x", "a", metadata={"x": object()})])
    for ask in (index.retrieve("tea", 1), index.add([TEA]), index.remove("tea"), index.documents()):
        with pytest.raises(KnowledgeFailed, match="is closed: open it anew"):
            await ask
    (tmp_path / "text").write_text("no database, but long enough to be taken for one" * 30)
    broken: Any = tmp_path / "text"
    with pytest.raises(KnowledgeFailed, match=r"the index .*text could not be opened"):
        SQLiteRetriever(broken)
    assert repr(SQLiteRetriever()) == "SQLiteRetriever(':memory:')"
