"""A process that runs, or resumes, an agent that is watched: python watched_child.py FOLDER DIES

What is told is noted in FOLDER/told, where it survives. The process kills itself when it is told of an event
of the type DIES for the first time, before it has noted that.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path
from typing import Any

from flyball import Agent, EventBus, RuntimeEvent, SQLiteJournal, tool
from flyball.inference.answers import tool_call as call
from tests.orchestrate.models import Script

LOOP = "order-17"


@tool
async def step(n: int) -> str:
    """Take a step."""
    return f"step {n}"


def make_watched(log: Path, dies: str) -> Agent[Any, str]:
    """Two turns with two tool calls each, and an answer."""
    bus = EventBus()

    def note(event: RuntimeEvent) -> None:
        if event.type == dies:
            os.kill(os.getpid(), signal.SIGKILL)
        with log.open("a") as file:
            file.write(f"{event.type}\n")

    bus.subscribe(RuntimeEvent, note)
    turns = [[call("step", {"n": n}, id=f"call_{turn}{n}") for n in range(2)] for turn in range(2)]
    return Agent(Script(*turns, "done"), tools=[step], features=[bus])


async def main(folder: Path, dies: str) -> None:
    async with SQLiteJournal(folder / "runs.db") as journal:
        await make_watched(folder / "told", dies).run("go", journal=journal, loop_id=LOOP)


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), sys.argv[2]))
