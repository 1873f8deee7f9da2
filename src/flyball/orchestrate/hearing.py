"""Hearing of a loop that is driven elsewhere: by its journal, and by the deltas that are put here."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from flyball.core.errors import AgentRunClosed
from flyball.orchestrate.elsewhere import Delta
from flyball.orchestrate.journal import Journal

_MOST = 10_000
"""How many deltas are kept for somebody who does not come for them."""


class Hearing:
    """One loop, as somebody hears of it. It has all of a `Following` but a way to send signals."""

    def __init__(self, journal: Journal, loop_id: str) -> None:
        self.journal = journal
        self.length = 0
        self.loop_id = loop_id
        self._deltas: list[Delta] = []
        self._filled = asyncio.Event()

    def put(self, delta: Delta) -> None:
        """A delta came by. Who does not listen for long misses some; the recorded answer has them all."""
        if len(self._deltas) < _MOST:
            self._deltas.append(delta)
        self._filled.set()

    async def news(self, length: int) -> Sequence[Delta]:
        """See `Following.news`."""
        grown = asyncio.ensure_future(self.journal.wait(self.loop_id, length))
        filled = asyncio.ensure_future(self._filled.wait())
        driving = self.driving()
        try:
            waited = [grown, filled] if driving is None else [grown, filled, driving]
            await asyncio.wait(waited, return_when=asyncio.FIRST_COMPLETED)
            if grown.done():
                grown.result()
            elif driving is not None and driving.done():
                await self._see_what_it_left(driving, length)
        finally:
            for task in (grown, filled):
                task.cancel()
            await asyncio.gather(grown, filled, return_exceptions=True)
        self._filled.clear()
        deltas, self._deltas = self._deltas, []
        return deltas

    def driving(self) -> asyncio.Task[Any] | None:
        """Who drives the loop, if that is known and has not ended well: if it fails, no news will come."""
        return None

    async def _see_what_it_left(self, driving: asyncio.Task[Any], length: int) -> None:
        if not await self.journal.read(self.loop_id, length):
            raise_failure(driving, self.loop_id)


def raise_failure(driving: asyncio.Task[Any], loop_id: str) -> None:
    """Raise what a task failed with that drove a loop.

    Raises:
        AgentRunClosed: it was stopped, or something in it ends the program: that is not for who waits to do.
        Exception: whatever it raised.
    """
    if driving.cancelled():
        raise AgentRunClosed(
            f"loop {loop_id!r} is driven no longer: its runtime was closed. It stays as it is recorded",
            loop_id=loop_id,
        )
    error = driving.exception()
    if error is not None and not isinstance(error, Exception):
        raise AgentRunClosed(
            f"loop {loop_id!r} is driven no longer: {type(error).__name__} came from it. "
            "It stays as it is recorded",
            loop_id=loop_id,
        ) from error
    if error is not None:
        raise error
