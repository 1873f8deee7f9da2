"""A journal with loops of every kind, and what a catalogue of it promises: for any journal."""

from __future__ import annotations

from contextlib import suppress

from msgspec.structs import replace

from flyball import Agent, AgentStep, Pipeline, TransformStep, tool
from flyball.core.correlation import Correlation
from flyball.core.errors import EngineError, FlyballError, LoopNotFound
from flyball.core.events import VERSION, Event, FlowStarted, ModelAnswered, Started
from flyball.core.flow import FlowNode
from flyball.core.messages import assistant, user
from flyball.core.spec import LoopSpec
from flyball.inference.answers import tool_call
from flyball.inference.scripted import ScriptedEngine
from flyball.orchestrate.catalogue import Catalogue, LoopQuery
from flyball.orchestrate.journal import Journal
from flyball.orchestrate.projections.summary import LoopSummary, summary_of
from flyball.tool.errors import CallDeferred

QUERIES = (
    LoopQuery(),
    LoopQuery(text="ROME"),
    LoopQuery(text="rome umbrella"),
    LoopQuery(text="nothing has this"),
    LoopQuery(text="ENGINE_"),
    LoopQuery(stage=("complete",)),
    LoopQuery(stage=("failed", "deferred", "")),
    LoopQuery(agent="shout"),
    LoopQuery(model="big", roots_only=True),
    LoopQuery(session_id="s1"),
    LoopQuery(since=100.0, until=200.0),
    LoopQuery(roots_only=True),
    LoopQuery(roots_only=True, text="rome", stage=("complete", "executing")),
)


@tool
async def ask() -> str:
    raise CallDeferred("later")


def begun(loop_id: str, at: float = 100.0, prompt: str = "hi") -> Started:
    """The beginning of a loop that nobody drives."""
    return Started(at, VERSION, loop_id, LoopSpec(agent="waiter", model="m"), user(prompt))


async def fill(journal: Journal) -> None:
    """Loops that ended well and badly, wait, were just begun, stand under others, or cannot be read."""
    below = Agent(ScriptedEngine("wet", name="small"), name="weather")
    above = Agent(
        ScriptedEngine(tool_call("weather", {"prompt": "Rome?"}), "Take an umbrella.", name="big"),
        tools=[below.as_tool(name="weather")],
    )
    ids = Correlation(session_id="s1")
    await above.run("Rome?", journal=journal, loop_id="rome", correlation=ids)
    flow = Pipeline(AgentStep(Agent(ScriptedEngine("yes"))), TransformStep(str.upper), name="shout")
    await flow.run("go", journal=journal, loop_id="flow")
    with suppress(FlyballError):
        await Agent(ScriptedEngine(EngineError("gone"))).run("Oslo?", journal=journal, loop_id="failed")
    with suppress(FlyballError):
        agent = Agent(ScriptedEngine(tool_call("ask", {}, "c1")), tools=[ask])
        await agent.run("What?", journal=journal, loop_id="deferred")
    await journal.append("begun", [begun("begun", prompt="Rome, again?")], 0)
    node = FlowNode("pipeline", "begun flow", (FlowNode("agent", "a"),))
    await journal.append("begun flow", [FlowStarted(150.0, VERSION, "begun flow", node, "Rome")], 0)
    unread: list[Event] = [ModelAnswered(1.0, 1, assistant("hi"))]
    await journal.append("unreadable", unread, 0)
    for n in range(7):
        await Agent(ScriptedEngine(f"{n}")).run(f"count {n}", journal=journal, loop_id=f"count {n}")


async def all_found(catalogue: Catalogue, query: LoopQuery) -> list[LoopSummary]:
    """What all pages together have."""
    found: list[LoopSummary] = []
    while True:
        page = await catalogue.find(query)
        assert len(page.loops) <= query.limit
        found += page.loops
        if not page.next:
            return found
        query = replace(query, cursor=page.next)


async def summaries(journal: Journal) -> list[LoopSummary]:
    """The summaries of all loops, each made by itself."""
    found: list[LoopSummary] = []
    for loop_id in await journal.loops():
        with suppress(LoopNotFound):
            found.append(await summary_of(journal, loop_id))
    return found
