"""Conversations: a person's runs at one place, one after the other, each going on from what was said before.

The loops of a conversation are numbered, and their ids follow from it and the number. So which one it has
come to is a question to the journal, and two who would go on at once are told apart by it: only one of them
begins the next loop. Nothing else is kept anywhere.
"""

from __future__ import annotations

from hashlib import sha256

from msgspec import Struct

from flyball.orchestrate.journal import Journal
from flyball.orchestrate.service import TALK

_AT_ONCE = 16
"""How many loops are asked for at once."""


class Conversation(Struct, frozen=True):
    """A conversation, by its name."""

    name: str

    def loop_id(self, number: int) -> str:
        """The id of its loop of that number, from 1 on."""
        return f"{TALK}{sha256(self.name.encode('utf-8', 'surrogatepass')).hexdigest()[:24]}-{number}"

    async def length(self, journal: Journal) -> int:
        """How many loops it has. Takes a number of questions that grows with the logarithm of that."""
        low, step = 0, 1  # it has at least `low`; then it is looked `step` loops apart
        while (found := await self._reached(journal, low, step)) == _AT_ONCE:
            low, step = low + found * step, step * _AT_ONCE
        low += found * step
        while step > 1:
            step //= _AT_ONCE
            low += step * await self._reached(journal, low, step)
        return low

    async def _reached(self, journal: Journal, low: int, step: int) -> int:
        """How many of the loops after `low`, so many apart, are there before the first that is not."""
        names = [self.loop_id(low + step * number) for number in range(1, _AT_ONCE + 1)]
        found = await journal.sizes(names)
        return next((number for number, size in enumerate(found) if not size), _AT_ONCE)
