"""Pages in chunks."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flyball.context.chunking import ChunkSize, chunk_markdown
from flyball.context.chunking.markdown import anchor_of
from tests.context.chunking.texts import check_chunks, sizes, texts

DOCS = Path(__file__).resolve().parents[3] / "docs"


@given(texts, sizes)
def test_nothing_is_lost_order_is_kept_sizes_are_bounded(text: str, size: ChunkSize) -> None:
    check_chunks(text, chunk_markdown(text, "a.md", size), size)


@pytest.mark.parametrize("page", sorted(DOCS.glob("*.md")), ids=lambda page: page.name)
def test_so_it_is_of_real_pages(page: Path) -> None:
    text, size = page.read_text(encoding="utf-8"), ChunkSize()
    check_chunks(text, chunk_markdown(text, page.name, size), size)


PAGE = """Before all.

# Guide

## Setting up

Install it.

```console
$ # no heading
$ install

$ done
```

### On Linux ###

Nothing else.

Using it
--------

Use it.
"""


def test_each_section_has_its_own_chunks_and_knows_its_headings() -> None:
    found = [
        (chunk.source, chunk.metadata.get("heading"), chunk.content.splitlines()[0], chunk.title)
        for chunk in chunk_markdown(PAGE, "guide.md")
    ]
    assert found == [
        ("guide.md", None, "Before all.", "guide.md"),
        ("guide.md#setting-up", "Guide > Setting up", "# Guide", "guide.md Guide > Setting up"),
        (
            "guide.md#on-linux",
            "Guide > Setting up > On Linux",
            "### On Linux ###",
            "guide.md Guide > Setting up > On Linux",
        ),
        ("guide.md#using-it", "Guide > Using it", "Using it", "guide.md Guide > Using it"),
    ]


def test_a_block_of_code_is_not_parted_if_it_fits() -> None:
    block = "```python\none = 1\n\n\ntwo = 2\n\nthree = 3\n```"
    text = f"# A\n\nSome words before it.\n\n{block}\n\nSome words after it."
    assert any(block in chunk.content for chunk in chunk_markdown(text, "a.md", ChunkSize(12, 2)))
    small = chunk_markdown(text, "a.md", ChunkSize(6, 0))
    assert all(len(chunk.content) <= 24 for chunk in small), "what does not fit is parted all the same"


_LINES = st.lists(st.sampled_from(["x = 1", "", "# no heading", "    return", "``"]), max_size=12)
_MARKS = st.sampled_from(["```", "~~~~"])
_BLOCKS = st.tuples(_MARKS, _LINES).map(lambda block: "\n".join([block[0], *block[1], block[0]]))
_PARTS = st.lists(_BLOCKS | st.sampled_from(["# A", "## B", "Some words.", "- a list\n- of two"]), max_size=8)


@given(_PARTS, sizes)
def test_no_block_that_fits_is_parted(parts: list[str], size: ChunkSize) -> None:
    chunks = chunk_markdown("\n\n".join(parts), "a.md", size)
    for part in parts:
        if part.startswith(("```", "~~~~")) and size.fits(part):
            assert any(part in chunk.content for chunk in chunks)


def test_overlap_stays_in_its_section_and_out_of_code() -> None:
    text = "# A\n\none two three four five six seven\n\n```\nx = 1\n```\n\nlast words\n\n# B\n\nother"
    found = [chunk.content for chunk in chunk_markdown(text, "a.md", ChunkSize(8, 3))]
    assert found[-1] == "# B\n\nother"
    assert not [content for content in found if content.startswith(("x", "="))]
    assert any(content.count("```") == 2 for content in found)


@pytest.mark.parametrize(
    ("text", "sources"),
    [
        ("---\ntitle: x\n---\n\n# A\n\nyes", ["a.md", "a.md#a"]),
        ("```\n# never closed\n", ["a.md"]),
        ("~~~\n```\n# in it\n~~~\n# A\n\nyes", ["a.md", "a.md#a"]),
        ("# A\n# B\n\nyes", ["a.md#a", "a.md#b"]),
        ("# A\n\nyes\n\n## \n\nno name", ["a.md#a", "a.md#"]),
        ("#no heading", ["a.md"]),
        ("| a |\n|---|\n| b |\n\n- one\n---\n", ["a.md"]),
        ("Title\r\n=====\r\n\r\nyes", ["a.md#title"]),
    ],
)
def test_what_is_a_heading_and_what_is_none(text: str, sources: list[str]) -> None:
    assert [chunk.source for chunk in chunk_markdown(text, "a.md")] == sources


def test_anchors_are_those_of_links() -> None:
    assert anchor_of("When, and where to") == "when-and-where-to"
    assert anchor_of("`Größe` of_it") == "größe-of_it"
