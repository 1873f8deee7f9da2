"""What was put aside on the way: messages that no worker could do anything with."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from msgspec import Struct


class DeadLetter(Struct, frozen=True):
    """A message that no worker could do anything with, and why."""

    number: int
    subject: str
    code: str
    reason: str
    at: float
    times: int = 1


class DeadLetters(Protocol):
    """What was put aside on the way. Only a runtime with workers has any."""

    async def list(self) -> Sequence[DeadLetter]:
        """All of them, the oldest first."""
        ...

    async def requeue(self, number: int) -> bool:
        """Give one to the workers again; False if there is none with that number.

        Raises:
            UserError: no worker has written it: it can only be dropped.
        """
        ...

    async def drop(self, number: int) -> bool:
        """Let go of one, which nobody does then; False if there is none with that number."""
        ...
