"""What a run may use up. `None` is no limit; in a quota 0 is none. The first breach ends the run by name."""

from __future__ import annotations

from msgspec import Struct, to_builtins

from flyball.core.errors import DepthLimit, FlyballError, IterationLimit, QuotaExceeded, UsageLimitExceeded
from flyball.core.usage import RunUsage


class UsageLimits(Struct, frozen=True, omit_defaults=True, repr_omit_defaults=True):
    """Soft limits: their breach raises UsageLimitExceeded."""

    request_limit: int | None = 50
    tool_calls_limit: int | None = None
    input_tokens_limit: int | None = None
    output_tokens_limit: int | None = None
    total_tokens_limit: int | None = None

    def has_token_limits(self) -> bool:
        """Whether any limit is on tokens."""
        return not (
            self.input_tokens_limit is None
            and self.output_tokens_limit is None
            and self.total_tokens_limit is None
        )

    def check_before_request(self, usage: RunUsage) -> UsageLimitExceeded | None:
        """The breach that one more model call would be."""
        return _soft("request_limit", self.request_limit, usage.requests + 1)

    def check_tokens(self, usage: RunUsage) -> UsageLimitExceeded | None:
        """The breach in the tokens used so far."""
        return (
            _soft("input_tokens_limit", self.input_tokens_limit, usage.input_tokens)
            or _soft("output_tokens_limit", self.output_tokens_limit, usage.output_tokens)
            or _soft("total_tokens_limit", self.total_tokens_limit, usage.total_tokens)
        )

    def check_tool_calls(self, usage: RunUsage, more: int = 0) -> UsageLimitExceeded | None:
        """The breach that `more` tool calls would be."""
        return _soft("tool_calls_limit", self.tool_calls_limit, usage.tool_calls + more)


class UsageQuota(Struct, frozen=True, omit_defaults=True, repr_omit_defaults=True):
    """Hard limits: their breach raises QuotaExceeded. 0 is unlimited."""

    max_requests: int = 0
    max_total_tokens: int = 0
    max_input_tokens: int = 0
    max_output_tokens: int = 0

    def check(self, usage: RunUsage, more_requests: int = 0) -> QuotaExceeded | None:
        """The breach in what was used so far, with `more_requests` on top."""
        breach = (
            _hard("max_requests", self.max_requests, usage.requests + more_requests)
            or _hard("max_total_tokens", self.max_total_tokens, usage.total_tokens)
            or _hard("max_input_tokens", self.max_input_tokens, usage.input_tokens)
            or _hard("max_output_tokens", self.max_output_tokens, usage.output_tokens)
        )
        if breach is not None:
            breach.details |= {"quota": to_builtins(self), "usage": to_builtins(usage)}
        return breach


class Limits(Struct, frozen=True, omit_defaults=True, repr_omit_defaults=True):
    """All limits of a run, each for itself.

    An iteration is one model call with the handling of its tool calls. `timeout` is for the whole run, in
    seconds. `repeated_calls` is how often the model may ask for the very same calls in a row (or go round
    the same cycle of two or three) before that counts as a loop. `max_depth` is how deep under others a loop
    may stand: one that nobody began from within a run has depth 0. It holds for the loops below it, too.
    """

    max_iterations: int | None = 20
    usage: UsageLimits = UsageLimits()
    quota: UsageQuota | None = None
    timeout: float | None = None
    repeated_calls: int | None = 5
    calls_per_turn: int | None = 256
    max_concurrency: int = 64
    max_depth: int | None = 8

    def before_request(self, usage: RunUsage, iterations: int) -> FlyballError | None:
        """What one more model call would break."""
        if self.max_iterations is not None and iterations >= self.max_iterations:
            return IterationLimit(
                f"no answer after {iterations} iterations: the limit max_iterations is {self.max_iterations}",
                limit="max_iterations",
                allowed=self.max_iterations,
            )
        allowed = self.usage.request_limit
        if allowed is not None and usage.requests >= allowed:
            return self.usage.check_before_request(usage)
        if self.usage.tool_calls_limit is not None and (breach := self.usage.check_tool_calls(usage)):
            return breach  # only where a loop goes on under other limits than it began with
        return None if self.quota is None else self.quota.check(usage, more_requests=1)

    def at_depth(self, depth: int) -> DepthLimit | None:
        """What a loop at this depth breaks."""
        allowed = self.max_depth
        if allowed is None or depth <= allowed:
            return None
        return DepthLimit(
            f"a loop at depth {depth}: the limit max_depth is {allowed}",
            limit="max_depth",
            allowed=allowed,
            depth=depth,
        )

    def after_answer(self, usage: RunUsage, calls: int) -> FlyballError | None:
        """What the tokens so far break, or the calls that are asked for now."""
        if self.quota is not None and (breach := self.quota.check(usage)):
            return breach
        soft = self.usage
        on_tokens = not (
            soft.input_tokens_limit is None
            and soft.output_tokens_limit is None
            and soft.total_tokens_limit is None
        )
        if on_tokens and (breach := soft.check_tokens(usage)):
            return breach
        if not calls:
            return None
        if self.calls_per_turn is not None and calls > self.calls_per_turn:
            return _soft("calls_per_turn", self.calls_per_turn, calls)
        return None if soft.tool_calls_limit is None else soft.check_tool_calls(usage, calls)


def _soft(name: str, allowed: int | None, used: int) -> UsageLimitExceeded | None:
    if allowed is None or used <= allowed:
        return None
    return UsageLimitExceeded(
        f"the limit {name} is {allowed}, and this would be {used}", limit=name, allowed=allowed, used=used
    )


def _hard(name: str, allowed: int, used: int) -> QuotaExceeded | None:
    if not allowed or used <= allowed:
        return None
    return QuotaExceeded(
        f"the quota {name} is {allowed}, and this would be {used}", limit=name, allowed=allowed, used=used
    )
