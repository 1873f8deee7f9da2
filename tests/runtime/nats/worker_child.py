"""A worker in a process of its own, to be killed: python worker_child.py OPTIONS_JSON LOG KIND…"""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from typing import Any, cast

import msgspec

from flyball import Agent, Safety, tool
from flyball.inference.answers import tool_call as call
from flyball.runtime.nats import Crew, NatsJournal, NatsOptions
from flyball.runtime.nats.crew import Kind
from tests.orchestrate.models import Script

LOG = Path(sys.argv[2] if __name__ == "__main__" else os.devnull)


def note(what: str) -> None:
    """Write down that something was physically done, where it survives this process."""
    with LOG.open("a") as file:
        file.write(f"{what}\n")


@tool
async def step(n: int) -> str:
    """Take a step."""
    note(f"step {n}")
    await asyncio.sleep(0.05)
    return f"step {n} taken"


@tool(safety=Safety.AT_MOST_ONCE)
async def launch(n: int) -> str:
    """Launch something."""
    note(f"launch {n}")
    await asyncio.sleep(0.05)
    return f"{n} launched"


def make_agent() -> Agent[Any, str]:
    """Five tool calls, and an answer."""
    calls = [call("launch" if n == 2 else "step", f'{{"n":{n}}}', id=f"call_{n}") for n in range(5)]
    return Agent(Script(*calls, "all done"), tools=[step, launch], name="walker")


async def main() -> None:
    options = msgspec.json.decode(sys.argv[1], type=NatsOptions)
    kinds = cast("list[Kind]", sys.argv[3:])
    opened = await NatsJournal.open(options)
    async with opened as journal, Crew(journal, [make_agent()], kinds, hold=1.0) as crew:
        await crew.work()


if __name__ == "__main__":
    asyncio.run(main())
