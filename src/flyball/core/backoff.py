"""Backoff: how long is waited before something is tried again. Plain data, which can be written down."""

from __future__ import annotations

from math import inf

from msgspec import Struct

LONGEST = 86_400.0
"""What no wait is longer than, whatever the numbers come to: a day."""


class Backoff(Struct, frozen=True, omit_defaults=True):
    """Waits that grow: `seconds` before the first retry, `factor` times as much before each further one.

    None is longer than `most` (None: a day). `jitter` is by which share of itself a wait may be longer.
    """

    seconds: float
    factor: float = 1.0
    most: float | None = None
    jitter: float = 0.0

    def wait(self, retry: int, chance: float = 0.0) -> float:
        """The seconds before the nth retry, counted from 1; `chance`, from 0 to 1, decides the jitter."""
        try:
            seconds = self.seconds * self.factor ** (retry - 1) * (1 + self.jitter * chance)
        except OverflowError:
            seconds = inf
        return min(seconds, LONGEST if self.most is None else self.most)
