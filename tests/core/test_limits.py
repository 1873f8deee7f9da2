"""Limits: each breach is found, is the first, and says its name."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flyball.core.errors import IterationLimit, QuotaExceeded, UsageLimitExceeded
from flyball.core.limits import Limits, UsageLimits, UsageQuota
from flyball.core.usage import RunUsage
from tests.strategies import limits, run_usages

small = st.integers(0, 10)
SOFT = ("input_tokens_limit", "output_tokens_limit", "total_tokens_limit")
HARD = ("max_requests", "max_total_tokens", "max_input_tokens", "max_output_tokens")


def used(name: str, usage: RunUsage) -> int:
    """What a limit of this name counts."""
    bare = name.removeprefix("max_").removesuffix("_limit")
    return getattr(usage, bare)


@pytest.mark.hypothesis
@pytest.mark.parametrize("name", SOFT)
def test_a_soft_token_limit(name: str) -> None:
    @given(small, st.builds(RunUsage, input_tokens=small, output_tokens=small))
    def holds(allowed: int, usage: RunUsage) -> None:
        breach = UsageLimits(**{name: allowed}).check_tokens(usage)
        if used(name, usage) <= allowed:
            assert breach is None
        else:
            assert type(breach) is UsageLimitExceeded
            assert breach.details == {"limit": name, "allowed": allowed, "used": used(name, usage)}
            assert name in str(breach)
            assert str(allowed) in str(breach)

    holds()


@pytest.mark.hypothesis
@pytest.mark.parametrize("name", HARD)
def test_a_hard_quota(name: str) -> None:
    @given(small, st.builds(RunUsage, input_tokens=small, output_tokens=small, requests=small))
    def holds(allowed: int, usage: RunUsage) -> None:
        quota = UsageQuota(**{name: allowed})
        breach = quota.check(usage)
        if allowed == 0 or used(name, usage) <= allowed:
            assert breach is None
        else:
            assert type(breach) is QuotaExceeded
            told = {"limit": name, "allowed": allowed, "used": used(name, usage)}
            assert breach.details.items() >= told.items()
            assert (UsageQuota(**breach.quota), breach.usage) == (quota, usage)
            read = breach.record().exception()
            assert isinstance(read, QuotaExceeded)
            assert (read.quota, read.usage) == ({name: allowed}, usage)

    holds()


@given(small, small)
def test_the_next_request_is_what_counts(allowed: int, requests: int) -> None:
    usage = RunUsage(requests=requests)
    soft = UsageLimits(request_limit=allowed).check_before_request(usage)
    hard = UsageQuota(max_requests=allowed).check(usage, more_requests=1)
    assert (soft is None) is (requests < allowed)
    assert (hard is None) is (requests < allowed or allowed == 0)


@given(small, small, small)
def test_the_next_tool_calls_are_what_counts(allowed: int, made: int, more: int) -> None:
    breach = UsageLimits(tool_calls_limit=allowed).check_tool_calls(RunUsage(tool_calls=made), more)
    assert (breach is None) is (made + more <= allowed)


def test_the_defaults_are_the_systems_own() -> None:
    assert UsageLimits().request_limit == 50
    assert Limits().max_iterations == 20
    assert not UsageLimits().has_token_limits()
    assert UsageQuota().check(RunUsage(requests=10**9, input_tokens=10**12)) is None


@pytest.mark.parametrize("name", SOFT)
def test_whether_there_are_token_limits(name: str) -> None:
    assert UsageLimits(**{name: 0}).has_token_limits()


@given(small, small)
def test_iterations(allowed: int, iterations: int) -> None:
    limits = Limits(max_iterations=allowed, usage=UsageLimits(request_limit=None))
    breach = limits.before_request(RunUsage(), iterations)
    assert (breach is None) is (iterations < allowed)
    if breach is not None:
        assert type(breach) is IterationLimit
        assert breach.details == {"limit": "max_iterations", "allowed": allowed}


@given(small, small)
def test_tool_calls_that_were_allowed_do_not_forbid_the_next_request(allowed: int, made: int) -> None:
    limits = Limits(usage=UsageLimits(tool_calls_limit=allowed))
    assert (limits.before_request(RunUsage(tool_calls=made), 0) is None) is (made <= allowed)


def test_no_limits_at_all() -> None:
    free = Limits(max_iterations=None, usage=UsageLimits(request_limit=None), calls_per_turn=None)
    vast = RunUsage(requests=10**9, tool_calls=10**9, input_tokens=10**12, output_tokens=10**12)
    assert free.before_request(vast, 10**9) is None
    assert free.after_answer(vast, 10**9) is None


@pytest.mark.parametrize(
    ("limits", "name"),
    [
        (Limits(max_iterations=1), "max_iterations"),
        (Limits(usage=UsageLimits(request_limit=1)), "request_limit"),
        (Limits(quota=UsageQuota(max_requests=1)), "max_requests"),
        (Limits(quota=UsageQuota(max_input_tokens=1)), "max_input_tokens"),
        (Limits(max_iterations=1, usage=UsageLimits(request_limit=1)), "max_iterations"),
        (Limits(usage=UsageLimits(request_limit=1), quota=UsageQuota(max_requests=1)), "request_limit"),
        (Limits(usage=UsageLimits(tool_calls_limit=2)), "tool_calls_limit"),
        (Limits(usage=UsageLimits(request_limit=1, tool_calls_limit=2)), "request_limit"),
        (Limits(usage=UsageLimits(tool_calls_limit=2), quota=UsageQuota(max_requests=1)), "tool_calls_limit"),
    ],
)
def test_what_a_request_breaks_first(limits: Limits, name: str) -> None:
    breach = limits.before_request(RunUsage(requests=1, tool_calls=3, input_tokens=2), 1)
    assert breach is not None
    assert breach.details["limit"] == name


@pytest.mark.parametrize(
    ("limits", "name"),
    [
        (Limits(usage=UsageLimits(input_tokens_limit=1)), "input_tokens_limit"),
        (Limits(usage=UsageLimits(output_tokens_limit=1)), "output_tokens_limit"),
        (Limits(usage=UsageLimits(total_tokens_limit=3)), "total_tokens_limit"),
        (Limits(quota=UsageQuota(max_output_tokens=1)), "max_output_tokens"),
        (Limits(usage=UsageLimits(tool_calls_limit=2)), "tool_calls_limit"),
        (Limits(calls_per_turn=1), "calls_per_turn"),
        (
            Limits(usage=UsageLimits(output_tokens_limit=1), quota=UsageQuota(max_output_tokens=1)),
            "max_output_tokens",  # of what is already used up, the hard quota is told first
        ),
    ],
)
def test_what_an_answer_breaks_first(limits: Limits, name: str) -> None:
    breach = limits.after_answer(RunUsage(tool_calls=1, input_tokens=2, output_tokens=2), 2)
    assert breach is not None
    assert breach.details["limit"] == name


@given(limits, run_usages, small)
def test_an_answer_without_calls_breaks_no_limit_on_calls(
    limits: Limits, usage: RunUsage, calls: int
) -> None:
    breach = limits.after_answer(usage, 0)
    assert breach is None or breach.details["limit"] not in ("tool_calls_limit", "calls_per_turn")
    with_calls = limits.after_answer(usage, calls)
    assert breach is None or (with_calls is not None and with_calls.details == breach.details)
