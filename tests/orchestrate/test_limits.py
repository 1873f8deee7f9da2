"""Limits: each by itself, which one breaks first, and what a run leaves that broke one."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flyball import Agent, Limits, ModelRepair, RunContext, UsageLimits, UsageQuota, tool
from flyball.core.errors import (
    CancelledTimeout,
    FlyballError,
    IterationLimit,
    LoopDetected,
    QuotaExceeded,
    UsageLimitExceeded,
    UserError,
)
from flyball.core.events import Outcome, TimePassed
from flyball.core.history import check_history
from flyball.core.ids import new_id
from flyball.core.messages import Message, ResultKind, Text, ToolCall
from flyball.core.usage import Usage
from flyball.inference.answers import Answer
from flyball.inference.answers import tool_call as call
from flyball.inference.request import Request
from flyball.testing.clock import FakeClock
from tests.orchestrate.conftest import Runner, kinds_of
from tests.orchestrate.models import Hanging, Script
from tests.orchestrate.scenarios import City, add, final, said
from tests.orchestrate.where import Where

EACH = Usage(10, 5)
"""What each turn uses."""


def asking(n: int) -> Message:
    return said(ToolCall(f"c{n}", "add", f'{{"x":{n},"y":1}}'), usage=EACH)


TURNS: list[Answer] = [asking(n) for n in range(30)]


def limited(limits: Limits) -> Agent[Any, str]:
    return Agent(Script(*TURNS), tools=[add], limits=limits)


BREACHES: dict[str, tuple[Limits, type[FlyballError], dict[str, Any], int, int]] = {
    # limits, the error, its details, how many model calls were made, how many tools ran
    "max_iterations": (
        Limits(max_iterations=3),
        IterationLimit,
        {"limit": "max_iterations", "allowed": 3},
        3,
        3,
    ),
    "max_iterations by default": (
        Limits(),
        IterationLimit,
        {"limit": "max_iterations", "allowed": 20},
        20,
        20,
    ),
    "request_limit": (
        Limits(usage=UsageLimits(request_limit=2)),
        UsageLimitExceeded,
        {"limit": "request_limit", "allowed": 2, "used": 3},
        2,
        2,
    ),
    "tool_calls_limit": (
        Limits(usage=UsageLimits(tool_calls_limit=4)),
        UsageLimitExceeded,
        {"limit": "tool_calls_limit", "allowed": 4, "used": 5},
        5,
        4,
    ),
    "input_tokens_limit": (
        Limits(usage=UsageLimits(input_tokens_limit=25)),
        UsageLimitExceeded,
        {"limit": "input_tokens_limit", "allowed": 25, "used": 30},
        3,
        2,
    ),
    "output_tokens_limit": (
        Limits(usage=UsageLimits(output_tokens_limit=5)),
        UsageLimitExceeded,
        {"limit": "output_tokens_limit", "allowed": 5, "used": 10},
        2,
        1,
    ),
    "total_tokens_limit": (
        Limits(usage=UsageLimits(total_tokens_limit=59)),
        UsageLimitExceeded,
        {"limit": "total_tokens_limit", "allowed": 59, "used": 60},
        4,
        3,
    ),
    "max_requests": (
        Limits(quota=UsageQuota(max_requests=1)),
        QuotaExceeded,
        {"limit": "max_requests", "allowed": 1, "used": 2},
        1,
        1,
    ),
    "max_total_tokens": (
        Limits(quota=UsageQuota(max_total_tokens=15)),
        QuotaExceeded,
        {"limit": "max_total_tokens", "allowed": 15, "used": 30},
        2,
        1,
    ),
    "max_input_tokens": (
        Limits(quota=UsageQuota(max_input_tokens=9)),
        QuotaExceeded,
        {"limit": "max_input_tokens", "allowed": 9, "used": 10},
        1,
        0,
    ),
    "max_output_tokens": (
        Limits(quota=UsageQuota(max_output_tokens=9)),
        QuotaExceeded,
        {"limit": "max_output_tokens", "allowed": 9, "used": 10},
        2,
        1,
    ),
}


@pytest.mark.parametrize(("limits", "kind", "details", "requests", "tools"), BREACHES.values(), ids=BREACHES)
async def test_each_limit_ends_the_run_by_its_name(
    run: Runner,
    limits: Limits,
    kind: type[FlyballError],
    details: dict[str, Any],
    *,
    requests: int,
    tools: int,
) -> None:
    error = await run.failing(kind, limited(limits), "go")
    assert error.details.items() >= details.items()
    assert details["limit"] in str(error)
    assert not error.retryable
    partial = error.partial
    if isinstance(error, QuotaExceeded):
        assert UsageQuota(**error.quota) == limits.quota
        assert (error.usage.requests, error.usage.total_tokens) == (requests, 15 * requests)
    assert partial.outcome is Outcome.FAILED
    assert partial.output is None
    assert (partial.usage.requests, partial.usage.tool_calls) == (requests, tools)
    assert partial.usage.total_tokens == 15 * requests
    check_history(partial.messages)
    results = [found for message in partial.messages for found in message.tool_results]
    assert [found.status for found in results].count(ResultKind.SKIPPED) == requests - tools


async def test_what_a_run_had_reached_can_be_gone_on_with(run: Runner) -> None:
    error = await run.failing(IterationLimit, limited(Limits(max_iterations=3)), "go")
    result = await run(Agent(Script("enough")), "Sum it up.", messages=error.partial.messages)
    assert result.output == "enough"
    assert len(result.messages) == len(error.partial.messages) + 2


async def test_none_is_no_limit() -> None:
    limits = Limits(max_iterations=None, usage=UsageLimits(request_limit=None))
    agent = Agent(Script(*TURNS, *[asking(n) for n in range(30, 60)], "done"), tools=[add], limits=limits)
    assert (await agent.run("go")).usage.requests == 61


async def test_zero_in_a_quota_is_no_limit(run: Runner) -> None:
    assert (
        await run(Agent(Script(said(Text("hi"), usage=EACH)), limits=Limits(quota=UsageQuota())), "go")
    ).output == "hi"


@pytest.mark.parametrize("answer", [said(Text("done"), usage=EACH), said(final(name="Rome"), usage=EACH)])
async def test_tokens_count_also_against_the_answer_itself(run: Runner, answer: Message) -> None:
    output: Any = City if answer.tool_calls else str
    agent = Agent(Script(answer), output=output, limits=Limits(usage=UsageLimits(total_tokens_limit=14)))
    error = await run.failing(UsageLimitExceeded, agent, "go")
    assert error.partial.messages[1].text == answer.text, "the answer is in the history all the same"


async def test_retries_count_as_iterations(run: Runner) -> None:
    agent = Agent(
        Script("no", "no", "no"), output=City, output_mode="tool", retries=9, limits=Limits(max_iterations=2)
    )
    error = await run.failing(IterationLimit, agent, "go")
    assert error.details["allowed"] == 2


async def test_an_answer_in_the_last_allowed_turn_counts(run: Runner) -> None:
    agent = Agent(
        Script(*TURNS[:2], "done"),
        tools=[add],
        limits=Limits(max_iterations=3, usage=UsageLimits(request_limit=3)),
    )
    assert (await run(agent, "go")).output == "done"


async def test_output_calls_are_no_tool_calls(run: Runner) -> None:
    limits = Limits(usage=UsageLimits(tool_calls_limit=0), calls_per_turn=0)
    agent = Agent(Script([final(name="Rome")] * 3), output=City, output_mode="tool", limits=limits)
    assert (await run(agent, "go")).output == City(name="Rome")


async def test_a_run_may_have_its_own_limits(run: Runner) -> None:
    agent = limited(Limits(max_iterations=1))
    error = await run.failing(IterationLimit, agent, "go", limits=Limits(max_iterations=2))
    assert error.details["allowed"] == 2


async def test_a_run_may_have_its_own_soft_limits_only(run: Runner) -> None:
    agent = limited(Limits(max_iterations=5, usage=UsageLimits(request_limit=1)))
    error = await run.failing(IterationLimit, agent, "go", usage_limits=UsageLimits())
    assert error.details["allowed"] == 5


@given(st.integers(1, 12), st.integers(1, 12), st.integers(1, 12), st.integers(15, 180))
async def test_the_first_breach_wins(iterations: int, requests: int, calls: int, tokens: int) -> None:
    limits = Limits(
        max_iterations=iterations,
        usage=UsageLimits(request_limit=requests, tool_calls_limit=calls, total_tokens_limit=tokens),
    )
    with pytest.raises(FlyballError) as caught:
        await limited(limits).run("go")
    # Before the turn that would be one too many, or after the answer that was.
    breaches = [
        (iterations + 0.5, 0, "max_iterations"),
        (requests + 0.5, 1, "request_limit"),
        (tokens // 15 + 1, 2, "total_tokens_limit"),
        (calls + 1, 3, "tool_calls_limit"),
    ]
    assert caught.value.details["limit"] == min(breaches)[2]


# The time


async def test_the_time_is_up_while_the_model_is_silent(orderly: Where) -> None:
    clock, model = FakeClock(), Hanging()
    task = asyncio.ensure_future(Agent(model).run("go", timeout=60, clock=clock, **orderly.options({})))
    await model.place.entered.wait()
    await clock.advance(59)
    assert not task.done()
    await clock.advance(1)
    with pytest.raises(CancelledTimeout, match="60 s") as caught:
        await task
    assert model.place.cancelled == 1
    assert caught.value.details == {"timeout": 60.0, "limit": "timeout"}
    assert caught.value.partial.outcome is Outcome.CANCELLED
    events = await caught.value.partial.events()
    assert kinds_of(events) == ["Started", "TimePassed", "Ended"]
    assert isinstance(events[1], TimePassed)
    assert events[1].at == events[0].at + 60


async def test_the_time_that_tools_take_counts(run: Runner) -> None:
    clock = FakeClock()

    @tool
    async def slow() -> str:
        await clock.advance(40)
        return "done"

    agent = Agent(Script(call("slow", id="a"), call("slow", id="b"), "late"), tools=[slow])
    error = await run.failing(CancelledTimeout, agent, "go", timeout=60, clock=clock)
    if run.calm:
        assert error.partial.usage.requests == 2


async def test_a_run_in_time_leaves_no_timer_behind(run: Runner) -> None:
    clock = FakeClock()
    result = await run(
        Agent(Script(call("add", {"x": 1, "y": 1}), "2"), tools=[add]), "go", timeout=60, clock=clock
    )
    assert result.output == "2"
    await clock.advance(1000)
    assert "TimePassed" not in kinds_of(await result.events())


async def test_the_time_is_up_while_user_code_thinks(where: Where) -> None:
    clock = FakeClock()
    entered = asyncio.Event()

    async def think(_: RunContext[Any], output: str) -> str:
        entered.set()
        await asyncio.Event().wait()
        return output

    task = asyncio.ensure_future(
        Agent(Script("hi"), validators=[think]).run("go", timeout=5, clock=clock, **where.options({}))
    )
    await entered.wait()
    await clock.advance(5)
    with pytest.raises(CancelledTimeout) as caught:
        await task
    assert caught.value.partial.messages[-1].text == "hi"


@pytest.mark.parametrize("seconds", [0, -1, float("nan"), float("inf"), "5"])
async def test_a_time_out_must_be_positive(run: Runner, seconds: Any) -> None:
    with pytest.raises(UserError, match="time-out"):
        await run(Agent(Script("hi")), "go", timeout=seconds)


# Circles


def circle(*calls: tuple[str, int]) -> list[Answer]:
    return [call(name, {"x": x, "y": 0}) for name, x in calls]


CIRCLES: dict[str, tuple[int, list[Answer], int]] = {
    # how long the circle is, one round of it, how many rounds are allowed
    "one turn": (1, circle(("add", 1)), 3),
    "two turns": (2, circle(("add", 1), ("add", 2)), 3),
    "three turns": (3, circle(("add", 1), ("add", 2), ("add", 3)), 2),
    "several calls in any order": (1, [[call("add", {"x": 1, "y": 0}), call("add", {"x": 2, "y": 0})]], 2),
    "unknown tools": (1, circle(("nope", 1)), 2),
}


@pytest.mark.parametrize(("length", "once", "allowed"), CIRCLES.values(), ids=CIRCLES)
async def test_going_round_in_circles_is_noticed(
    run: Runner, length: int, once: list[Answer], allowed: int
) -> None:
    script = Script(*once * (allowed + 3))
    agent = Agent(script, tools=[add], limits=Limits(repeated_calls=allowed), retries=99)
    error = await run.failing(LoopDetected, agent, "go")
    assert len(script.requests) == length * (allowed + 1)
    assert error.details["times"] == allowed + 1
    assert "repeated_calls" in str(error)
    check_history(error.partial.messages)


async def test_a_circle_names_the_error_that_it_goes_round(run: Runner) -> None:
    @tool
    async def weather(city: str) -> str:
        raise OSError(f"no wind in {city}")

    calls = [call("weather", {"city": "Rome"})] * 3
    agent = Agent(Script(*calls), tools=[weather], limits=Limits(repeated_calls=2))
    error = await run.failing(LoopDetected, agent, "go")
    assert "what weather said last: OSError: no wind in Rome" in str(error)


async def test_a_circle_of_calls_that_went_well_names_no_error(run: Runner) -> None:
    agent = Agent(Script(*circle(("add", 1)) * 3), tools=[add], limits=Limits(repeated_calls=2))
    assert "said last" not in str(await run.failing(LoopDetected, agent, "go"))


@pytest.mark.parametrize(("length", "once", "allowed"), CIRCLES.values(), ids=CIRCLES)
async def test_as_many_rounds_as_allowed_are_no_circle(
    run: Runner, length: int, once: list[Answer], allowed: int
) -> None:
    answers = (once * (allowed + 1))[:-1]
    agent = Agent(Script(*answers, "done"), tools=[add], limits=Limits(repeated_calls=allowed), retries=99)
    assert (await run(agent, "go")).output == "done"
    assert len(answers) == length * (allowed + 1) - 1


async def test_a_circle_that_is_left_is_forgotten(run: Runner) -> None:
    same, other = circle(("add", 1)), circle(("add", 2), ("add", 3), ("add", 4))
    agent = Agent(
        Script(*same * 2, *other, *same * 2, *other, "done"), tools=[add], limits=Limits(repeated_calls=2)
    )
    assert (await run(agent, "go")).output == "done"


@given(st.lists(st.integers(0, 3), max_size=18), st.integers(1, 3))
async def test_a_circle_is_found_if_and_only_if_there_is_one(turns: list[int], allowed: int) -> None:
    answers = circle(*[("add", x) for x in turns])
    agent = Agent(Script(*answers, "done"), tools=[add], limits=Limits(repeated_calls=allowed))

    def closes(n: int) -> bool:
        """Whether turn n ends a circle that was gone round once more than allowed."""
        return any(
            n >= period * (allowed + 1)
            and all(turns[k] == turns[k - period] for k in range(n - period * allowed, n))
            for period in (1, 2, 3)
        )

    if any(closes(n) for n in range(1, len(turns) + 1)):
        with pytest.raises(LoopDetected):
            await agent.run("go")
    else:
        assert (await agent.run("go")).output == "done"


async def test_progress_is_no_circle(run: Runner) -> None:
    class Counting(Script):
        def result(self, request: Request, answer: Any) -> Any:
            n = len(request.messages)
            return super().result(request, call("add", {"x": n, "y": 0}) if n < 30 else "done")

    agent = Agent(Counting(*[""] * 30), tools=[add], limits=Limits(repeated_calls=1))
    assert (await run(agent, "go")).output == "done"


async def test_circles_may_be_allowed(run: Runner) -> None:
    agent = Agent(Script(*circle(("add", 1)) * 15, "done"), tools=[add], limits=Limits(repeated_calls=None))
    assert (await run(agent, "go")).output == "done"


async def test_a_model_is_told_the_runs_deadline_wherever_it_is_called(where: Where) -> None:
    """Also where it puts an answer right; without a deadline nothing is sent of one."""
    clock = FakeClock()
    model, mender = Script("Rome?"), Script('{"name": "Rome", "people": 3}', name="mender")
    agent = Agent(model, output=City, output_mode="native", features=[ModelRepair(mender)])
    await where.run(agent, "go", new_id(), timeout=60, clock=clock)
    assert [one.deadline for one in (*model.requests, *mender.requests)] == [clock.now() + 60] * 2
    plain = Script("fine")
    await where.run(Agent(plain), "go", new_id(), clock=clock)
    assert plain.last.deadline is None
    assert b"deadline" not in msgspec.json.encode(plain.last)
