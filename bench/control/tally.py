"""Counts over many replies: how many are valid, how many are right, and how sure that is."""

from __future__ import annotations

import math
from collections.abc import Iterable
from statistics import median

from msgspec import Struct

from bench.control.methods import Reply
from bench.control.scoring import right_calls, right_fields, right_tools, right_value
from bench.control.tasks import Task, ToolTask


class Score(Struct, frozen=True):
    """What one reply is worth. What is not valid is never right.

    `parts_right` of `parts` is the closer look: for tool choice whether the arguments are right too (nothing
    to look at where no tool is needed), for extraction the fields.
    """

    valid: bool
    right: bool
    parts_right: int
    parts: int


def score(task: Task, reply: Reply) -> Score:
    """The score of a reply to a task."""
    if isinstance(task, ToolTask):
        calls = reply.calls if reply.valid else None
        right = calls is not None and right_tools(task, calls)
        exact = calls is not None and right_calls(task, calls)
        return Score(reply.valid, right, int(exact and bool(task.calls)), int(bool(task.calls)))
    if not reply.valid:
        return Score(valid=False, right=False, parts_right=0, parts=len(task.answer))
    fields = right_fields(task, reply.value)
    return Score(
        valid=True, right=right_value(task, reply.value), parts_right=sum(fields.values()), parts=len(fields)
    )


class Tally(Struct, frozen=True):
    """Many scores, added up. `seconds` is the median; `speed` is tokens a second over all replies.

    `confidence` is the mean, where there was a vote.
    """

    tasks: int
    valid: int
    right: int
    parts_right: int
    parts: int
    cut: int
    seconds: float
    speed: float
    confidence: float | None = None


def tally(scored: Iterable[tuple[Score, Reply]]) -> Tally:
    """Add up scores and what the replies took."""
    pairs = list(scored)
    scores = [one for one, _ in pairs]
    replies = [reply for _, reply in pairs]
    spent = sum(reply.seconds for reply in replies)
    sure = [reply.confidence for reply in replies if reply.confidence is not None]
    return Tally(
        tasks=len(pairs),
        valid=sum(one.valid for one in scores),
        right=sum(one.right for one in scores),
        parts_right=sum(one.parts_right for one in scores),
        parts=sum(one.parts for one in scores),
        cut=sum(reply.cut for reply in replies),
        seconds=median(reply.seconds for reply in replies) if replies else 0.0,
        speed=sum(reply.tokens for reply in replies) / spent if spent else 0.0,
        confidence=sum(sure) / len(sure) if sure else None,
    )


def wilson(right: int, of: int, z: float = 1.959964) -> tuple[float, float]:
    """Wilson's interval of a share: where the true one lies, in 95 of 100 cases.

    It holds for small numbers and for shares near 0 and 1, where the usual one does not.
    """
    if of == 0:
        return 0.0, 1.0
    share = right / of
    middle = (share + z * z / (2 * of)) / (1 + z * z / of)
    reach = z * math.sqrt(share * (1 - share) / of + z * z / (4 * of * of)) / (1 + z * z / of)
    # At the ends the formula's rounding may lie a hair outside.
    return min(share, max(0.0, middle - reach)), max(share, min(1.0, middle + reach))
