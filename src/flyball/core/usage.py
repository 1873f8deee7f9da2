"""What a model call and a run used up: one type for all three systems' countings, and how they add."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from msgspec import Struct
from msgspec.structs import replace


class Usage(Struct, frozen=True, omit_defaults=True, repr_omit_defaults=True, gc=False):
    """The tokens of one model call, or of several added up.

    `input_tokens` includes cached ones; `output_tokens` includes reasoning. `context_tokens` and
    `context_window` say how full the model's window was; `details` holds whatever else a provider counts.
    `extra` keeps what a foreign form said besides; it belongs to one document, and adding leaves it.
    """

    input_tokens: int = 0
    output_tokens: int = 0
    reasoning_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    context_tokens: int = 0
    context_window: int = 0
    tokens_per_second: float = 0.0
    details: dict[str, int] | None = None
    extra: dict[str, Any] | None = None

    def __add__(self, other: Usage) -> Usage:
        """Both together, as two calls are added to a run; `+=` works, too. A run's usage stays one."""
        if not isinstance(other, Usage) or isinstance(other, RunUsage):  # pyright: ignore[reportUnnecessaryIsInstance]
            return NotImplemented
        added = RunUsage().add_request(self).add_request(other)
        return Usage(*[getattr(added, name) for name in _TOKENS], extra=self.extra)

    @property
    def prompt_tokens(self) -> int:
        """SemStreams' and pagantic's name for `input_tokens`."""
        return self.input_tokens

    @property
    def completion_tokens(self) -> int:
        """SemStreams' name for `output_tokens`."""
        return self.output_tokens

    @property
    def total_tokens(self) -> int:
        """Input and output."""
        return self.input_tokens + self.output_tokens


class RunUsage(Usage, frozen=True, omit_defaults=True, repr_omit_defaults=True, gc=False):
    """What a whole run used: its model calls added up, counted, and its tool calls counted."""

    requests: int = 0
    tool_calls: int = 0

    def __add__(self, other: Usage) -> RunUsage:
        """This run's and another's, or this run's after one more model call."""
        if isinstance(other, RunUsage):
            return self.add_run(other)
        return self.add_request(other) if isinstance(other, Usage) else NotImplemented  # pyright: ignore[reportUnnecessaryIsInstance]

    def __radd__(self, other: Usage) -> RunUsage:
        """A model call, and then this run's."""
        if not isinstance(other, Usage):  # pyright: ignore[reportUnnecessaryIsInstance]
            return NotImplemented
        return RunUsage().add_request(other).add_run(self)

    def add_request(self, usage: Usage | None) -> RunUsage:
        """The usage after one more model call (`None`: the engine did not say).

        Counts and details are summed, the window is the largest seen, the fill is that of the later call.
        """
        if usage is None:
            return replace(self, requests=self.requests + 1)
        window, requests = usage.context_window, self.requests + 1
        return RunUsage(
            self.input_tokens + usage.input_tokens,
            self.output_tokens + usage.output_tokens,
            self.reasoning_tokens + usage.reasoning_tokens,
            self.cache_read_tokens + usage.cache_read_tokens,
            self.cache_write_tokens + usage.cache_write_tokens,
            usage.context_tokens or self.context_tokens,
            window if window > self.context_window else self.context_window,
            _mean_speed(self, usage, requests) if usage.tokens_per_second else self.tokens_per_second,
            _summed(self.details, usage.details) if usage.details else self.details,
            self.extra,
            requests,
            self.tool_calls,
        )

    def add_tool_calls(self, count: int) -> RunUsage:
        """The usage after `count` more tool calls."""
        return replace(self, tool_calls=self.tool_calls + count)

    def add_below(self, calls: Iterable[Usage | None], requests: int) -> RunUsage:
        """The usage with that of a loop under the run: its tokens and its requests.

        How full the window is, how fast the model was and how many tools were called stays the run's own.
        """
        below = RunUsage()
        for usage in calls:
            below = below.add_request(usage)
        return RunUsage(
            self.input_tokens + below.input_tokens,
            self.output_tokens + below.output_tokens,
            self.reasoning_tokens + below.reasoning_tokens,
            self.cache_read_tokens + below.cache_read_tokens,
            self.cache_write_tokens + below.cache_write_tokens,
            self.context_tokens,
            self.context_window,
            self.tokens_per_second,
            _summed(self.details, below.details),
            self.extra,
            self.requests + requests,
            self.tool_calls,
        )

    def add_run(self, other: RunUsage) -> RunUsage:
        """This run's and another's together; speeds are averaged by the number of calls."""
        added = self.add_request(other)
        return replace(
            added,
            requests=self.requests + other.requests,
            tool_calls=self.tool_calls + other.tool_calls,
            tokens_per_second=_mean_speed(self, other, self.requests + other.requests)
            if other.tokens_per_second
            else self.tokens_per_second,
        )


def in_steps(first: Usage | None, second: Usage | None) -> Usage | None:
    """What two calls for one answer used, where they said so.

    Tokens are added up; how full the window is and how fast the model was are the second's, which answers.
    """
    if first is None or second is None:
        return second or first
    return replace(
        first + second,
        context_tokens=second.context_tokens,
        context_window=second.context_window,
        tokens_per_second=second.tokens_per_second,
    )


class CallUsage(Struct, frozen=True, omit_defaults=True, repr_omit_defaults=True, gc=False):
    """What one model call used, and all that its price hangs on.

    `model` is who answered, as it said itself; `asked` is the model as the loop's spec has it, and `provider`
    who serves it, where `asked` does not say so. `usage` is None where the engine did not say.
    """

    at: float
    model: str | None = None
    usage: Usage | None = None
    asked: str = ""
    provider: str = ""


_TOKENS = tuple([name for name in Usage.__struct_fields__ if name != "extra"])


def _mean_speed(run: RunUsage, other: Usage, requests: int) -> float:
    if not run.tokens_per_second:
        return other.tokens_per_second
    theirs = max(requests - run.requests, 1)
    return (run.tokens_per_second * run.requests + other.tokens_per_second * theirs) / (run.requests + theirs)


def _summed(one: dict[str, int] | None, other: dict[str, int] | None) -> dict[str, int] | None:
    if not one or not other:
        return one or other
    return {key: one.get(key, 0) + other.get(key, 0) for key in one | other}
