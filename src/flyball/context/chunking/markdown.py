"""chunk_markdown: a page in chunks, each from one section, with code blocks left whole where they fit."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from flyball.context.chunk import Chunk
from flyball.context.chunking.packing import (
    PARAGRAPHS,
    PROSE,
    WORDS,
    Span,
    at,
    inside,
    overlapping,
    packed,
)
from flyball.context.chunking.size import DEFAULT, ChunkSize
from flyball.context.chunking.text import chunks_of

_HEADING = re.compile(r" {0,3}(#{1,6})(?![^ \t])(.*)")
_UNDERLINE = re.compile(r" {0,3}(?:(=+)|-+)[ \t]*")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})(.*)")
_NO_PARAGRAPH = re.compile(r"\s*(?:$|[>|#+*-]|\d+[.)]\s)| {4}|\t")
_FRONT_MATTER = re.compile(r"---[ \t]*\n(?:.*\n)*?(?:---|\.\.\.)[ \t]*(?:\n|$)")
_LINE = re.compile(r"[^\n]*\n|[^\n]+")


class _Heading(NamedTuple):
    start: int
    end: int
    level: int
    name: str


class _Section(NamedTuple):
    headings: tuple[str, ...]
    span: Span


def chunk_markdown(text: str, source: str, size: ChunkSize = DEFAULT) -> list[Chunk]:
    """A page in chunks, none of which has parts of two sections.

    A chunk's source is the document with its heading as a link has it, `guide.md#setting-up`; its metadata
    has the `heading` with those above it, `Guide > Setting up`. A fenced block of code is not parted if it
    fits into a chunk. A heading under which nothing stands but deeper headings goes with the first of these.
    """
    fences = list(_fences(text))
    chunks: list[Chunk] = []
    for headings, span in _sections(text, fences):
        first, last = (bisect_left(fences, place, key=lambda fence: fence.start) for place in span)
        mine = fences[first:last]
        # A block stays together by having places to cut around it and, at first, none within it.
        around = {place for fence in mine for place in fence}
        around |= {place for place in PARAGRAPHS(text, span) if not inside(place, mine)}
        pieces = packed(text, span, (at(sorted(around)), *PROSE), size)
        pieces = overlapping(text, pieces, WORDS, size, mine)
        anchor = f"{source}#{anchor_of(headings[-1])}" if headings else source
        chunks += chunks_of(text, source, pieces, source=anchor, heading=" > ".join(headings))
    return chunks


def anchor_of(heading: str) -> str:
    """What a heading is called in links to it: `Setting up!` is `setting-up`."""
    return re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-")


def _sections(text: str, fences: Sequence[Span]) -> Iterator[_Section]:
    """The sections in order; together they are the whole text."""
    headings = list(_headings(text, fences))
    start, path = 0, list[_Heading]()
    for heading, following in pairwise([*headings, None]):
        assert heading is not None
        if not path and text[start : heading.start].strip():
            yield _Section((), Span(start, heading.start))
            start = heading.start
        path = [*[one for one in path if one.level < heading.level], heading]
        end = len(text) if following is None else following.start
        alone = not text[heading.end : end].strip()
        if following is None or not alone or following.level <= heading.level:
            yield _Section(tuple([one.name for one in path]), Span(start, end))
            start = end
    if not headings:
        yield _Section((), Span(0, len(text)))


def _headings(text: str, fences: Sequence[Span]) -> Iterator[_Heading]:
    front = _FRONT_MATTER.match(text)
    begin = front.end() if front else 0
    before: tuple[int, str] | None = None  # a line that an underline would make a heading of
    for found in _LINE.finditer(text, begin):
        start, end, line = found.start(), found.end(), found[0].rstrip("\r\n")
        if inside(start, fences) or _FENCE.fullmatch(line):
            before = None
            continue
        marked, underlined = _HEADING.fullmatch(line), _UNDERLINE.fullmatch(line)
        if marked is not None:
            yield _Heading(start, end, len(marked[1]), _name(marked[2]))
        elif underlined is not None and before is not None:
            yield _Heading(before[0], end, 1 if underlined[1] else 2, before[1].strip())
        plain = marked is None and underlined is None and not _NO_PARAGRAPH.match(line)
        before = (start, line) if plain else None


def _name(rest: str) -> str:
    """A heading's words, without the marks that may close it."""
    name = rest.strip()
    bare = name.rstrip("#")
    return bare.rstrip() if not bare or bare[-1] in " \t" else name


def _fences(text: str) -> Iterator[Span]:
    """The fenced blocks; one that is not closed goes to the end."""
    opened: tuple[int, str] | None = None
    for found in _LINE.finditer(text):
        fence = _FENCE.fullmatch(found[0].rstrip("\r\n"))
        if fence is None:
            continue
        mark, rest = fence[1], fence[2].strip()
        if opened is None and not (mark[0] == "`" and "`" in rest):
            opened = (found.start(), mark)
        elif opened is not None and mark.startswith(opened[1]) and not rest:
            yield Span(opened[0], found.end())
            opened = None
    if opened is not None:
        yield Span(opened[0], len(text))
