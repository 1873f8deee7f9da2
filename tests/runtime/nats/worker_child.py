"""A worker in a process of its own, to be killed: python worker_child.py OPTIONS_JSON LOG KIND…

It stays in a place of its work for as long as the log has a file `hold-<place>` beside it, so that whoever
kills it there knows that it is there: `loop` (a prompt function), `model`, `step` and `launch` (tools). A
call of `boom` is the end of its process, as long as there is a file `hold-boom`.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path
from typing import Any, cast

import msgspec

from flyball import Agent, RunContext, Safety, tool
from flyball.inference.answers import tool_call as call
from flyball.inference.request import Request, Result
from flyball.runtime.nats import Crew, NatsJournal, NatsOptions
from flyball.runtime.nats.crew import Kind
from tests.orchestrate.models import Script

LOG = Path(sys.argv[2] if __name__ == "__main__" else os.devnull)


def note(what: str) -> None:
    """Write down that something was physically done, where it survives this process."""
    with LOG.open("a") as file:
        file.write(f"{what}\n")


def is_held(place: str) -> bool:
    return LOG.with_name(f"hold-{place}").exists()


async def stay(place: str) -> None:
    """Say where it is, and stay there while it is to."""
    note(f"in {place}")
    while is_held(place):  # noqa: ASYNC110 - another process decides
        await asyncio.sleep(0.005)


@tool
async def step(n: int) -> str:
    """Take a step."""
    note(f"step {n}")
    await stay("step")
    await asyncio.sleep(0.05)
    return f"step {n} taken"


@tool(safety=Safety.AT_MOST_ONCE)
async def launch(n: int) -> str:
    """Launch something."""
    note(f"launch {n}")
    await stay("launch")
    await asyncio.sleep(0.05)
    return f"{n} launched"


@tool
async def boom() -> str:
    """End the process."""
    note("boom")
    if is_held("boom"):
        os.kill(os.getpid(), signal.SIGKILL)
    return "a pop"


class StayingModel(Script):
    async def infer(self, request: Request) -> Result:
        await stay("model")
        return await super().infer(request)


async def instructions(_: RunContext[Any]) -> str:
    await stay("loop")
    return "Walk."


def make_agent() -> Agent[Any, str]:
    """Five tool calls, and an answer."""
    calls = [call("launch" if n == 2 else "step", f'{{"n":{n}}}', id=f"call_{n}") for n in range(5)]
    model = StayingModel(*calls, "all done")
    return Agent(model, tools=[step, launch], instructions=[instructions], name="walker")


def make_bomber() -> Agent[Any, str]:
    """One call, which nobody survives for now."""
    return Agent(Script(call("boom", "{}", id="call_boom"), "survived"), tools=[boom], name="bomber")


async def main() -> None:
    options = msgspec.json.decode(sys.argv[1], type=NatsOptions)
    kinds = cast("list[Kind]", sys.argv[3:])
    opened = await NatsJournal.open(options)
    async with opened as journal, Crew(journal, [make_agent(), make_bomber()], kinds, hold=1.0) as crew:
        await crew.work()


if __name__ == "__main__":
    asyncio.run(main())
