"""Ids that sort by the time they were made: UUIDs of version 7, as 32 hex digits.

They hold a millisecond clock, a counter that keeps those of one process in order within a millisecond,
and 62 random bits. They name things; they are no secrets. A new one costs about half a microsecond.
"""

from __future__ import annotations

import os
from random import Random
from time import time_ns


class IdSource:
    """Makes ids, each greater than the one before, also when the clock stands still or goes back."""

    __slots__ = ("_last", "_random_bits")

    def __init__(self) -> None:
        self._last = 0
        self.reseed()

    def __call__(self) -> str:
        """A new id."""
        # Milliseconds and a 12-bit counter, as one number that never goes back.
        now = time_ns() // 1_000_000 << 12
        last = self._last
        self._last = now = now if now > last else last + 1
        head = (now & ~0xFFF) << 4 | 0x7000 | (now & 0xFFF)
        return f"{head << 64 | 0x8000_0000_0000_0000 | self._random_bits(62):032x}"

    def reseed(self) -> None:
        """Take fresh randomness: a forked child would otherwise make its parent's ids."""
        self._random_bits = Random(os.urandom(16)).getrandbits


new_id = IdSource()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=new_id.reseed)


def id_time(identifier: str) -> float:
    """When an id was made, in seconds since the epoch."""
    return int(identifier[:12], 16) / 1000
