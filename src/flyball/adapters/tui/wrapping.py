"""Text cut into lines that fit. Whatever others wrote passes here, by `wrapped` or by `words`."""

from __future__ import annotations

import re
from collections.abc import Iterator

from rich.cells import cell_len, chop_cells, set_cell_size

from flyball.core.harmless import harmless
from flyball.orchestrate.projections.shortened import one_line

_WORDS = re.compile(r"\S+\s*|\s+")
_TAB = 4


def words(text: str, limit: int = 300) -> str:
    """Text of others on one line: harmless, and cut where it is longer than the limit."""
    return harmless(one_line(text, limit))


def fitted(text: str, width: int) -> str:
    """Text on exactly so many cells: filled up with spaces, or cut, with an ellipsis at its end."""
    return set_cell_size(cropped(text, width), max(width, 0))


def cropped(text: str, width: int) -> str:
    """Text on at most so many cells: where it is cut, it has an ellipsis at its end."""
    if width <= 0:
        return ""
    return text if cell_len(text) <= width else set_cell_size(text, width - 1) + "…"


def wrapped(text: str, width: int, limit: int) -> list[str]:
    """The first `limit` characters of a text of others, harmless, as lines of at most `width` cells.

    What it takes hangs on the limit and not on the text's length. Where something is left out, the last line
    says how much.
    """
    width = max(width, 4)
    lines: list[str] = []
    for line in harmless(text[:limit]).expandtabs(_TAB).split("\n"):
        lines += [line] if line.isascii() and len(line) <= width else _folded(line, width)
    if len(text) > limit:
        left = len(text) - limit
        lines += _folded(f"… {left:,} character{'s' if left > 1 else ''} more", width)
    return lines


def _folded(line: str, width: int) -> Iterator[str]:
    """A line as several that fit: broken after spaces, and within words only where one is too long."""
    so_far, taken = "", 0
    for word in _WORDS.findall(line):
        length = cell_len(word.rstrip())
        if taken + length > width and taken:
            yield so_far.rstrip()
            so_far, taken = "", 0
        if length > width:
            *whole, so_far = chop_cells(word.rstrip(), width)
            yield from whole
        else:
            so_far += word
        taken = cell_len(so_far)
    yield so_far.rstrip() if cell_len(so_far) > width else so_far
