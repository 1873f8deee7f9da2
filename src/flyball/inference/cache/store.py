"""Where answers are kept: the protocol, and a store in memory."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from flyball.core.clock import Clock
from flyball.core.errors import UserError
from flyball.inference.system_clock import SYSTEM_CLOCK


@runtime_checkable
class AnswerStore(Protocol):
    """Keeps bytes under keys, for a while. It may lose any of them at any time, and never mixes them up."""

    async def get(self, key: str) -> bytes | None:
        """What is kept under a key and not past its time, or None."""
        ...

    async def put(self, key: str, answer: bytes, ttl: float | None = None) -> None:
        """Keep something under a key, in place of what was there; for `ttl` seconds, or without an end."""
        ...


class MemoryCache:
    """Answers in memory, for as long as the process runs. Where there are too many the oldest goes.

    Args:
        max_entries: how many are kept.
        clock: tells the time, for tests.

    Raises:
        UserError: `max_entries` is no whole number from 1.
    """

    def __init__(self, max_entries: int = 1_000, *, clock: Clock | None = None) -> None:
        self.max_entries = checked_size(max_entries)
        self._clock = clock or SYSTEM_CLOCK
        self._kept: dict[str, tuple[bytes, float | None]] = {}

    def __len__(self) -> int:
        return len(self._kept)

    async def get(self, key: str) -> bytes | None:
        """See `AnswerStore.get`."""
        found = self._kept.get(key)
        if found is None:
            return None
        answer, until = found
        if until is not None and until <= self._clock.now():
            del self._kept[key]
            return None
        return answer

    async def put(self, key: str, answer: bytes, ttl: float | None = None) -> None:
        """See `AnswerStore.put`."""
        self._kept[key] = (answer, None if ttl is None else self._clock.now() + ttl)
        while len(self._kept) > self.max_entries:
            del self._kept[next(iter(self._kept))]


def checked_size(max_entries: int) -> int:
    """How many answers are kept.

    Raises:
        UserError: it is no whole number from 1.
    """
    if type(max_entries) is not int or max_entries < 1:
        raise UserError(f"max_entries={max_entries!r}: a store keeps a whole number of answers, from 1")
    return max_entries
