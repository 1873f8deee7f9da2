"""RetryPolicy: how often, after how long, and after which failures; time comes from a clock."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from flyball import RetryPolicy
from flyball.core.backoff import LONGEST
from flyball.core.errors import CancelledSignal, ContextExceeded, EngineError, UserError
from flyball.inference.retry_policy import MODEL_CALLS, retried
from flyball.testing import FakeClock


class Failing:
    """Fails with each of these errors, then gives "done"."""

    def __init__(self, *errors: Exception) -> None:
        self.errors = list(errors)
        self.runs = 0

    async def __call__(self) -> str:
        self.runs += 1
        if self.errors:
            raise self.errors.pop(0)
        return "done"


BROKEN = [EngineError(f"broken {n}") for n in range(9)]


@given(st.integers(0, 5), st.integers(0, 8))
async def test_it_is_run_once_more_than_there_are_retries(retries: int, failures: int) -> None:
    work = Failing(*BROKEN[:failures])
    policy = RetryPolicy(retries)
    if failures <= retries:
        assert await policy.run(work) == "done"
        assert work.runs == failures + 1
    else:
        with pytest.raises(EngineError, match=f"broken {retries}"):
            await policy.run(work)
        assert work.runs == retries + 1


async def test_without_a_policy_it_is_run_once() -> None:
    work = Failing(*BROKEN)
    with pytest.raises(EngineError, match="broken 0"):
        await retried(work)
    assert work.runs == 1
    assert await retried(Failing(*BROKEN[:2]), RetryPolicy(2)) == "done"


async def test_it_waits_between_the_tries() -> None:
    clock, work = FakeClock(), Failing(*BROKEN[:3])
    begun = clock.now()
    running = asyncio.ensure_future(RetryPolicy(5, backoff=1.0, factor=2.0).run(work, clock=clock))
    at: list[float] = []
    while not running.done():
        runs = work.runs
        for _ in range(5):
            await asyncio.sleep(0)
        if work.runs > runs:
            at.append(clock.now() - begun)
        elif not running.done():
            await clock.advance(0.5)
            if work.runs > runs:
                at.append(clock.now() - begun)
    assert await running == "done"
    assert at == [0.0, 1.0, 3.0, 7.0]


policies = st.builds(
    RetryPolicy,
    backoff=st.floats(0, 100),
    factor=st.floats(1, 10),
    max_backoff=st.none() | st.floats(0, 1000),
    jitter=st.floats(0, 2),
)


@given(policies, st.integers(1, 400), st.floats(0, 1))
def test_a_wait_grows_up_to_its_limit(policy: RetryPolicy, retry: int, chance: float) -> None:
    wait = policy.wait(retry, chance)
    assert 0 <= wait <= (LONGEST if policy.max_backoff is None else policy.max_backoff)
    assert policy.wait(retry + 1, chance) >= wait or wait == pytest.approx(policy.wait(retry + 1, chance))
    assert policy.wait(retry) <= wait


async def test_what_is_not_worth_it_is_not_tried_again() -> None:
    for error in (ContextExceeded("too long"), CancelledSignal("stop")):
        work = Failing(error)
        with pytest.raises(type(error)):
            await RetryPolicy(3).run(work)
        assert work.runs == 1
    work = Failing(ValueError("odd"), KeyError("odd"))
    with pytest.raises(KeyError):
        await RetryPolicy(3, retry_if=lambda error: isinstance(error, ValueError)).run(work)
    assert work.runs == 2
    assert await RetryPolicy(3).run(Failing(ValueError("any error of others is"))) == "done"


async def test_cancelling_ends_a_wait_at_once_and_nothing_is_tried_again() -> None:
    clock, work = FakeClock(), Failing(*BROKEN)
    running = asyncio.ensure_future(RetryPolicy(5, backoff=60).run(work, clock=clock))
    for _ in range(5):
        await asyncio.sleep(0)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    await clock.advance(600)
    assert work.runs == 1


async def test_cancelling_is_looked_for_before_each_try() -> None:
    work = Failing()
    running = asyncio.ensure_future(RetryPolicy(5).run(work))
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert work.runs == 0

    async def cancels_itself() -> None:
        work.runs += 1
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        raise EngineError("broken")

    running = asyncio.ensure_future(RetryPolicy(5).run(cancels_itself))
    with pytest.raises(asyncio.CancelledError):
        await running
    assert work.runs == 1


@pytest.mark.parametrize(
    "wrong",
    [
        {"max_retries": -1},
        {"max_retries": 1.5},
        {"backoff": -1},
        {"backoff": "1"},
        {"factor": 0.5},
        {"jitter": float("nan")},
        {"max_backoff": float("inf")},
        {"backoff": True},
        {"retry_if": 3},
        {"min_remaining": -1},
        {"max_retry_after": "soon"},
    ],
    ids=str,
)
def test_what_cannot_be_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(UserError):
        RetryPolicy(**wrong)


# What a server asks for, and what is left


@given(policies, st.integers(0, 9), st.floats(0, 1000), st.none() | st.floats(0, 1000), st.floats(0, 1))
def test_what_a_server_asks_for_is_the_wait(
    policy: RetryPolicy, retries: int, asked: float, longest: float | None, chance: float
) -> None:
    policy = replace(policy, max_retries=retries + 1, max_retry_after=longest)
    wait = policy.wait_after(EngineError("busy", retry_after=asked), retries, chance=chance)
    assert wait == (asked if longest is None or asked <= longest else None)


@given(policies, st.integers(0, 9), st.floats(0, 1000), st.floats(0, 1000), st.none() | st.floats(0, 1000))
def test_nothing_is_tried_again_that_would_come_too_late(
    policy: RetryPolicy, retries: int, left: float, least: float, asked: float | None
) -> None:
    policy = replace(policy, max_retries=retries + 1, min_remaining=least)
    error = EngineError("busy", retry_after=asked)
    without_end = policy.wait_after(error, retries)
    assert without_end is not None
    expected = None if left < least or without_end >= left else without_end
    assert policy.wait_after(error, retries, left) == expected


@pytest.mark.parametrize("asked", [None, -1, float("nan"), float("inf"), "soon", True], ids=str)
def test_what_is_no_number_of_seconds_is_not_waited_for(asked: object) -> None:
    policy = RetryPolicy(1, backoff=2.0)
    assert policy.wait_after(EngineError("busy", retry_after=asked), 0) == 2.0


async def test_a_deadline_ends_the_tries_of_a_function() -> None:
    clock, work = FakeClock(), Failing(*BROKEN)
    deadline = clock.now() + 3.0
    policy = RetryPolicy(9, backoff=2.0)
    running = asyncio.ensure_future(policy.run(work, clock=clock, deadline=deadline))
    for _ in range(3):
        await asyncio.sleep(0)
    await clock.advance(2.0)
    with pytest.raises(EngineError, match="broken 1"):
        await running
    assert work.runs == 2


def test_model_calls_are_tried_again_as_gollem_does_it() -> None:
    assert [MODEL_CALLS.wait(retry) for retry in range(1, 7)] == [1, 2, 4, 8, 16, 30]
    assert MODEL_CALLS.wait(1, 1.0) == 1.25
    assert (MODEL_CALLS.max_retries, MODEL_CALLS.min_remaining) == (5, 20)
