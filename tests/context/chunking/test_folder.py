"""Folders of files, good and bad."""

from __future__ import annotations

import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from flyball.context.chunking import ChunkSize, Skipped, load_folder
from flyball.context.chunking.patterns import matching
from flyball.context.in_memory import InMemoryRetriever
from flyball.context.refreshing import refresh_index
from flyball.core.errors import KnowledgeFailed, UserError


def write(folder: Path, **files: str | bytes) -> None:
    for name, content in files.items():
        path = folder / name.replace("__", "/").replace("_DOT_", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())


def test_files_are_cut_by_their_kinds_and_named_from_the_folder(tmp_path: Path) -> None:
    write(
        tmp_path,
        b__guide_DOT_md="# Guide\r\n\r\nRead it.",
        a_DOT_txt=b"\xef\xbb\xbfTea.",
        shop_DOT_py="def pay(): ...\n",
        picture_DOT_png=b"\x89PNG",
        _DOT_git__config_DOT_md="hidden",
    )
    loaded = load_folder(tmp_path)
    assert [(chunk.source, chunk.content) for chunk in loaded.chunks] == [
        ("a.txt", "Tea."),
        ("b/guide.md#guide", "# Guide\n\nRead it."),
        ("shop.py#pay", "def pay(): ..."),
    ]
    assert loaded.skipped == ()
    assert list(loaded.documents) == ["a.txt", "b/guide.md", "shop.py"]
    assert [chunk.source for chunk in load_folder(str(tmp_path), ["b/*"]).chunks] == ["b/guide.md#guide"]
    assert [chunk.source for chunk in load_folder(tmp_path, [".git/*"]).chunks] == [".git/config.md"]


def test_what_cannot_be_read_is_told(tmp_path: Path) -> None:
    outside = tmp_path / "outside.txt"
    outside.write_text("secret")
    folder = tmp_path / "docs"
    write(
        folder,
        good_DOT_txt="fine",
        latin_DOT_txt="Größe".encode("latin-1"),
        zeros_DOT_txt=b"text\0text",
        long_DOT_txt="x" * 100,
        empty_DOT_txt="",
    )
    os.symlink(outside, folder / "link.txt")
    os.symlink(folder, folder / "again")
    os.symlink("loop.txt", folder / "loop.txt")
    os.symlink("gone.txt", folder / "dangling.txt")
    os.symlink("good.txt", folder / "twin.txt")
    os.mkfifo(folder / "pipe.txt")
    loaded = load_folder(folder, max_bytes=50)
    assert [chunk.source for chunk in loaded.chunks] == ["good.txt", "twin.txt"]
    reasons = {skipped.source: skipped.reason for skipped in loaded.skipped}
    assert reasons.pop("loop.txt")
    assert reasons == {
        "dangling.txt": "No such file or directory",
        "latin.txt": "it is no UTF-8 text: byte 2 is 0xf6",
        "link.txt": "it is a link out of the folder",
        "long.txt": "it has 100 bytes, and max_bytes is 50",
        "pipe.txt": "it is no plain file",
        "zeros.txt": "it is no text: there are zero bytes in it",
    }
    with pytest.raises(KnowledgeFailed, match=r"dangling.txt could not be read: No such file"):
        load_folder(folder, max_bytes=50, on_error="raise")


@contextmanager
def as_somebody(folder: Path) -> Generator[None]:
    """Root may read everything: then it is somebody else for a while, who may look into the folder."""
    if os.geteuid() != 0:
        yield
        return
    for place in (folder, *folder.parents[:4]):
        if (mode := place.stat().st_mode) & 0o055 != 0o055:
            place.chmod(mode | 0o055)
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


def test_what_may_not_be_read_is_told(tmp_path: Path) -> None:
    write(tmp_path, a_DOT_txt="x")
    (tmp_path / "a.txt").chmod(0)
    write(tmp_path, closed__b_DOT_txt="y")
    (tmp_path / "closed").chmod(0)
    try:
        with as_somebody(tmp_path):
            loaded = load_folder(tmp_path)
            with pytest.raises(KnowledgeFailed, match=r"a.txt could not be read: Permission denied"):
                load_folder(tmp_path, on_error="raise")
    finally:
        (tmp_path / "closed").chmod(0o700)
    assert loaded.skipped == (Skipped("a.txt", "Permission denied"), Skipped("closed", "Permission denied"))


def test_folders_that_are_none(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="there is no folder"):
        load_folder(tmp_path / "none")
    with pytest.raises(UserError, match="patterns= takes several"):
        load_folder(tmp_path, "*.md")


def test_sizes_reach_the_files(tmp_path: Path) -> None:
    write(tmp_path, a_DOT_txt="one two three four")
    assert len(load_folder(tmp_path, size=ChunkSize(2, 0)).chunks) == 3


async def test_an_index_is_brought_to_what_a_folder_has(tmp_path: Path) -> None:
    write(tmp_path, a_DOT_txt="apples", b_DOT_txt="bread", c_DOT_txt="cheese")
    index = InMemoryRetriever()
    await refresh_index(index, load_folder(tmp_path))
    write(tmp_path, a_DOT_txt="apricots", c_DOT_txt=b"\xff")
    (tmp_path / "b.txt").unlink()
    await refresh_index(index, load_folder(tmp_path))
    assert await index.documents() == ["a.txt", "c.txt"], "what cannot be read just now stays"
    assert await index.retrieve("apples bread", 0) == []
    assert [chunk.content for chunk in await index.retrieve("apricots cheese", 0)] == ["cheese", "apricots"]


@pytest.mark.parametrize(
    ("pattern", "yes", "no"),
    [
        ("*.md", ["a.md", "b/a.md", "b/c/.md"], ["a.mdx", "a.md/b"]),
        ("docs/*.md", ["docs/a.md"], ["docs/b/a.md", "a.md", "x/docs/a.md"]),
        ("docs/**/*.md", ["docs/a.md", "docs/b/c/a.md"], ["a.md"]),
        ("docs/**", ["docs/a", "docs/b/c"], ["docs"]),
        ("./a?.[ab]", ["ax.a", "ay.b"], ["a/.a", "ax.c"]),
        ("x[!ab]", ["xc", "d/xc"], ["xa", "x/"]),
        ("a[]b", ["a[]b"], ["ab"]),
        ("a+(b).txt", ["a+(b).txt"], ["aab.txt"]),
        ("[]-]", ["]", "-"], ["a"]),
        ("[a^]", ["^", "a"], ["b"]),
    ],
)
def test_patterns(pattern: str, yes: list[str], no: list[str]) -> None:
    compiled: Any = matching(pattern)
    assert [name for name in yes if not compiled.match(name)] == []
    assert [name for name in no if compiled.match(name)] == []
