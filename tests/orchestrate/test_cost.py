"""What runs cost: the same however a run is made and wherever it goes on; and what holds without a price."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from decimal import Decimal
from typing import Any

import pytest

from flyball import (
    Agent,
    CostTracker,
    Journal,
    Limits,
    MaxCost,
    MemoryJournal,
    ModelPricing,
    RunContext,
    Usage,
    UsageLimits,
    UsageQuota,
)
from flyball.core.errors import (
    EngineError,
    FlyballError,
    QuotaExceeded,
    RunConditionError,
    UsageLimitExceeded,
    UserError,
)
from flyball.core.events import ModelAnswered
from flyball.core.messages import Message, Text, ToolCall
from flyball.inference.answers import Answer
from flyball.inference.request import ModelInfo, Request
from flyball.inference.scripted import FunctionEngine
from flyball.inference.stream import Finish, StreamEvent, TextDelta
from flyball.orchestrate.driver import Drive
from flyball.orchestrate.spending import spent
from flyball.validate.interceptors import InterceptResult, ResponseInterceptor
from tests.orchestrate.conftest import Runner
from tests.orchestrate.models import Script
from tests.orchestrate.scenarios import add, said
from tests.orchestrate.where import Where

PRICING = {"small": ModelPricing("0.1", "0.2"), "large": ModelPricing(1, 2, "0.5")}
EACH = Usage(10, 5, cache_read_tokens=4)
"""What each call uses: 2 with the small model, 18 with the large one."""


def by(model: str, *parts: Any, usage: Usage | None = EACH) -> Message:
    answer = said(*parts, usage=usage)
    return Message(answer.role, answer.parts, usage=usage, model=model)


def adding(model: str, n: int, usage: Usage | None = EACH) -> Message:
    return by(model, ToolCall(f"c{n}", "add", f'{{"x":{n},"y":1}}'), usage=usage)


ANSWERS: tuple[Answer, ...] = (adding("small", 1), adding("large", 2), by("small", Text("done")))
COST = {"small": Decimal(4), "large": Decimal(18)}


def priced(
    *answers: Answer, tracker: CostTracker | None = None, **options: Any
) -> tuple[Agent[Any, str], CostTracker]:
    tracker = tracker or CostTracker(PRICING)
    features = [tracker, *options.pop("features", ())]
    return Agent(Script(*answers, name="small"), tools=[add], features=features, **options), tracker


# Each way to run


async def test_a_run_has_its_cost_by_model(run: Runner) -> None:
    agent, tracker = priced(*ANSWERS)
    result = await run(agent, "go")
    assert result.cost is not None
    assert result.cost.breakdown == COST
    assert result.cost.total == 22
    assert str(result.cost) == "22 USD"
    if run.calm:
        assert tracker.cost == result.cost
    else:  # calls that were made again have been paid again
        assert tracker.cost.known >= result.cost.known


async def test_a_stream_has_its_cost(where: Where) -> None:
    agent, tracker = priced(*ANSWERS)
    async with where.stream(agent) as stream:
        async for _ in stream.text():
            pass
    assert stream.result.cost is not None
    assert stream.result.cost.breakdown == COST
    if where.calm:
        assert tracker.cost_breakdown() == COST


async def test_a_stepped_run_has_its_cost(where: Where) -> None:
    agent, tracker = priced(*ANSWERS)
    async with where.iter(agent) as run:
        async for _ in run:
            pass
    assert run.result.cost is not None
    assert run.result.cost.breakdown == COST
    if where.calm:
        assert tracker.cost_breakdown() == COST


async def test_what_a_reader_did_not_stay_for_is_paid_all_the_same(journal: Journal) -> None:
    agent, tracker = priced(*ANSWERS)
    async with agent.iter("go", journal=journal) as run:
        await run.next()
    assert tracker.cost_breakdown() == {"small": Decimal(2)}


async def test_runs_of_a_batch_cost_each_their_own_and_together_all() -> None:
    agent, tracker = priced(*ANSWERS)
    results = await agent.run_batch(["go"] * 20, concurrency=7)
    costs = [result.cost for result in results if not isinstance(result, FlyballError)]
    assert [cost and cost.breakdown for cost in costs] == [COST] * 20
    assert tracker.total_cost == 20 * 22


async def test_without_a_tracker_there_is_no_cost(run: Runner) -> None:
    agent = Agent(Script(*ANSWERS), tools=[add])
    assert (await run(agent, "go")).cost is None
    assert agent.spec.provider == ""
    assert isinstance(agent.bindings().engine, Script)


# Over time


async def test_replaying_costs_the_same_and_adds_nothing(run: Runner) -> None:
    agent, tracker = priced(*ANSWERS)
    result = await run(agent, "go")
    before = tracker.cost
    again = await agent.replay(result.loop_id, result.journal)
    assert again.cost == result.cost
    assert tracker.cost == before


async def test_a_tracker_that_comes_later_prices_what_is_recorded(run: Runner) -> None:
    result = await run(Agent(Script(*ANSWERS, name="small"), tools=[add]), "go")
    late, tracker = priced()
    again = await late.replay(result.loop_id, result.journal)
    assert again.cost is not None
    assert again.cost.breakdown == COST
    assert tracker.cost_breakdown() == {}


async def test_a_resumed_loop_costs_what_it_cost_in_all_and_no_call_counts_twice(journal: Journal) -> None:
    agent, tracker = priced(*ANSWERS)
    async with agent.iter("go", journal=journal, loop_id="resumed") as run:
        await run.next()
    first = tracker.cost
    result = await agent.resume("resumed", journal)
    assert result.cost is not None
    assert result.cost.breakdown == tracker.cost_breakdown() == COST
    assert first.breakdown == {"small": Decimal(2)}
    assert (await agent.resume("resumed", journal)).cost == result.cost
    assert tracker.cost_breakdown() == COST, "a loop that is over is only read"


async def test_a_tracker_in_another_process_counts_what_is_made_there(journal: Journal) -> None:
    agent, _ = priced(*ANSWERS)
    async with agent.iter("go", journal=journal, loop_id="moved") as run:
        await run.next()
    other, tracker = priced(*ANSWERS)
    result = await other.resume("moved", journal)
    assert result.cost is not None
    assert result.cost.breakdown == COST
    assert tracker.cost_breakdown() == {"large": Decimal(18), "small": Decimal(2)}


async def test_a_fork_costs_with_what_it_goes_on_from_and_adds_its_own_calls_alone(journal: Journal) -> None:
    agent, tracker = priced(*ANSWERS)
    source = await agent.run("go", journal=journal)
    other = agent.clone(model=Script(adding("large", 3), by("large", Text("done")), first=2, name="large"))
    forked = await other.fork(source.loop_id, journal, turn=1)
    assert forked.cost is not None
    assert forked.cost.breakdown == {"small": Decimal(2), "large": Decimal(36)}
    assert tracker.cost_breakdown() == {"small": Decimal(4), "large": Decimal(54)}
    assert forked.usage.requests == 3
    assert (await other.replay(forked.loop_id, journal)).cost == forked.cost


async def test_a_run_that_was_cut_off_has_paid_what_was_answered() -> None:
    hanging = asyncio.Event()

    async def slow(request: Request) -> Message:
        if len(request.messages) > 1:
            hanging.set()
            await asyncio.Event().wait()
        return adding("small", 1)

    tracker = CostTracker(PRICING)
    agent = Agent(FunctionEngine(slow, info="small"), tools=[add], features=[tracker])
    task = asyncio.create_task(agent.run("go"))
    await hanging.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert tracker.total_cost == 2


# What counts


async def test_a_failed_call_costs_what_it_had_used(where: Where) -> None:
    async def breaks(request: Request) -> AsyncIterator[StreamEvent]:
        yield TextDelta(0, "half an")
        yield Finish(EACH, "small")
        raise OSError("line is down")

    async def fails(request: Request) -> Message:
        raise OSError("line is down")

    tracker = CostTracker(PRICING)
    agent = Agent(FunctionEngine(fails, breaks, info="small"), features=[tracker])
    async with where.stream(agent) as stream:
        with pytest.raises(EngineError) as caught:
            async for _ in stream.events():
                pass
    assert caught.value.partial.cost.breakdown == {"small": Decimal(2)}
    with pytest.raises(EngineError) as caught:
        await agent.run("go")
    assert caught.value.partial.cost.total == 0, "nothing is known to have been used"


async def test_an_answer_that_was_dropped_or_changed_is_paid_as_it_came(run: Runner) -> None:
    @ResponseInterceptor
    def strict(ctx: RunContext[Any], message: Message) -> Any:
        if message.text == "no":
            return InterceptResult.drop("not that")
        if message.text == "done":
            return InterceptResult.modify(Message(message.role, (Text("over"),)))
        return None

    answers = (by("large", Text("no")), by("small", Text("done")))
    agent, _ = priced(*answers, features=[strict])
    result = await run(agent, "go")
    assert result.output == "over"
    assert result.cost is not None
    assert result.cost.breakdown == {"large": Decimal(18), "small": Decimal(2)}


async def test_messages_from_before_are_not_paid_again(run: Runner) -> None:
    agent, _ = priced(*ANSWERS)
    before = await run(agent, "go")
    after = await run(priced(by("small", Text("more")))[0], "and?", messages=before.messages)
    assert after.cost is not None
    assert after.cost.breakdown == {"small": Decimal(2)}


async def test_a_price_that_is_not_known_is_said_to_be(run: Runner) -> None:
    agent, tracker = priced(adding("small", 1), by("nameless", Text("done")))
    result = await run(agent, "go")
    assert result.cost is not None
    assert result.cost.total is None
    assert result.cost.unknown == ("nameless",)
    assert str(result.cost) == "unknown (at least 2 USD; no price or no usage of nameless)"
    assert tracker.total_cost is None


async def test_an_engine_that_says_no_usage_has_an_unknown_cost(run: Runner) -> None:
    agent, _ = priced(by("small", Text("done"), usage=None))
    result = await run(agent, "go")
    assert result.cost is not None
    assert result.cost.total is None


async def test_the_model_string_finds_a_price_too() -> None:
    tracker = CostTracker({"test": ModelPricing(0, 0)})
    result = await Agent("test:hello", features=[tracker]).run("go")
    assert result.cost is not None
    assert result.cost.total == tracker.total_cost == 0


async def test_the_provider_of_an_engine_is_recorded_where_calls_are_priced() -> None:
    async def answer(request: Request) -> Message:
        return by("gpt-5-2025-08-07", Text("done"), usage=Usage(10**6, 0))

    def agent(provider: str) -> Agent[Any, str]:
        engine = FunctionEngine(answer, info=ModelInfo("gpt-5", provider=provider))
        return Agent(engine, features=[CostTracker()])

    journal = MemoryJournal()
    known = await agent("openai").run("go", journal=journal)
    assert known.state.spec.provider == "openai"
    assert known.cost is not None
    assert known.cost.total is not None
    assert known.cost.total > 0
    unsaid = agent("")
    assert unsaid.spec.provider == "unsaid"
    assert (await unsaid.replay(known.loop_id, journal)).cost == known.cost
    elsewhere = await unsaid.run("go")
    assert elsewhere.cost is not None
    assert elsewhere.cost.total is None


async def test_several_trackers_all_hear_and_the_first_says_what_a_run_cost() -> None:
    euros = CostTracker({"small": ModelPricing(1, 1)}, currency="EUR")
    agent, dollars = priced(by("small", Text("hi")), features=[euros])
    result = await agent.run("go")
    assert str(result.cost) == str(dollars.cost) == "2 USD"
    assert str(euros.cost) == "15 EUR"


async def test_an_architect_s_editor_has_a_cost_of_its_own(run: Runner) -> None:
    editor, editing = priced(by("large", Text("edited")), name="editor")
    agent, planning = priced(by("small", Text("a plan")), name="planner", editor=editor)
    result = await run(agent, "go")
    assert result.cost is not None
    assert result.cost.breakdown == {"small": Decimal(2)}
    assert result.editor is not None
    assert result.editor.cost is not None
    assert result.editor.cost.breakdown == {"large": Decimal(18)}
    if run.calm:
        assert (planning.total_cost, editing.total_cost) == (2, 18)


async def test_an_override_is_priced_and_its_end_too() -> None:
    agent, tracker = priced(by("small", Text("hi")))
    assert (await agent.run("go")).output == "hi"
    with agent.override(features=[]):
        assert (await agent.run("go")).cost is None
    assert tracker.total_cost == 2, "what was made without the tracker is not its own"
    with agent.override(model=Script(by("large", Text("ho")))):
        assert str((await agent.run("go")).cost) == "18 USD"
    assert tracker.total_cost == 20


# The budget


@pytest.mark.parametrize(("most", "calls"), [(1, 1), ("2", 2), (3.5, 2), (20, 3), (22, 3)])
async def test_a_run_ends_with_the_answer_that_costs_too_much(run: Runner, most: Any, calls: int) -> None:
    tracker = CostTracker(PRICING)
    budget = MaxCost(most, tracker)
    agent, _ = priced(*ANSWERS, tracker=tracker, features=[budget])
    if calls == 3:
        assert (await run(agent, "go")).output == "done"
        return
    error = await run.failing(RunConditionError, agent, "go")
    spent = [2, 20][calls - 1]
    assert f"the run has cost {spent} USD, and {budget.most} USD are allowed" in str(error)
    assert error.partial.usage.requests == calls
    assert error.partial.cost.total == spent


async def test_a_budget_is_each_run_s_own() -> None:
    tracker = CostTracker(PRICING)
    agent, _ = priced(*ANSWERS, tracker=tracker, features=[MaxCost(22, tracker)])
    results = await agent.run_batch(["go"] * 10)
    assert [getattr(result, "output", result) for result in results] == ["done"] * 10


async def test_runs_with_one_id_in_two_journals_are_two_runs() -> None:
    tracker = CostTracker(PRICING)
    budget = MaxCost(20, tracker)
    dear, _ = priced(adding("large", 1), by("small", Text("done")), tracker=tracker, features=[budget])
    cheap, _ = priced(adding("small", 1), by("small", Text("done")), tracker=tracker, features=[budget])
    for agent in (dear, cheap, dear, cheap):
        result = await agent.run("go", journal=MemoryJournal(), loop_id="same")
        assert result.output == "done"


async def test_a_turn_prices_its_own_call_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    tracker = CostTracker(PRICING)
    seen: list[int] = []
    cost_of = tracker.cost_of

    def counting(calls: Any) -> Any:
        seen.append(len(calls))
        return cost_of(calls)

    monkeypatch.setattr(tracker, "cost_of", counting)
    answers = [adding("small", n) for n in range(10)]
    agent, _ = priced(*answers, by("small", Text("done")), tracker=tracker, features=[MaxCost(99, tracker)])
    await agent.run("go")
    assert seen == [1] * 11


async def test_a_budget_keeps_no_more_runs_than_it_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("flyball.orchestrate.budget._REMEMBERED", 2)
    tracker = CostTracker(PRICING)
    budget = MaxCost(19, tracker)
    agent, _ = priced(*ANSWERS, tracker=tracker, features=[budget])
    errors = await agent.run_batch(["go"] * 6, concurrency=6)
    assert {str(error).partition(": ")[2] for error in errors} == {
        "the run has cost 20 USD, and 19 USD are allowed"
    }
    assert len(budget._priced) == 2  # pyright: ignore[reportPrivateUsage]


async def test_a_budget_survives_a_resume(journal: Journal) -> None:
    tracker = CostTracker(PRICING)
    agent, _ = priced(*ANSWERS, tracker=tracker, features=[MaxCost(19, tracker)])
    async with agent.iter("go", journal=journal, loop_id="dear") as run:
        await run.next()
    fresh = CostTracker(PRICING)
    again, _ = priced(*ANSWERS, tracker=fresh, features=[MaxCost(19, fresh)])
    with pytest.raises(RunConditionError, match="has cost 20 USD"):
        await again.resume("dear", journal)


async def test_an_unknown_price_stops_a_run_that_has_a_budget(run: Runner) -> None:
    tracker = CostTracker(PRICING)
    answers = (adding("small", 1), adding("nameless", 2), by("small", Text("done")))
    agent, _ = priced(*answers, tracker=tracker, features=[MaxCost(9, tracker)])
    error = await run.failing(RunConditionError, agent, "go")
    assert "unknown (at least 2 USD; no price or no usage of nameless), and 9 USD are allowed" in str(error)
    assert "give the model a price" in str(error)
    assert error.partial.usage.requests == 2


@pytest.mark.parametrize(("most", "ends"), [(4, True), (3, False)])
async def test_an_unknown_price_may_be_allowed_and_what_is_known_counts(
    run: Runner, most: int, ends: bool
) -> None:
    tracker = CostTracker(PRICING)
    answers = (adding("nameless", 1), adding("small", 2), adding("small", 3), by("nameless", Text("done")))
    agent, _ = priced(*answers, tracker=tracker, features=[MaxCost(most, tracker, allow_unknown=True)])
    if ends:
        assert (await run(agent, "go")).output == "done"
    else:
        error = await run.failing(RunConditionError, agent, "go")
        assert "has cost 4 USD, and 3 USD are allowed" in str(error)


@pytest.mark.parametrize("most", [-1, "much", None, True], ids=repr)
def test_a_budget_is_an_amount(most: Any) -> None:
    with pytest.raises(UserError, match="MaxCost's amount"):
        MaxCost(most, CostTracker(PRICING))


def test_a_budget_needs_a_tracker() -> None:
    tracker: Any = PRICING
    with pytest.raises(UserError, match="a CostTracker"):
        MaxCost(1, tracker)


# Tokens bind where a price is unknown


@pytest.mark.parametrize(
    ("limits", "kind"),
    [
        (Limits(usage=UsageLimits(total_tokens_limit=20)), UsageLimitExceeded),
        (Limits(usage=UsageLimits(input_tokens_limit=15)), UsageLimitExceeded),
        (Limits(usage=UsageLimits(output_tokens_limit=9)), UsageLimitExceeded),
        (Limits(usage=UsageLimits(request_limit=1)), UsageLimitExceeded),
        (Limits(quota=UsageQuota(max_total_tokens=20)), QuotaExceeded),
        (Limits(quota=UsageQuota(max_input_tokens=15)), QuotaExceeded),
        (Limits(quota=UsageQuota(max_output_tokens=9)), QuotaExceeded),
        (Limits(quota=UsageQuota(max_requests=1)), QuotaExceeded),
    ],
    ids=str,
)
async def test_limits_and_quotas_hold_without_a_price(
    run: Runner, limits: Limits, kind: type[FlyballError]
) -> None:
    tracker = CostTracker(PRICING)
    answers = [adding("nameless", n) for n in range(9)]
    budget = MaxCost(1, tracker, allow_unknown=True)
    agent, _ = priced(*answers, tracker=tracker, limits=limits, features=[budget])
    error = await run.failing(kind, agent, "go")
    assert error.partial.usage.requests == 2 - ("requests" in str(error) or "request_limit" in str(error))
    assert error.partial.cost.total is None


async def test_a_run_that_breaks_a_limit_and_a_budget_names_the_limit(run: Runner) -> None:
    tracker = CostTracker(PRICING)
    limits = Limits(usage=UsageLimits(total_tokens_limit=14))
    agent, _ = priced(*ANSWERS, tracker=tracker, limits=limits, features=[MaxCost(1, tracker)])
    await run.failing(UsageLimitExceeded, agent, "go")


async def test_a_fork_under_fewer_tool_calls_than_were_made_makes_no_request(journal: Journal) -> None:
    agent, tracker = priced(*ANSWERS)
    source = await agent.run("go", journal=journal)
    before = tracker.cost
    tight = agent.clone(limits=Limits(usage=UsageLimits(tool_calls_limit=1)))
    forked = await Drive.take_over(tight.bindings(), journal, source.loop_id)
    assert forked.state.usage.tool_calls == 2
    with pytest.raises(UsageLimitExceeded, match="tool_calls_limit is 1"):
        await tight.fork(source.loop_id, journal, turn=3, prompt="more")
    assert tracker.cost == before


async def test_the_events_say_what_the_state_has_spent(run: Runner) -> None:
    agent, _ = priced(*ANSWERS)
    result = await run(agent, "go")
    answered = [event for event in await result.events() if isinstance(event, ModelAnswered)]
    assert [(call.at, call.model, call.usage) for call in spent(result.state)] == [
        (event.at, event.message.model, event.message.usage) for event in answered
    ]
