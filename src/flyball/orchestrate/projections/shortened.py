"""Text made short, for what is seen at a glance. What is to be read in full is given in full elsewhere."""

from __future__ import annotations

import re

_SHOWN = 12
"""How much of an id is shown: it holds the millisecond in which the loop began."""

_OF_CONVERSATION = re.compile(r"(talk-[0-9a-f]{6})[0-9a-f]{18}(-[0-9]+)")
"""The id of a conversation's loop: which conversation, and which of its loops."""


def short(loop_id: str) -> str:
    """An id as it is shown to a person: what tells apart one that flyball made, any other whole."""
    if (found := _OF_CONVERSATION.fullmatch(loop_id)) is not None:
        return f"{found[1]}{found[2]}"
    return loop_id[:_SHOWN] if len(loop_id) == 32 and loop_id.isalnum() else loop_id


def one_line(text: str, limit: int) -> str:
    """Text on one line, cut where it is longer than the limit."""
    return cut(" ".join(text[: limit * _SPACES].split()), limit)


def several(count: int, what: str) -> str:
    """So many of something: 1 run, 2 runs."""
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


_SPACES = 20
"""How much more text than is shown is looked at: of a megabyte only the beginning."""


def cut(text: str, limit: int) -> str:
    """Text that is no longer than the limit; one that was longer ends with an ellipsis."""
    return text if len(text) <= limit else f"{text[: limit - 1]}…"
