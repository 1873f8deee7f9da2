"""Three agents under each other in a process of their own, to be killed while the lowest is in a tool call.

    python -m tests.runtime.tree_child LOG sqlite FILE          runs the tree, or goes on with it
    python -m tests.runtime.tree_child LOG nats OPTIONS_JSON    works for whoever asks

What is physically done is noted in LOG. A call of `walk` stays there for as long as the log has a file `hold`
beside it, so that whoever kills the process there knows that it is there.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

import msgspec

from flyball import Agent, CostTracker, ModelPricing, RunContext, SQLiteJournal, Usage, tool
from flyball.core.messages import Message, Role, Text, ToolCall
from flyball.inference.answers import tool_call as call
from tests.orchestrate.models import Script

LOOP = "tree"
PRICES = {"test": ModelPricing(1, 2)}


def used(*answers: Any) -> Script:
    """Answers that cost 5 each."""
    parts = [one if isinstance(one, ToolCall) else Text(one) for one in answers]
    return Script(*[Message(Role.ASSISTANT, (part,), usage=Usage(3, 1), model="test") for part in parts])


def make_tree(log: Path) -> Agent[Any, str]:
    """A boss asks a clerk, who asks a walker; each of them does something before and after."""

    def note(ctx: RunContext[Any]) -> None:
        with log.open("a") as file:
            file.write(f"{ctx.tool_name} at {ctx.depth}\n")

    @tool(safety="at_most_once")
    async def pay(ctx: RunContext[Any]) -> str:
        """Pay, once."""
        note(ctx)
        return "paid"

    @tool
    async def walk(ctx: RunContext[Any]) -> str:
        """Walk."""
        note(ctx)
        while log.with_name("hold").exists():  # noqa: ASYNC110 - another process decides
            await asyncio.sleep(0.005)
        return "walked"

    def asks(name: str) -> ToolCall:
        return call(name, {"prompt": "?"})

    walker = Agent(used(call("pay"), call("walk"), call("pay"), "there"), tools=[pay, walk], name="walker")
    clerk = Agent(
        used(call("pay"), asks("walker"), call("pay"), "clerk done"),
        tools=[pay, walker.as_tool()],
        name="clerk",
    )
    return Agent(
        used(call("pay"), asks("clerk"), call("pay"), "all done"),
        tools=[pay, clerk.as_tool()],
        name="boss",
        features=[CostTracker(PRICES)],
    )


async def here(agent: Agent[Any, str], file: str) -> None:
    async with SQLiteJournal(file) as journal:
        await agent.run("go", journal=journal, loop_id=LOOP)


async def for_others(agent: Agent[Any, str], options: str) -> None:
    from flyball.runtime.nats import Crew, NatsJournal, NatsOptions

    opened = await NatsJournal.open(msgspec.json.decode(options, type=NatsOptions))
    async with opened as journal, Crew(journal, [agent], hold=1.0, room=1) as crew:
        await crew.work()


def main() -> None:
    log, kind, where = sys.argv[1:]
    agent = make_tree(Path(log))
    asyncio.run(here(agent, where) if kind == "sqlite" else for_others(agent, where))


if __name__ == "__main__":
    main()
