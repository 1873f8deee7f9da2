"""Agents as tools: what the model is told of one, what its child has, and what its calls cost."""

from __future__ import annotations

import asyncio
from decimal import Decimal
from typing import Any

import pytest
from pydantic import BaseModel, Field
from typing_extensions import TypedDict

from flyball import (
    Agent,
    AgentTool,
    CostTracker,
    DefaultToolTimeout,
    Limits,
    MemoryJournal,
    ModelPricing,
    RunContext,
    ToolOutputTruncation,
    ToolResultValidator,
    UsageLimits,
    tool,
)
from flyball.core.errors import CancelledTimeout, SchemaMalformed, UsageLimitExceeded, UserError
from flyball.core.events import ChildEnded, Started
from flyball.core.ids import new_id
from flyball.inference.answers import tool_call as call
from flyball.orchestrate.agent_tool import asked_by
from flyball.orchestrate.journal import Journal
from flyball.orchestrate.machine import fold
from flyball.orchestrate.spending import spent
from flyball.orchestrate.state import State
from flyball.testing.clock import FakeClock
from tests.orchestrate.conftest import Runner
from tests.orchestrate.models import Place, Script
from tests.orchestrate.tree_scenarios import CLERK, COUNTER, Report, tree, used
from tests.orchestrate.where import Where


class Trip(BaseModel):
    """A trip."""

    city: str = Field(description="Where to.")
    days: int = 1


class Somewhere(TypedDict):
    city: str


async def loop(journal: Journal, loop_id: str) -> State:
    return fold(await journal.read(loop_id))


def asking(made: AgentTool, *calls: Any) -> Agent[Any, str]:
    return Agent(Script(*calls, "done"), tools=[made], name="boss")


# What it is


def test_it_is_called_as_the_agent_is_and_takes_a_prompt() -> None:
    spec = CLERK.as_tool().spec
    assert (spec.definition.name, spec.definition.description) == ("clerk", "Ask the agent 'clerk'.")
    assert spec.definition.parameters["required"] == ["prompt"]
    assert spec.definition.parameters["properties"]["prompt"]["type"] == "string"
    assert spec.begins_loop
    named = AgentTool(CLERK, "records", "Knows all records.", approval=True, sequential=True, retries=3).spec
    assert (named.definition.name, named.definition.description) == ("records", "Knows all records.")
    assert (named.approval, named.definition.sequential, named.retries) == (True, True, 3)
    assert repr(CLERK.as_tool("records")) == "<AgentTool records of 'clerk'>"


@pytest.mark.parametrize("kind", [Trip, Somewhere])
async def test_its_parameters_may_be_a_type_of_the_users(run: Runner, kind: type[Any]) -> None:
    async def prompt(given: Any) -> str:
        return f"To {given.city if isinstance(given, Trip) else given['city']}"

    guide = Agent(Script("a museum"), name="guide")
    made = guide.as_tool(parameters=kind, prompt=prompt)
    assert "city" in made.spec.definition.parameters["properties"]
    agent = asking(made, call("guide", {"city": "Oslo"}), call("guide", {"town": "Oslo"}))
    result = await run(agent, "go")
    first, second = (message.tool_results[0] for message in result.messages if message.tool_results)
    assert (first.content, second.status) == ("a museum", "retry")
    (child,) = (await loop(result.journal, result.loop_id)).children
    (started, *_) = await result.journal.read(child)
    assert isinstance(started, Started)
    assert started.prompt is not None
    assert started.prompt.text == "To Oslo"


async def test_a_typed_output_is_json(run: Runner) -> None:
    model = Script(call("final_result", {"town": "Rome", "people": 4}))
    reporter = Agent(model, output=Report, output_mode="tool", name="reporter")
    result = await run(asking(reporter.as_tool(), call("reporter", {"prompt": "Rome?"})), "go")
    assert result.messages[2].tool_results[0].content == {"town": "Rome", "people": 4}


@pytest.mark.parametrize(
    ("options", "error", "why"),
    [
        ({"parameters": Trip}, UserError, "go together"),
        ({"prompt": str}, UserError, "go together"),
        ({"parameters": int, "prompt": str}, SchemaMalformed, "type of an object"),
        ({"parameters": object(), "prompt": str}, SchemaMalformed, "no JSON Schema"),
        ({"timeout": 0}, UserError, "greater than 0"),
        ({"retries": -1}, UserError, "retries"),
        ({"name": "two words"}, UserError, "cannot be a tool's name"),
        ({"safety": "idempotent"}, UserError, "no option 'safety'"),
    ],
)
def test_what_cannot_be_is_refused(options: dict[str, Any], error: type[Exception], why: str) -> None:
    made: Any = CLERK.as_tool
    with pytest.raises(error, match=why):
        made(**options)


async def test_it_can_be_unavailable() -> None:
    agent = Agent(Script("none"), tools=[CLERK.as_tool(available=lambda: False)])
    assert (await agent.run("go")).output == "none"
    model: Any = agent.config.model
    assert model.last.tools == ()


async def test_what_is_around_tools_is_around_it_but_a_time_out(run: Runner) -> None:
    """A child has a time-out of its own, which holds after a restart too."""

    @ToolResultValidator
    def checked(ctx: RunContext[Any], text: str) -> None:
        assert (ctx.tool_name, text) == ("teller", "x" * 4000)

    teller = Agent(Script("x" * 4000), name="teller")
    features = [checked, ToolOutputTruncation(10), DefaultToolTimeout(9.0)]
    agent = Agent(
        Script(call("teller", {"prompt": "?"}), "done"), tools=[teller.as_tool()], features=features
    )
    assert agent.spec.tools["teller"].timeout is None
    result = await run(agent, "go")
    assert "truncated" in result.messages[2].tool_results[0].text
    assert asked_by(agent.bindings().tools["teller"]) is teller


