"""The loops that come into a journal, looked for now and then, each dealt with once."""

from __future__ import annotations

import asyncio
from collections import OrderedDict

from flyball.orchestrate.journal import Journal

_AT_ONCE = 100
"""Loops that are asked for at once."""
_KEPT = 64
"""How many of the last ones are kept in mind: one that was deleted meanwhile is no landmark."""


class Beginnings:
    """The loops that have begun since those that were `seen`."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._seen: OrderedDict[str, None] = OrderedDict()

    async def skip(self) -> None:
        """Leave out what is there already."""
        for loop_id in reversed(await self._journal.loops("", _KEPT)):
            self.seen(loop_id)

    async def new(self) -> list[str]:
        """The loops that have begun, the oldest first; each again until it is told that it was `seen`."""
        found, before = list[str](), ""
        while page := await self._journal.loops(before, _AT_ONCE):
            before = page[-1]
            known = next((place for place, loop_id in enumerate(page) if loop_id in self._seen), None)
            found += page[:known]
            if known is not None:
                break
            await asyncio.sleep(0)  # others have their turn
        return found[::-1]

    def seen(self, loop_id: str) -> None:
        """It is dealt with, and all before it."""
        self._seen[loop_id] = None
        if len(self._seen) > _KEPT:
            self._seen.popitem(last=False)
