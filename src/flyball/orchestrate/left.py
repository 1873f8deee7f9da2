"""LeftToOthers: loops that were asked for here, too, and that somebody else drives."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import NamedTuple

from flyball.core.clock import Clock
from flyball.core.errors import FlyballError, JournalFailure
from flyball.core.events import Started
from flyball.orchestrate.bindings import Bindings
from flyball.orchestrate.claims import is_claimed
from flyball.orchestrate.journal import Journal
from flyball.orchestrate.matching import check_same

_log = logging.getLogger("flyball.loops")

LOOK = 0.1
"""Seconds after which is looked again at what somebody else does with a loop."""
_AGAIN = 5.0
"""Seconds after which a journal that failed is tried again."""


class LeftToOthers:
    """Leaves loops to whoever drives them; once nobody does, they are begun here.

    Args:
        journal: where they are recorded, and claimed.
        begin: begins a loop here, or leaves it again.
    """

    def __init__(self, journal: Journal, begin: Callable[[Bindings, Started, Clock], Awaitable[int]]) -> None:
        self._journal = journal
        self._begin = begin
        self._loops: dict[str, _Left] = {}
        self._looking: asyncio.Task[None] | None = None

    def __contains__(self, loop_id: str) -> bool:
        return loop_id in self._loops

    async def leave(self, bindings: Bindings, started: Started, clock: Clock) -> int:
        """Leave a loop to whoever drives it; how many events it has.

        Raises:
            LoopMismatch: it is another loop than the one that is wanted.
        """
        events = await self._journal.read(started.loop_id)
        check_same(events, started)
        self._loops[started.loop_id] = _Left(bindings, started, clock)
        if self._looking is None or self._looking.done():
            self._looking = asyncio.create_task(self._look_after())
        return len(events)

    async def aclose(self) -> None:
        """Look after them no longer."""
        if self._looking is not None:
            self._looking.cancel()
            await asyncio.gather(self._looking, return_exceptions=True)

    async def _look_after(self) -> None:
        """Go on with those that nobody drives any more."""
        free: set[str] = set()
        while self._loops:
            await asyncio.sleep(LOOK)
            # Who has just taken a loop over has its claim in a moment: one look is not enough.
            before, free = free, {name for name in self._loops if not is_claimed(self._journal, name)}
            for name in before & free:
                left = self._loops.pop(name)
                try:
                    await self._begin(*left)
                except FlyballError as error:
                    _log.warning("loop %s was left by its driver, and is not gone on with: %s", name, error)
                    if isinstance(error, JournalFailure):
                        self._loops[name] = left
                        await asyncio.sleep(_AGAIN)


class _Left(NamedTuple):
    """A loop that somebody else drives, and how it is driven here if need be."""

    bindings: Bindings
    started: Started
    clock: Clock
