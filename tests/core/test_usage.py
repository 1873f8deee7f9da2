"""Usage: what adds up, and how."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import asdict, replace

from flyball.core.usage import RunUsage, Usage, in_steps
from tests.strategies import run_usages, usages

SUMMED = (
    "input_tokens",
    "output_tokens",
    "reasoning_tokens",
    "cache_read_tokens",
    "cache_write_tokens",
    "requests",
    "tool_calls",
)


def counted(usage: RunUsage) -> dict[str, object]:
    """All but the speed, which is a mean of floats, and no sum."""
    return {key: value for key, value in asdict(usage).items() if key != "tokens_per_second"}


@given(run_usages, run_usages)
def test_counts_are_summed(one: RunUsage, other: RunUsage) -> None:
    both = one.add_run(other)
    for name in SUMMED:
        assert getattr(both, name) == getattr(one, name) + getattr(other, name)
    for key in (one.details or {}) | (other.details or {}):
        assert (both.details or {})[key] == (one.details or {}).get(key, 0) + (other.details or {}).get(
            key, 0
        )


@given(run_usages, run_usages, run_usages)
def test_adding_runs_is_associative(one: RunUsage, two: RunUsage, three: RunUsage) -> None:
    assert counted(one.add_run(two).add_run(three)) == counted(one.add_run(two.add_run(three)))


@given(run_usages)
def test_adding_nothing_changes_nothing(usage: RunUsage) -> None:
    assert usage.add_run(RunUsage()) == usage
    assert RunUsage().add_run(usage) == usage


@given(run_usages, usages)
def test_the_window_is_the_largest_and_the_fill_the_latest(run: RunUsage, call: Usage) -> None:
    after = run.add_request(call)
    assert after.context_window == max(run.context_window, call.context_window)
    assert after.context_tokens == (call.context_tokens or run.context_tokens)
    assert after.requests == run.requests + 1
    assert after.tool_calls == run.tool_calls


@given(st.lists(st.floats(0.1, 1e4), min_size=1, max_size=8), st.integers(0, 8))
def test_speeds_are_averaged_by_the_number_of_calls(speeds: list[float], cut: int) -> None:
    def run(some: list[float]) -> RunUsage:
        usage = RunUsage()
        for speed in some:
            usage = usage.add_request(Usage(tokens_per_second=speed))
        return usage

    mean = sum(speeds) / len(speeds)
    assert abs(run(speeds).tokens_per_second - mean) < 1e-6 * mean
    together = run(speeds[:cut]).add_run(run(speeds[cut:]))
    assert abs(together.tokens_per_second - mean) < 1e-6 * mean


def test_a_call_without_a_speed_does_not_slow_the_mean() -> None:
    run = (
        RunUsage()
        .add_request(Usage(input_tokens=1, tokens_per_second=30.0))
        .add_request(Usage(input_tokens=1))
    )
    assert run.tokens_per_second == 30.0


@given(run_usages, st.none() | st.just(Usage()))
def test_a_call_that_says_nothing_is_still_counted(run: RunUsage, silent: Usage | None) -> None:
    assert run.add_request(silent) == replace(run, requests=run.requests + 1)


@given(run_usages, st.integers(0, 9))
def test_tool_calls_are_counted(run: RunUsage, more: int) -> None:
    assert run.add_tool_calls(more) == replace(run, tool_calls=run.tool_calls + more)


@given(st.lists(usages, max_size=4))
def test_calls_add_up(calls: list[Usage]) -> None:
    added = sum(calls, Usage())
    assert type(added) is Usage
    for name in SUMMED[:5]:
        assert getattr(added, name) == sum(getattr(call, name) for call in calls)
    assert added.details == sum(calls, RunUsage()).details


@given(run_usages, run_usages, usages)
def test_plus_is_what_a_run_does(one: RunUsage, other: RunUsage, call: Usage) -> None:
    assert one + other == one.add_run(other)
    assert one + call == one.add_request(call)
    assert call + one == RunUsage().add_request(call).add_run(one)
    grown: Usage = one
    grown += call
    assert grown == one.add_request(call)


@pytest.mark.parametrize("usage", [Usage(1), RunUsage(1)], ids=["a call's", "a run's"])
def test_usage_is_added_to_usage_alone(usage: Any) -> None:
    with pytest.raises(TypeError):
        _ = usage + 1
    with pytest.raises(TypeError):
        _ = 1 + usage


@given(usages)
def test_the_other_names(usage: Usage) -> None:
    assert usage.prompt_tokens == usage.input_tokens
    assert usage.completion_tokens == usage.output_tokens
    assert usage.total_tokens == usage.input_tokens + usage.output_tokens


def test_semstreams_example() -> None:
    assert Usage(input_tokens=500, output_tokens=250).total_tokens == 750


@given(run_usages)
def test_usage_comes_back_from_json(usage: RunUsage) -> None:
    assert msgspec.json.decode(msgspec.json.encode(usage), type=RunUsage) == usage


def test_adding_leaves_what_a_foreign_form_said_besides() -> None:
    run = RunUsage(extra={"note": 1})
    assert run.add_request(Usage(input_tokens=1, extra={"other": 2})).extra == {"note": 1}


def test_two_calls_for_one_answer() -> None:
    first = Usage(10, 2, reasoning_tokens=1, cache_write_tokens=3, context_tokens=12, tokens_per_second=9.0)
    second = Usage(20, 5, cache_read_tokens=10, context_tokens=25, context_window=100, tokens_per_second=30.0)
    both = in_steps(first, second)
    assert both == Usage(30, 7, 1, 10, 3, context_tokens=25, context_window=100, tokens_per_second=30.0)
    assert (in_steps(None, second), in_steps(first, None), in_steps(None, None)) == (second, first, None)
