"""Ids that sort by the time they were made: UUIDs of version 7, as 32 hex digits.

They hold a millisecond clock, a counter that keeps those of one process in order within a millisecond,
and 62 random bits. They name things; they are no secrets. A new one costs about half a microsecond.
"""

from __future__ import annotations

import os
import time
from random import Random


class IdSource:
    """Makes ids, each greater than the one before, also when the clock stands still or goes back."""

    __slots__ = ("_last", "_random")

    def __init__(self) -> None:
        self._last = 0
        self._random = Random(os.urandom(16))

    def __call__(self) -> str:
        """A new id."""
        moment = time.time_ns() // 1_000_000 << 12
        last = self._last
        self._last = last = moment if moment > last else last + 1
        tail = 0x8000_0000_0000_0000 | self._random.getrandbits(62)
        return f"{(last >> 12 << 16) | 0x7000 | (last & 0xFFF):016x}{tail:016x}"

    def reseed(self) -> None:
        """Part from a forked parent, which would otherwise make the same ids."""
        self._random = Random(os.urandom(16))


new_id = IdSource()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=new_id.reseed)


def id_time(identifier: str) -> float:
    """When an id was made, in seconds since the epoch."""
    return int(identifier[:12], 16) / 1000
