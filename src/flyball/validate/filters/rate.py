"""Rates: how many requests and tokens a user, a session, or everybody may send in a time.

Buckets are in this process: several processes each have their own, so give each its share. Time is the
loop's own, by whichever clock that has.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Sequence
from typing import Any, Literal, TypeAlias

from msgspec import Struct

from flyball.core.context import RunContext
from flyball.core.errors import RateExceeded, UserError
from flyball.core.messages import Message
from flyball.core.tokens import TokenEstimator, by_bytes, estimate_tokens
from flyball.core.violation import Severity
from flyball.validate.filters.violation import Looked, Violation

Scope: TypeAlias = Literal["user", "session", "overall"]
_MINUTE, _HOUR = 60.0, 3600.0


class Rate(Struct, frozen=True):
    """How much may be sent: that many requests a minute, that many tokens an hour. None: any number.

    Raises:
        UserError: a number that is not greater than 0, or none at all.
    """

    requests_per_minute: float | None = None
    tokens_per_hour: float | None = None

    def __post_init__(self) -> None:
        given = [one for one in (self.requests_per_minute, self.tokens_per_hour) if one is not None]
        if not given or not all(type(one) in (int, float) and 0 < one < float("inf") for one in given):
            raise UserError(
                f"a rate is requests_per_minute=, tokens_per_hour= or both, above 0, not {self!r}"
            )


class Bucket:
    """Holds `size` at the most, begins full, and fills in `seconds`. Time that goes back adds nothing.

    What is larger than the bucket is taken from a full one, which then owes: the rate holds all the same.
    """

    __slots__ = ("at", "level", "seconds", "size")

    def __init__(self, size: float, seconds: float, at: float) -> None:
        self.size, self.seconds = size, seconds
        self.level, self.at = size, at

    def wait(self, amount: float, now: float) -> float:
        """Seconds until so much may be taken; 0.0 if it may be now."""
        self.level = min(self.size, self.level + max(0.0, now - self.at) * self.size / self.seconds)
        self.at = max(self.at, now)
        missing = min(amount, self.size) - self.level
        # Less than a millionth of it is the rounding of floats.
        return missing * self.seconds / self.size if missing > self.size * 1e-6 else 0.0

    def take(self, amount: float) -> None:
        """Take it; `wait` was asked before."""
        self.level -= amount


class RateFilter:
    """Lets pass what the rates allow; what they do not is a RateExceeded that says when to come again.

    Buckets begin full, so that a whole minute's requests may come at once. A request counts in all rates, or,
    where one of them has no room for it, in none. Its tokens are estimated from what is sent; what is
    answered counts when it is sent again. Whose it is says the run's metadata (`user_id`): all of nobody's
    share one bucket. A loop without a session is one of its own. Of users and sessions, the `max_keys` that
    came last are remembered: who is forgotten begins with a full bucket.

    Args:
        per_user: the rate of each user.
        per_session: the rate of each session.
        overall: the rate of all together.
        max_keys: how many users, and how many sessions, are remembered.
        estimator: says how many tokens a text has.

    Raises:
        UserError: no rate, or what is none of these.
    """

    name = "rate"

    def __init__(
        self,
        *,
        per_user: Rate | None = None,
        per_session: Rate | None = None,
        overall: Rate | None = None,
        max_keys: int = 10_000,
        estimator: TokenEstimator = by_bytes,
    ) -> None:
        given: dict[Scope, Any] = {"user": per_user, "session": per_session, "overall": overall}
        self.rates: dict[Scope, Rate] = {scope: one for scope, one in given.items() if one is not None}
        if not self.rates or not all(isinstance(one, Rate) for one in given.values() if one is not None):
            raise UserError("RateFilter takes per_user=, per_session= or overall=, each a Rate(...)")
        if type(max_keys) is not int or max_keys < 1:
            raise UserError(f"max_keys= is a number of users and sessions, at least 1, not {max_keys!r}")
        self.max_keys = max_keys
        self.estimator = estimator
        self._kept: dict[Scope, OrderedDict[str, _Buckets]] = {scope: OrderedDict() for scope in self.rates}

    def look(self, ctx: RunContext[Any], messages: Sequence[Message]) -> Looked:
        """Whether a request may be sent now; it counts if so."""
        now, tokens = ctx.facts.at, 0
        if any(rate.tokens_per_hour is not None for rate in self.rates.values()):
            tokens = estimate_tokens(messages, self.estimator)
        asked = [(scope, self._buckets(scope, _key(scope, ctx), now)) for scope in self.rates]
        late: dict[str, float] = {}
        for scope, buckets in asked:
            for kind, wait in buckets.waits(tokens, now):
                late[f"{scope}_{kind}"] = wait
        if not late:
            for _, buckets in asked:
                buckets.take(tokens)
            return Looked()
        after = max(late.values())
        found = tuple([Violation(self.name, kind, Severity.MEDIUM) for kind in late])
        error = RateExceeded(
            f"too much at once ({', '.join(late)}): come again in {after:.1f} s",
            retry_after=after,
            limits=list(late),
        )
        return Looked(found, error)

    def _buckets(self, scope: Scope, key: str, now: float) -> _Buckets:
        kept = self._kept[scope]
        found = kept.get(key)
        if found is None:
            found = kept[key] = _Buckets(self.rates[scope], now)
            if len(kept) > self.max_keys:
                kept.popitem(last=False)
        kept.move_to_end(key)
        return found


class _Buckets:
    """Those of one user, of one session, or of all."""

    __slots__ = ("requests", "tokens")

    def __init__(self, rate: Rate, now: float) -> None:
        of_requests, of_tokens = rate.requests_per_minute, rate.tokens_per_hour
        # One request must fit, or what is rarer than one a minute would never be let pass.
        self.requests = None if of_requests is None else _requests(of_requests, now)
        self.tokens = None if of_tokens is None else Bucket(of_tokens, _HOUR, now)

    def waits(self, tokens: int, now: float) -> Iterable[tuple[str, float]]:
        """What has no room, and how long it takes until it has."""
        if self.requests is not None and (wait := self.requests.wait(1, now)):
            yield "requests", wait
        if self.tokens is not None and (wait := self.tokens.wait(tokens, now)):
            yield "tokens", wait

    def take(self, tokens: int) -> None:
        """Count a request with so many tokens."""
        if self.requests is not None:
            self.requests.take(1)
        if self.tokens is not None:
            self.tokens.take(tokens)


def _requests(rate: float, now: float) -> Bucket:
    return Bucket(rate, _MINUTE, now) if rate >= 1 else Bucket(1, _MINUTE / rate, now)


def _key(scope: Scope, ctx: RunContext[Any]) -> str:
    if scope == "user":
        return str((ctx.facts.metadata or {}).get("user_id") or "")
    return (ctx.facts.correlation.session_id or f"loop {ctx.run_id}") if scope == "session" else ""
