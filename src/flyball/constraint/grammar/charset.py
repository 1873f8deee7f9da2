"""Sets of characters as sorted, separate ranges of code points."""

from __future__ import annotations

from collections.abc import Iterable

Ranges = tuple[tuple[int, int], ...]

LAST = 0x10FFFF
SURROGATES: Ranges = ((0xD800, 0xDFFF),)
"""No characters: they cannot stand in UTF-8."""


def united(ranges: Iterable[tuple[int, int]]) -> Ranges:
    """All of these ranges as one set."""
    merged: list[tuple[int, int]] = []
    for low, high in sorted(ranges):
        if merged and low <= merged[-1][1] + 1:
            if high > merged[-1][1]:
                merged[-1] = (merged[-1][0], high)
        else:
            merged.append((low, high))
    return tuple(merged)


def without(ranges: Ranges, taken: Ranges) -> Ranges:
    """The characters of the first set that are not in the second."""
    left: list[tuple[int, int]] = []
    for low, high in ranges:
        at = low
        for start, end in taken:
            if end < at or start > high:
                continue
            if start > at:
                left.append((at, start - 1))
            at = end + 1
        if at <= high:
            left.append((at, high))
    return tuple(left)


def common(one: Ranges, other: Ranges) -> Ranges:
    """The characters that are in both sets."""
    return without(one, without(ANY, other)) if one and other else ()


def of(text: str) -> Ranges:
    """The set of a text's characters."""
    return united((ord(c), ord(c)) for c in text)


ANY: Ranges = ((0, 0xD7FF), (0xE000, LAST))
"""Every character there is."""
