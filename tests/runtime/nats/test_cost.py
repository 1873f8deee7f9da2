"""What loops cost that workers carry on: the caller has it from the journal, the workers have the totals."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from decimal import Decimal

import msgspec
import pytest

from flyball import CostTracker, MaxCost
from flyball.core.errors import RunConditionError
from flyball.core.messages import Text
from flyball.runtime.nats import NatsJournal, NatsOptions, NatsRuntime
from flyball.runtime.nats.crew import Crew
from flyball.runtime.nats.subjects import DEAD
from flyball.runtime.nats.wire import AGENT, CLAIMS
from flyball.runtime.nats.workers.agents import Agents
from tests.orchestrate.test_cost import ANSWERS, COST, PRICING, by, priced
from tests.patience import PATIENCE
from tests.runtime.nats.conftest import clear


@pytest.fixture
async def runtime(nats: NatsOptions) -> AsyncGenerator[NatsRuntime]:
    async with await NatsJournal.open(nats) as before:
        await clear(before)
    async with await NatsRuntime.open(msgspec.structs.replace(nats, patience=PATIENCE)) as runtime:
        yield runtime
        for stream in (AGENT, DEAD, f"KV_{CLAIMS}"):
            await runtime.connection.js.delete_stream(stream)
        await clear(runtime.journal)


async def test_the_caller_has_the_cost_and_the_workers_have_the_totals(runtime: NatsRuntime) -> None:
    theirs, made = priced(*ANSWERS, name="priced")
    ours, asked = priced(name="priced")  # of the same policy, with another tracker, as in another process
    opened = await NatsJournal.open(runtime.connection.options)
    async with opened as journal, Crew(journal, [theirs], ("loop", "model", "tools")):
        result = await ours.run("go", runtime=runtime)
        async with ours.run_stream("go", runtime=runtime) as stream:
            assert await stream.get_output() == "done"
        again = await runtime.result(ours, result.loop_id)
    for one in (result, stream.result, again):
        assert one.cost is not None
        assert one.cost.breakdown == COST
    assert made.cost_breakdown() == {name: 2 * cost for name, cost in COST.items()}
    assert asked.cost_breakdown() == {}


async def test_a_budget_holds_where_the_loop_is_kept(runtime: NatsRuntime) -> None:
    tracker = CostTracker(PRICING)
    agent, _ = priced(*ANSWERS, tracker=tracker, name="thrifty", features=[MaxCost(19, tracker)])
    opened = await NatsJournal.open(runtime.connection.options)
    async with opened as journal, Crew(journal, [agent], ("loop", "model", "tools")):
        with pytest.raises(
            RunConditionError, match="the run has cost 20 USD, and 19 USD are allowed"
        ) as caught:
            await agent.run("go", runtime=runtime)
    assert caught.value.partial.cost.total == Decimal(20)


async def test_another_model_that_a_task_asks_for_is_heard_of_too() -> None:
    agent, tracker = priced(by("small", Text("hi")), name="priced")
    agents = Agents([agent])
    engine = agents.engine("priced", "", "test:hello")
    assert engine is not agent.bindings().engine
    from flyball import Request, user

    await engine.infer(Request((user("go"),)))
    assert list(tracker.cost_breakdown()) == ["test"]
    assert tracker.total_cost is None, "it has no price"
    assert agents.engine("", "", "test:hello").model_info().name == "test"
