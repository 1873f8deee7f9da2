"""Places where a text may be cut become pieces that fit. Pure.

A text that is too large is cut at the coarsest places there are, and what is still too large at finer ones,
down to single characters. Neighbours that fit together stay together.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import NamedTuple, TypeAlias

from flyball.context.chunking.fitting import longest
from flyball.context.chunking.size import ChunkSize

_BLANK_LINES = re.compile(r"\s*\n")


class Span(NamedTuple):
    """A part of a text, from one character up to another."""

    start: int
    end: int


Cuts: TypeAlias = Callable[[str, Span], list[int]]
"""Where a part of a text may be cut: places inside it, in order."""


def after(pattern: str) -> Cuts:
    """Cuts behind each match of a pattern."""
    compiled = re.compile(pattern)

    def cuts(text: str, span: Span) -> list[int]:
        ends = [found.end() for found in compiled.finditer(text, *span)]
        return [end for end in ends if span.start < end < span.end]

    return cuts


def at(places: Sequence[int]) -> Cuts:
    """Cuts at places that are known, in order."""
    return lambda _, span: [place for place in places if span.start < place < span.end]


PARAGRAPHS = after(r"\n(?:[^\S\n]*\n)+")
LINES = after(r"\n(?:[^\S\n]*\n)*")
SENTENCES = after(r"[.!?…]['\")\]]*\s+")
WORDS = after(r"\s+")
PROSE = (PARAGRAPHS, LINES, SENTENCES, WORDS)
"""Where prose is cut, from coarse to fine."""
CODE = (PARAGRAPHS, LINES, WORDS)
"""Where code is cut."""


def trimmed(text: str, span: Span) -> Span:
    """A part without empty lines before it and white space after it; the first line keeps its indentation."""
    blank = _BLANK_LINES.match(text, *span)
    start = blank.end() if blank else span.start
    return Span(start, start + len(text[start : span.end].rstrip()))


def inside(place: int, spans: Sequence[Span]) -> bool:
    """Whether a place is within one of several spans, which are in order and apart; its edges are not."""
    index = bisect_left(spans, place, key=lambda span: span.start) - 1
    return index >= 0 and place < spans[index].end


def packed(text: str, span: Span, levels: Sequence[Cuts], size: ChunkSize) -> list[Span]:
    """A part of a text in pieces that fit, in order and trimmed; none that is only white space."""
    pieces = [trimmed(text, piece) for piece in _pieces(text, span, levels, size)]
    return [piece for piece in pieces if piece.end > piece.start]


def overlapping(
    text: str, pieces: Sequence[Span], starts: Cuts, size: ChunkSize, whole: Sequence[Span] = ()
) -> list[Span]:
    """Pieces that begin with the end of the one before, as far as they still fit.

    `starts` are the places where that may begin; none inside what is `whole`.
    """
    if not size.overlap or not pieces:
        return list(pieces)
    extended = [pieces[0]]
    for before, piece in pairwise(pieces):
        start = piece.start
        for place in reversed(starts(text, before)):
            if inside(place, whole):
                continue
            if size.estimator(text[place : before.end]) > size.overlap:
                break
            if not size.fits(text[place : piece.end]):
                break
            start = place
        extended.append(Span(start, piece.end))
    return extended


def _pieces(text: str, span: Span, levels: Sequence[Cuts], size: ChunkSize) -> list[Span]:
    if _fits(text, span, size):
        return [span]
    if not levels:
        return _characters(text, span, size)
    cuts, *finer = levels
    places = [span.start, *cuts(text, span), span.end]
    if len(places) == 2:
        return _pieces(text, span, finer, size)
    pieces: list[Span] = []
    open_piece: Span | None = None
    for unit in map(Span, places, places[1:]):
        joined = None if open_piece is None else Span(open_piece.start, unit.end)
        if joined is not None and _fits(text, joined, size, room=size.overlap):
            open_piece = joined
            continue
        pieces += [] if open_piece is None else [open_piece]
        open_piece = unit if _fits(text, unit, size) else None
        if open_piece is None:
            pieces += _pieces(text, unit, finer, size)
    return pieces if open_piece is None else [*pieces, open_piece]


def _characters(text: str, span: Span, size: ChunkSize) -> list[Span]:
    pieces: list[Span] = []
    start = span.start
    while start < span.end:
        # No more is looked at than could fit: a token has some characters, not thousands.
        window = text[start : min(span.end, start + 64 * size.max_tokens)]
        length = max(1, longest(window, lambda part: size.estimator(part) <= size.max_tokens - size.overlap))
        pieces.append(Span(start, start + length))
        start += length
    return pieces


def _fits(text: str, span: Span, size: ChunkSize, room: int = 0) -> bool:
    """Whether a part fits, and leaves so much room."""
    start, end = trimmed(text, span)
    return size.estimator(text[start:end]) <= size.max_tokens - room
