"""A journal that fails after some appends, as if the process had died."""

from __future__ import annotations

from collections.abc import Sequence

from flyball import MemoryJournal
from flyball.core.errors import JournalFailure
from flyball.core.events import Event


class Dying(MemoryJournal):
    """Takes `left` appends, and no more until that is made another number; a negative one is without end."""

    def __init__(self, left: int) -> None:
        super().__init__()
        self.left = left

    async def append(self, loop_id: str, events: Sequence[Event], expected: int) -> int:
        if self.left == 0:
            raise JournalFailure("the disk is full")
        self.left -= 1
        return await super().append(loop_id, events, expected)