# What a child has


async def test_in_one_process_a_child_has_its_parents_deps() -> None:
    @tool
    async def whose(ctx: RunContext[str]) -> str:
        return ctx.deps

    low = Agent(Script(call("whose"), "low"), tools=[whose], name="low", deps_type=str)
    middle = Agent(Script(call("low", {"prompt": "?"}), "middle"), tools=[low.as_tool()], name="middle")
    journal = MemoryJournal()
    await asking(middle.as_tool(), call("middle", {"prompt": "?"})).run("go", deps="ann's", journal=journal)
    (lowest,) = [one for one in await journal.loops() if (await loop(journal, one)).depth == 2]
    assert (await loop(journal, lowest)).history[2].tool_results[0].content == "ann's"


async def test_a_child_has_no_more_time_than_its_parent(where: Where) -> None:
    """However long its own time-out is; a shorter one is its own."""
    clock, seen = FakeClock(), dict[str, float | None]()

    @tool
    async def when(ctx: RunContext[Any]) -> str:
        seen[ctx.prompt] = ctx.deadline
        return "now"

    low = Agent(Script(call("when"), "low"), tools=[when], name="low")
    quick, slow = low.as_tool("quick", timeout=5), low.as_tool("slow", timeout=500)
    both = [call("quick", {"prompt": "quick"}), call("slow", {"prompt": "slow"})]
    agent = Agent(Script(both, "done"), tools=[quick, slow], name="boss")
    began = clock.now()
    result = await where.run(agent, "go", new_id(), timeout=60, clock=clock)
    assert seen == {"quick": began + 5, "slow": began + 60}
    for child in result.state.children:
        (started, *_) = await where.journal.read(child)
        assert isinstance(started, Started)
        assert started.deadline == began + 60


async def test_a_childs_own_time_out_is_told_to_the_model(where: Where) -> None:
    clock, place = FakeClock(), Place()

    class Slow(Script):
        async def infer(self, request: Any) -> Any:
            await place.hang()
            return await super().infer(request)

    made = Agent(Slow("never"), name="slow").as_tool(timeout=5)
    running = asyncio.create_task(
        where.run(asking(made, call("slow", {"prompt": "?"})), "go", new_id(), clock=clock, timeout=60)
    )
    await place.entered.wait()
    await clock.advance(5)
    result = await running
    assert CancelledTimeout.__name__ in result.messages[2].tool_results[0].text
    assert "time-out of 5 s" in result.messages[2].tool_results[0].text


# What is used counts above


async def test_what_is_used_below_counts_above_once(where: Where) -> None:
    tracker = CostTracker({"test": ModelPricing(1, 2)})
    result = await where.run(tree(features=[tracker]), "go", new_id())
    assert (result.usage.requests, result.usage.input_tokens, result.usage.output_tokens) == (6, 18, 6)
    assert result.usage.tool_calls == 1, "the calls that it made itself"
    assert result.cost is not None
    assert result.cost.total == Decimal(30)
    ended = [event for event in await result.events() if isinstance(event, ChildEnded)]
    assert [(event.call_id, event.requests, len(event.spent)) for event in ended] == [("call_1", 4, 4)]
    again = await tree(features=[tracker]).replay(result.loop_id, result.journal)
    assert (again.usage, again.cost) == (result.usage, result.cost)


async def test_a_failed_call_below_counts_as_a_request(run: Runner) -> None:
    failing = Agent(Script(OSError("away")), name="failing")
    result = await run(asking(failing.as_tool(), call("failing", {"prompt": "?"})), "go")
    assert (result.usage.requests, len(spent(result.state))) == (3, 2)


async def test_children_of_other_functions_count_too(where: Where) -> None:
    async def told(ctx: RunContext[Any]) -> str:
        return (await COUNTER.run("Rome?", parent=ctx)).output

    result = await where.run(Agent(used("five"), instructions=told, name="boss"), "go", new_id())
    assert result.usage.requests == 3


async def test_a_limit_holds_over_all_of_the_tree(run: Runner) -> None:
    """The child may use what it is allowed itself: what it used is seen before the next call above it."""
    with pytest.raises(UsageLimitExceeded) as raised:
        await run(tree(limits=Limits(usage=UsageLimits(request_limit=5))), "go")
    assert raised.value.details["used"] == 6
    assert raised.value.partial is not None
    assert raised.value.partial.usage.requests == 5


async def test_a_run_that_is_resumed_counts_nothing_twice(journal: Journal) -> None:
    """Cut off after each event of each of its loops."""
    whole_id = new_id()
    whole = await tree().run("go", journal=journal, loop_id=whole_id)
    family = [one for one in await journal.loops() if one.startswith(whole_id)]
    for child in [*whole.state.children, whole_id]:
        events = await journal.read(child)
        for length in range(1, len(events)):
            other = MemoryJournal()
            for one in family:
                if one == child:
                    await other.append(one, events[:length], 0)
                elif one.startswith(child) and length > 2:
                    # Those under it, which were there by then; none is over before that is recorded above it.
                    below = await journal.read(one)
                    over = any(isinstance(event, ChildEnded) for event in events[:length])
                    direct = (await loop(journal, one)).parent_loop_id == child
                    await other.append(one, below[:-1] if direct and not over else below, 0)
                elif child.startswith(one):  # those above it, which waited for it
                    await other.append(one, (await journal.read(one))[:3], 0)
            result = await tree().resume(whole_id, other)
            assert (result.output, result.usage) == ("done", whole.usage), (child, length)
            assert len(await other.loops()) == 3
