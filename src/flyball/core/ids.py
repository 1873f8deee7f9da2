"""Ids that sort by the time they were made: UUIDs of version 7, as 32 hex digits.

They hold the time in milliseconds and random bits, to which one is added for each further id within a
millisecond. They name things; they are no secrets. A new one costs about half a microsecond.
"""

from __future__ import annotations

import os
from random import Random
from time import time_ns

_VERSION = 0x7 << 12
_VARIANT = 0b10 << 62
_COUNTER = (1 << 61) - 1
"""The topmost of the 62 bits after the variant stays clear, so that counting up has room."""


class IdSource:
    """Makes ids, each greater than the one before, also when the clock stands still or goes back."""

    __slots__ = ("_head", "_milliseconds", "_random", "_tail")

    def __init__(self) -> None:
        self.reseed()

    def __call__(self) -> str:
        """A new id."""
        milliseconds = time_ns() // 1_000_000
        if milliseconds > self._milliseconds:
            self._milliseconds = milliseconds
            bits = self._random.getrandbits(12 + 61)
            self._head = f"{milliseconds << 16 | _VERSION | bits >> 61:016x}"
            self._tail = _VARIANT | bits & _COUNTER
        else:
            self._tail += 1
        return self._head + self._tail.to_bytes(8, "big").hex()

    def reseed(self) -> None:
        """Take fresh randomness: a forked child would otherwise make its parent's ids."""
        self._random = Random(os.urandom(16))
        self._milliseconds = self._tail = 0
        self._head = ""


new_id = IdSource()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=new_id.reseed)


def id_time(identifier: str) -> float:
    """When an id was made, in seconds since the epoch."""
    return int(identifier[:12], 16) / 1000
