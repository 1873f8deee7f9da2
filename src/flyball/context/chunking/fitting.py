"""The longest beginning of a text that fits. Pure."""

from __future__ import annotations

from collections.abc import Callable


def longest(text: str, fits: Callable[[str], bool]) -> int:
    """How many characters of a text fit, from its beginning; 0 if not even one does.

    What it gives has been seen to fit, also if `fits` does not quite follow that longer texts fit less.
    """
    if fits(text):
        return len(text)
    low, high = 0, len(text)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(text[:middle]) else (low, middle)
    return low
