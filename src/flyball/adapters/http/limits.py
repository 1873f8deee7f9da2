"""How much is taken: of one request, and of all together. What is more is refused, with a 4xx."""

from __future__ import annotations

import time
from collections import OrderedDict

from msgspec import Struct

from flyball.adapters.http.problems import TooMany
from flyball.core.errors import UserError

_KNOWN = 10_000
"""How many callers' rates are kept in mind."""


class Limits(Struct, frozen=True):
    """What is taken at most.

    `body` is the bytes of a request's body, `messages` how many messages one may bring; `body_seconds` is how
    long a body may take to come. `head` and `head_seconds` are the same for a request's line and headers;
    `idle_seconds` is how long a connection may have nothing to say, `stuck_seconds` how long who follows may
    take nothing of what is told. `concurrent` is how many requests may be under way, `streams` how many event
    streams may be open, `rate` how many requests a caller may make in a minute (0: as many as it likes).
    """

    body: int = 8 * 1024 * 1024
    messages: int = 2_000
    body_seconds: float = 30.0
    head: int = 64 * 1024
    head_seconds: float = 20.0
    idle_seconds: int = 75
    stuck_seconds: float = 60.0
    concurrent: int = 512
    streams: int = 5_000
    rate: float = 0.0

    def check(self) -> Limits:
        """Return the limits if they can be kept.

        Raises:
            UserError: one is no number that it can be.
        """
        for name in self.__struct_fields__:
            if name != "rate" and not getattr(self, name) > 0:
                raise UserError(f"the limit {name} is a number from 1, not {getattr(self, name)!r}")
        if self.rate < 0:
            raise UserError(f"the limit rate is a number from 0, not {self.rate!r}")
        return self


class Places:
    """So many may be in at once."""

    def __init__(self, most: int, what: str) -> None:
        self._most = most
        self._what = what
        self.taken = 0

    def enter(self) -> None:
        """Come in.

        Raises:
            TooMany: all places are taken.
        """
        if self.taken >= self._most:
            raise TooMany(
                f"there are {self.taken} {self._what} already, the most that are taken: come again soon",
                {"Retry-After": "1"},
                limit=self._most,
            )
        self.taken += 1

    def leave(self) -> None:
        """Go out."""
        self.taken -= 1


class Rates:
    """So many a minute for each caller: a bucket that holds a minute's worth, and fills up again."""

    def __init__(self, a_minute: float) -> None:
        self._a_minute = a_minute
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, caller: str, now: float | None = None) -> None:
        """Take one.

        Raises:
            TooMany: the caller's bucket is empty; `Retry-After` says when it is not.
        """
        if not self._a_minute:
            return
        now = time.monotonic() if now is None else now
        left, seen = self._buckets.pop(caller, (max(1.0, self._a_minute), now))
        left = min(max(1.0, self._a_minute), left + (now - seen) * self._a_minute / 60)
        self._buckets[caller] = (left - 1 if left >= 1 else left, now)
        if len(self._buckets) > _KNOWN:
            self._buckets.popitem(last=False)
        if left < 1:
            seconds = (1 - left) * 60 / self._a_minute
            raise TooMany(
                f"more than {self._a_minute:g} requests a minute: come again in {seconds:.0f} s",
                {"Retry-After": str(max(1, round(seconds)))},
                limit=self._a_minute,
            )
