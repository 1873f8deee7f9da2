"""Edits: in what a list of messages differs from another, so that only that has to be recorded."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from flyball.core.messages import Message


class Edit(Struct, frozen=True, omit_defaults=True, repr_omit_defaults=True, gc=False):
    """In the place of the messages from `start` up to `stop`, these."""

    start: int
    stop: int
    messages: tuple[Message, ...] = ()


def edits_between(before: Sequence[Message], after: Sequence[Message]) -> tuple[Edit, ...]:
    """The edits that make `after` out of `before`: `edited(before, edits)` gives it back.

    What is the same at both ends is left alone. In between, messages are compared one by one where there are
    as many as before; otherwise all that lies there is replaced.
    """
    first, last, last_after = 0, len(before), len(after)
    while first < last and first < last_after and _same(before[first], after[first]):
        first += 1
    while last > first and last_after > first and _same(before[last - 1], after[last_after - 1]):
        last -= 1
        last_after -= 1
    if first == last and first == last_after:
        return ()
    if last != last_after:
        return (Edit(first, last, tuple(after[first:last_after])),)
    return tuple(
        [
            Edit(index, index + 1, (after[index],))
            for index in range(first, last)
            if not _same(before[index], after[index])
        ]
    )


def edited(before: Sequence[Message], edits: Sequence[Edit]) -> list[Message]:
    """The messages after the edits."""
    result: list[Message] = []
    reached = 0
    for edit in edits:
        result += before[reached : edit.start]
        result += edit.messages
        reached = edit.stop
    result += before[reached:]
    return result


def moved(place: int, edits: Sequence[Edit]) -> int:
    """Where a place of a list is after the edits; one in what was replaced is behind what stands there."""
    by = 0
    for edit in edits:
        if edit.start >= place:
            break
        by += len(edit.messages) - (edit.stop - edit.start)
        place = max(place, edit.stop)
    return place + by


def fits(edits: Sequence[Edit], length: int) -> bool:
    """Whether edits are of a list of this length, in order and apart from each other."""
    reached = 0
    for edit in edits:
        if not reached <= edit.start <= edit.stop <= length:
            return False
        reached = edit.stop
    return True


def _same(one: Message, other: Message) -> bool:
    return one is other or one == other
