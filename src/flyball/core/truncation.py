"""Cutting a text to what a model can read: its beginning and its end, with a mark between."""

from __future__ import annotations

import re

from flyball.core.encodable import clean_text
from flyball.core.tokens import BYTES_PER_TOKEN

_HEAD = 60
"""How much of the budget the beginning has, in percent; the end has the rest."""
_MARK = re.compile(rb"\.\.\. \[truncated \d+ tokens\] \.\.\.")
_MARK_ROOM = 64
"""How many bytes the mark takes at most, beside what is kept, with the ends of its line."""


def truncate_text(text: str, max_tokens: int) -> str:
    """The text if it is within the budget, else its beginning and its end, with how much is left out.

    A token is counted as four bytes. The beginning has at most 60 % of the budget and the end 40 %; the mark
    stands beside them. A part ends at a line's end, where that leaves at least half of it. No character is
    cut in two. What was cut so before is left as it is.
    """
    budget = max_tokens * BYTES_PER_TOKEN
    if len(text) * BYTES_PER_TOKEN <= budget:
        return text  # no character takes more than four bytes: there is nothing to measure
    data = clean_text(text).encode("utf-8")
    if len(data) <= budget or (len(data) <= budget + _MARK_ROOM and _MARK.search(data)):
        return text
    first = budget * _HEAD // 100
    head = _beginning(data[:first])
    tail = _end(data[len(data) - (budget - first) :])
    left_out = -(-(len(data) - len(head) - len(tail)) // BYTES_PER_TOKEN)
    mark = f"... [truncated {left_out} tokens] ..."
    return "\n".join(
        [part for part in (_text(head).removesuffix("\n"), mark, _text(tail).removeprefix("\n")) if part]
    )


def _beginning(data: bytes) -> bytes:
    end = data.rfind(b"\n") + 1
    return data[:end] if end * 2 >= len(data) > 0 else _text(data).encode("utf-8")


def _end(data: bytes) -> bytes:
    start = data.find(b"\n") + 1
    return data[start:] if 0 < start * 2 <= len(data) else _text(data).encode("utf-8")


def _text(data: bytes) -> str:
    # What the cut has left of a character is dropped: all else is UTF-8.
    return data.decode("utf-8", "ignore")
