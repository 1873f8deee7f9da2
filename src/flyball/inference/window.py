"""The last minute of an endpoint: which calls began in it, and when the next one may.

Pure: the time is told. Rules kept here:
- no 60 seconds, wherever they begin, have more beginnings, or more tokens, than they may;
- a call that is larger than all tokens of a minute is let in when no others are in it, or it never would be;
- the tokens of a call are those that were expected of it, until it is known what it used.
"""

from __future__ import annotations

from collections import deque

from msgspec import Struct

from flyball.core.errors import UserError

WINDOW = 60.0
"""Seconds of the window that `requests_per_minute` and `tokens_per_minute` count in."""


class Limit(Struct, frozen=True):
    """How much an endpoint may be asked; None is no limit.

    `requests_per_minute`: how many calls may begin in any 60 seconds. `max_concurrent`: how many may be under
    way at once; a stream is under way until it has ended or was closed. `tokens_per_minute`: how many tokens,
    input and output, the calls may have that begin in any 60 seconds. `min_delay`: how many seconds, up to
    60, are at least between the beginnings of two calls.
    """

    requests_per_minute: int | None = None
    max_concurrent: int | None = None
    tokens_per_minute: int | None = None
    min_delay: float | None = None

    def __post_init__(self) -> None:
        for name in ("requests_per_minute", "max_concurrent", "tokens_per_minute"):
            value = getattr(self, name)
            if value is not None and (type(value) is not int or value < 1):
                raise UserError(f"{name}={value!r}: a limit is a whole number from 1, or None for none")
        delay = self.min_delay
        if delay is None:
            return
        if isinstance(delay, bool) or not isinstance(delay, int | float) or not 0 < delay <= WINDOW:  # pyright: ignore[reportUnnecessaryIsInstance]
            raise UserError(f"min_delay={delay!r}: a delay is up to {WINDOW:g} seconds, or None for none")

    @property
    def in_time(self) -> bool:
        """Whether it is about when calls begin, and not only about how many are under way."""
        return not (
            self.requests_per_minute is None and self.tokens_per_minute is None and self.min_delay is None
        )


class Beginning:
    """When a call began, and how many tokens it is counted with."""

    __slots__ = ("at", "counted", "tokens")

    def __init__(self, at: float, tokens: int) -> None:
        self.at = at
        self.tokens = tokens
        self.counted = False


class Window:
    """The beginnings that may still keep somebody waiting, the oldest first."""

    __slots__ = ("_begun", "_tokens", "limit")

    def __init__(self, limit: Limit) -> None:
        self.limit = limit
        self._begun: deque[Beginning] = deque()
        self._tokens = 0
        """The tokens of all of them."""

    def begin(self, now: float, tokens: int = 0) -> Beginning:
        """A call begins. Its time may be set later, not earlier, until the next one begins."""
        beginning = Beginning(now, tokens)
        if self.limit.in_time:
            beginning.counted = True
            self._begun.append(beginning)
            self._tokens += tokens
        return beginning

    def forget(self, beginning: Beginning) -> None:
        """A call did not begin after all."""
        for number, one in enumerate(self._begun):
            if one is beginning:
                del self._begun[number]
                self._leave(one)
                return

    def correct(self, beginning: Beginning, tokens: int) -> None:
        """It is known how many tokens a call has used."""
        if beginning.counted:
            self._tokens += tokens - beginning.tokens
        beginning.tokens = tokens

    def due(self, now: float, tokens: int = 0) -> float | None:
        """When a call of so many tokens may begin; None is now."""
        begun, limit = self._begun, self.limit
        while begun and begun[0].at + WINDOW <= now:
            self._leave(begun.popleft())
        if not begun:
            return None
        due, allowed = now, limit.requests_per_minute
        if allowed is not None and len(begun) >= allowed:
            due = begun[len(begun) - allowed].at + WINDOW
        if limit.min_delay is not None:
            due = max(due, begun[-1].at + limit.min_delay)
        if limit.tokens_per_minute is not None:
            due = max(due, self._enough_left(max(0, limit.tokens_per_minute - tokens), now))
        return due if due > now else None

    def _enough_left(self, tokens: int, now: float) -> float:
        """When so few tokens are left in the minute as these, or fewer."""
        there, due = self._tokens, now
        for one in self._begun:
            if there <= tokens:
                break
            there -= one.tokens
            due = one.at + WINDOW
        return due

    def _leave(self, beginning: Beginning) -> None:
        beginning.counted = False
        self._tokens -= beginning.tokens
