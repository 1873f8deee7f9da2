"""Agents as tools: an editor asks a researcher, who asks an archivist; the run stops in the lowest of them.

It prints:

    the archivist looks up 'flyball governor'
    stopped: 3 loops are recorded, none of them over
    the archivist looks up 'flyball governor'
    A governor keeps an engine at a steady speed.
    6 model calls, 2.40 for all of the tree
    editor: 6, researcher: 4, archivist: 2

What had been done before the stop is not done again: only the call that was under way. The model calls are
paid once, and what is used below counts above. See `docs/several_agents.md`.
"""

from __future__ import annotations

import asyncio

from flyball import (
    Agent,
    CostTracker,
    MemoryJournal,
    Message,
    ModelPricing,
    Role,
    Text,
    ToolCall,
    Usage,
    tool,
)
from flyball.inference.request import Request
from flyball.orchestrate.recorded import load
from flyball.testing import FunctionEngine, tool_call

stopped, power = asyncio.Event(), asyncio.Event()
power.set()


@tool
async def look_up(word: str) -> str:
    """Look a word up in the archive."""
    print(f"the archivist looks up {word!r}")
    if not power.is_set():
        stopped.set()
        await power.wait()
    return "flyball governor: two balls that swing out as an engine speeds up, and close its valve"


def model(*answers: ToolCall | str) -> FunctionEngine:
    """Gives one answer a turn, whoever asks; each took 100 tokens in and 50 out."""

    async def answer(request: Request) -> Message:
        turn = len([message for message in request.messages if message.role is Role.ASSISTANT])
        said = answers[turn]
        part = said if isinstance(said, ToolCall) else Text(said)
        return Message(Role.ASSISTANT, (part,), usage=Usage(100, 50), model="house")

    return FunctionEngine(answer, info="house")


archivist = Agent(
    model(tool_call("look_up", {"word": "flyball governor"}), "Two balls, and a valve."),
    tools=[look_up],
    name="archivist",
)
researcher = Agent(
    model(tool_call("archivist", {"prompt": "What is a flyball governor?"}), "It closes the valve."),
    tools=[archivist.as_tool(description="Knows the archive.")],
    name="researcher",
)
agent = Agent(
    model(
        tool_call("researcher", {"prompt": "How does a governor work?"}),
        "A governor keeps an engine at a steady speed.",
    ),
    tools=[researcher.as_tool(description="Finds things out.")],
    name="editor",
    features=[CostTracker({"house": ModelPricing("0.002", "0.004")})],
)


async def main() -> None:
    """Run until the lowest is in its tool, stop as a process does that is killed, and go on."""
    journal = MemoryJournal()
    power.clear()
    running = asyncio.create_task(agent.run("Explain it.", journal=journal, loop_id="article"))
    await stopped.wait()
    running.cancel()
    await asyncio.wait([running])
    states = [(await load(journal, loop_id))[1] for loop_id in await journal.loops()]
    over = [state for state in states if state.at == "done"]
    print(f"stopped: {len(states)} loops are recorded, {len(over) or 'none'} of them over")

    power.set()
    result = await agent.resume("article", journal)
    print(result.output)
    assert result.cost is not None
    print(f"{result.usage.requests} model calls, {result.cost.total:.2f} for all of the tree")
    states = [(await load(journal, loop_id))[1] for loop_id in await journal.loops()]
    by_depth = sorted(states, key=lambda state: state.depth)
    print(", ".join([f"{state.spec.agent}: {state.usage.requests}" for state in by_depth]))


if __name__ == "__main__":
    asyncio.run(main())
