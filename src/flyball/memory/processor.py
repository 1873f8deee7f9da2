"""History processors: functions that are given what is about to be sent, and give what is sent instead."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

from flyball.core.compaction import CompactionStrategy, ContextCompaction
from flyball.core.context import RunContext
from flyball.core.feature import FunctionFeature
from flyball.core.messages import Message
from flyball.core.tokens import TokenEstimator, by_bytes, estimate_tokens

_NOTICED = 5
"""By how many percent the tokens must fall for that to be told, where no message is left out."""


class HistoryProcessor(FunctionFeature):
    """Asked before each model call: `check(ctx, messages)`, or `check(messages)`, which may be async.

    It gives the messages to send, as a list; what it was given must not be changed. The history stays as it
    was said: the next call begins from that. What it gives is made valid for every provider (see `valid`),
    so that it may be a plain slice, `messages[-10:]`; the run fails with an InvalidMessage that names it
    where that cannot be.
    """

    estimator: TokenEstimator = staticmethod(by_bytes)
    """How the tokens are counted that are told of it."""

    def __init__(self, check: Callable[..., Any], name: str | None = None) -> None:
        super().__init__(check, name)
        self._with_context = _takes_two(check)

    def process(self, ctx: RunContext[Any], messages: Sequence[Message]) -> Any:
        """What the function gives: the messages to send, or something that they can be waited for."""
        return self.check(ctx, messages) if self._with_context else self.check(messages)

    def compaction(self, before: Sequence[Message], after: Sequence[Message]) -> ContextCompaction | None:
        """By how much it made the messages shorter; None where that is not worth telling."""
        if after == before:
            return None
        tokens_before = estimate_tokens(before, self.estimator)
        tokens_after = estimate_tokens(after, self.estimator)
        if len(after) >= len(before) and tokens_after * 100 >= tokens_before * (100 - _NOTICED):
            return None
        return ContextCompaction(
            CompactionStrategy.HISTORY_PROCESSOR,
            len(before),
            len(after),
            tokens_before,
            tokens_after,
            self.name,
        )


def _takes_two(function: Callable[..., Any]) -> bool:
    """Whether a function takes the context besides the messages: those that must be given tell."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return True  # a builtin does not say
    needed = [
        one
        for one in parameters
        if one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD) and one.default is one.empty
    ]
    return len(needed) != 1 or any(one.kind is one.VAR_POSITIONAL for one in parameters)
