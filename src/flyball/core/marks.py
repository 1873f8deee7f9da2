"""Combining marks: how many of them a text has in a row. Pure.

Normalising puts the marks after a letter in order, and CPython does that by insertion: a row of them takes
time in proportion to its square, while nothing else runs. No language writes more than a few.
"""

from __future__ import annotations

import re
from unicodedata import category

_MOST = 8
_HALF_WIDTH = "\uff9e\uff9f"
"""Letters that become marks where what looks alike is made the same."""
_ROW = re.compile(rf"(?:[^\w\s\x00-\x7f]|[{_HALF_WIDTH}]){{{_MOST + 1},}}")
"""Where there may be more: no other mark is a letter, a space, or in ASCII."""


def with_few_marks(text: str) -> str:
    """The text without what follows after the first few marks in a row: it is normalised in linear time."""
    return text if text.isascii() else _ROW.sub(_few, text)


def _few(row: re.Match[str]) -> str:
    kept, marks = list[str](), 0
    for char in row[0]:
        marks = marks + 1 if category(char).startswith("M") or char in _HALF_WIDTH else 0
        if marks <= _MOST:
            kept.append(char)
    return "".join(kept)
