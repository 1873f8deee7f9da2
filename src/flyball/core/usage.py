"""What a model call and a run used up: one type for all three systems' countings, and how they add."""

from __future__ import annotations

from typing import Any

from msgspec import Struct
from msgspec.structs import replace


class Usage(Struct, frozen=True, omit_defaults=True):
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


class RunUsage(Usage, frozen=True, omit_defaults=True):
    """What a whole run used: its model calls added up, counted, and its tool calls counted."""

    requests: int = 0
    tool_calls: int = 0

    def add_request(self, usage: Usage | None) -> RunUsage:
        """The usage after one more model call (`None`: the engine did not say)."""
        if usage is None:
            return replace(self, requests=self.requests + 1)
        return _added(self, usage, self.requests + 1, self.tool_calls)

    def add_tool_calls(self, count: int) -> RunUsage:
        """The usage after `count` more tool calls."""
        return replace(self, tool_calls=self.tool_calls + count)

    def add_run(self, other: RunUsage) -> RunUsage:
        """This run's and another's together; speeds are averaged by the number of calls."""
        return _added(self, other, self.requests + other.requests, self.tool_calls + other.tool_calls)


def _added(run: RunUsage, other: Usage, requests: int, tool_calls: int) -> RunUsage:
    """Counts and details are summed, the window is the largest seen, the fill is that of the later call."""
    window = other.context_window
    return RunUsage(
        run.input_tokens + other.input_tokens,
        run.output_tokens + other.output_tokens,
        run.reasoning_tokens + other.reasoning_tokens,
        run.cache_read_tokens + other.cache_read_tokens,
        run.cache_write_tokens + other.cache_write_tokens,
        other.context_tokens or run.context_tokens,
        window if window > run.context_window else run.context_window,
        _mean_speed(run, other, requests) if other.tokens_per_second else run.tokens_per_second,
        _summed(run.details, other.details) if other.details else run.details,
        run.extra,
        requests,
        tool_calls,
    )


def _mean_speed(run: RunUsage, other: Usage, requests: int) -> float:
    if not run.tokens_per_second:
        return other.tokens_per_second
    theirs = max(requests - run.requests, 1)
    return (run.tokens_per_second * run.requests + other.tokens_per_second * theirs) / (run.requests + theirs)


def _summed(one: dict[str, int] | None, other: dict[str, int] | None) -> dict[str, int] | None:
    if not one or not other:
        return one or other
    return {key: one.get(key, 0) + other.get(key, 0) for key in one | other}
