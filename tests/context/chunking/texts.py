"""Texts to be cut, and what must hold of any chunks of any text."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import strategies as st

from flyball import TokenEstimator, by_bytes, by_characters, by_words
from flyball.context.chunk import Chunk
from flyball.context.chunking import ChunkSize

_WORDS = st.sampled_from(
    ["tea", "library", "antidisestablishmentarianism", "Größenwahn", "漢字", "x", "don't", "…"]
)
_MARKS = st.sampled_from(
    [" ", " ", " ", "\n", "\n\n", "\n \n\n", ". ", "!\n", "\t", "\r", "\r\n", "\u2028", "\x1c"]
)
_LINES = st.sampled_from(
    [
        "# Guide\n",
        "## Setting up\n",
        "### Deep #\n",
        "Title\n=====\n",
        "Part\n---\n",
        "```python\nx = 1\n\n# no heading\n```\n",
        "~~~\n## none either\n",
        "    # indented\n",
        "- a list\n- of two\n",
        "| a | b |\n|---|---|\n",
        "---\ntitle: x\n---\n",
        "def f():\n    return 1\n\n",
        "@wraps\n# why\nclass C:\n    x = 1\n\n    def g(self): pass\n",
        "import os\n",
        "# a comment\n",
        "x = '''\n\ntext\n'''\n",
    ]
)
texts = st.one_of(st.text(), st.lists(_WORDS | _MARKS | _LINES, max_size=60).map("".join))
_ESTIMATORS: list[TokenEstimator] = [by_bytes, by_characters, by_words, len]
sizes = st.tuples(st.integers(1, 60), st.integers(0, 20), st.sampled_from(_ESTIMATORS)).map(
    lambda drawn: ChunkSize(drawn[0], min(drawn[1], drawn[0] - 1), drawn[2])
)


def check_chunks(text: str, chunks: Sequence[Chunk], size: ChunkSize) -> None:
    """Nothing is lost, the order is kept, sizes are bounded, and each says where it is from."""
    reached = 0
    before = -1
    for chunk in chunks:
        start, end = chunk.metadata["start"], chunk.metadata["end"]
        assert chunk.content == text[start:end] != ""
        assert chunk.content.strip() == chunk.content.lstrip(), "no white space at its end"
        assert size.fits(chunk.content) or len(chunk.content) == 1
        assert not text[reached:start].strip(), "only white space is left out"
        assert start > before
        assert end > reached, "each has something that the one before had not"
        reached, before = end, start
    assert not text[reached:].strip()
