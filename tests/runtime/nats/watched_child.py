"""A process with all kinds of workers, whose agent is watched: python watched_child.py OPTIONS_JSON LOG

What is told is written into the log, where it survives the process. As long as there is a file `die-<type>`
beside the log, the process kills itself when it is told of an event of that type, before it has noted it.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path
from typing import Any

import msgspec

from flyball import Agent, EventBus, RuntimeEvent, tool
from flyball.inference.answers import tool_call as call
from flyball.runtime.nats import Crew, NatsJournal, NatsOptions
from flyball.runtime.nats.crew import ALL
from tests.orchestrate.models import Script


@tool
async def step(n: int) -> str:
    """Take a step."""
    return f"step {n}"


def make_watched(log: Path) -> Agent[Any, str]:
    """Two turns with a tool call each, and an answer."""
    bus = EventBus()

    def note(event: RuntimeEvent) -> None:
        dies = log.with_name(f"die-{event.type}").exists()
        with log.open("a") as file:
            file.write(f"dying {event.type}\n" if dies else f"{event.type} {event.occurred_at}\n")
        if dies:
            os.kill(os.getpid(), signal.SIGKILL)

    bus.subscribe(RuntimeEvent, note)
    script = Script(*[call("step", {"n": n}, id=f"call_{n}") for n in range(2)], "done")
    return Agent(script, tools=[step], name="watched", features=[bus])


async def main() -> None:
    options = msgspec.json.decode(sys.argv[1], type=NatsOptions)
    opened = await NatsJournal.open(options)
    async with opened as journal, Crew(journal, [make_watched(Path(sys.argv[2]))], ALL, hold=1.0) as crew:
        await crew.work()


if __name__ == "__main__":
    asyncio.run(main())
