"""Catalogue: the loops of a journal, found by what is asked for."""

from __future__ import annotations

import asyncio

from msgspec import Struct

from flyball.core.errors import JournalCorrupt, JournalFailure, JournalTooNew, LoopNotFound
from flyball.core.events import Event
from flyball.orchestrate.catalogue.cursor import read_cursor, write_cursor, wrong_cursor
from flyball.orchestrate.catalogue.query import LoopPage, LoopQuery, checked, matcher
from flyball.orchestrate.catalogue.remembered import Remembered
from flyball.orchestrate.journal import Journal
from flyball.orchestrate.projections.summary import (
    LoopSummary,
    Reading,
    summary_of_reading,
    unreadable,
)

_AT_ONCE = 200
"""How many loops are asked for at once."""
_READ = 2_000
"""How many loops one call reads, at most."""
_SEEN = 20_000
"""How many loops one call looks at, at most, those in mind too."""
_HEAVIEST = 200_000_000
"""About how many characters are kept in mind."""
_BREATH = 16
"""After so many loops that were read others get their turn."""


class _Known(Struct):
    """A summary that holds for as long as the loop has so many events."""

    length: int
    summary: LoopSummary


class Catalogue:
    """The loops of a journal. It belongs to one event loop; any number of calls may run at once.

    What is not over is looked at each time, so that `stage` and `waits` are as of now. A loop that is removed
    and begun anew under its id is taken for the old one if it has as many events.
    """

    def __init__(self, journal: Journal, *, remembered: int = 150_000) -> None:
        """Nothing is read yet; `remembered` loops that are over are kept in mind at most, about 2 kB each.

        Who goes through more loops than that reads them anew each time.
        """
        self._journal = journal
        self._over = Remembered[_Known](remembered, _HEAVIEST, _weight)
        """The summaries of loops that are over, and of those that cannot be read."""
        self._open = Remembered[Reading](500, 100_000, lambda reading: reading.length)
        """How far those were read that are not."""

    async def find(self, query: LoopQuery = LoopQuery()) -> LoopPage:  # noqa: B008 - it is frozen
        """The next loops that a query asks for, the newest first; see `flyball.orchestrate.catalogue`.

        Raises:
            InvalidRequest: the query cannot be asked; the error names the field.
            JournalFailure: the journal cannot be listed.
        """
        wanted, last = matcher(checked(query)), read_cursor(query.cursor) if query.cursor else ""
        found: list[LoopSummary] = []
        read = seen = 0
        while True:
            names = await self._listed(query, last, _AT_ONCE)
            for name, length in zip(names, await self._journal.sizes(names), strict=True):
                last = name
                if not length:
                    continue  # it was removed
                try:
                    summary, new = await self._looked_at(name, length)
                except LoopNotFound:
                    continue
                if wanted(summary):
                    found.append(summary)
                read, seen = read + new, seen + 1
                if new and not read % _BREATH:
                    await asyncio.sleep(0)
                if len(found) == query.limit or read == _READ or seen == _SEEN:
                    more = name != names[-1] or await self._listed(query, name, 1)
                    return LoopPage(tuple(found), write_cursor(name) if more else "")
            if len(names) < _AT_ONCE:
                return LoopPage(tuple(found))
            await asyncio.sleep(0)

    async def summary(self, loop_id: str) -> LoopSummary:
        """One loop, as it stands now.

        Raises:
            LoopNotFound: there is none.
            JournalFailure: the journal cannot be read.
        """
        length = (await self._journal.sizes((loop_id,)))[0] if loop_id else 0
        if not length:
            raise _missing(loop_id)
        return (await self._looked_at(loop_id, length))[0]

    async def _listed(self, query: LoopQuery, before: str, limit: int) -> list[str]:
        """The next loops; raises InvalidRequest where the query goes on from one that is not there."""
        try:
            return await self._journal.loops(before, limit)
        except LoopNotFound as error:
            raise wrong_cursor(query.cursor or write_cursor(before)) from error

    async def _looked_at(self, loop_id: str, length: int) -> tuple[LoopSummary, bool]:
        """The summary of a loop that has at least so many events, and whether it had to be read whole.

        Raises:
            LoopNotFound: it was removed meanwhile.
        """
        known = self._over.get(loop_id)
        if known is not None and known.length == length:
            return known.summary, False
        # Taken, and not only looked at: nobody else goes on with it meanwhile.
        reading = self._open.take(loop_id)
        new = reading is None
        try:
            if reading is None:
                reading = Reading(await self._events(loop_id), loop_id)
            elif length > reading.length:
                reading.go_on(await self._journal.read(loop_id, reading.length))
            summary = await summary_of_reading(self._journal, reading)
        except LoopNotFound:
            raise
        except JournalFailure as error:
            summary = unreadable(loop_id, error)
            if isinstance(error, JournalCorrupt | JournalTooNew):  # it will not be otherwise the next time
                self._over.keep(loop_id, _Known(length, summary))
            return summary, True
        if reading.is_over:
            self._over.keep(loop_id, _Known(reading.length, summary))
        else:
            self._open.keep(loop_id, reading)
        return summary, new

    async def _events(self, loop_id: str) -> list[Event]:
        if events := await self._journal.read(loop_id):
            return events
        raise _missing(loop_id)


def _missing(loop_id: str) -> LoopNotFound:
    return LoopNotFound(f"there is no loop {loop_id!r} in the journal", loop_id=loop_id)


def _weight(known: _Known) -> int:
    """About how many characters it takes."""
    return 500 + len(known.summary.prompt) + len(known.summary.answer)
