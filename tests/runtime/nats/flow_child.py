"""A process that runs a flow over NATS, to be killed: python flow_child.py OPTIONS_JSON LOG PLACE.

Its functions note that they were called. The one that is called PLACE ends the process with `kill -9`.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from flyball import Agent
from flyball.orchestrate.flow.filters import keep_last_n
from flyball.orchestrate.flow.steps import AgentStep, ParallelSteps, Pipeline, Step, TransformStep
from flyball.runtime.nats import NatsOptions, NatsRuntime
from tests.orchestrate.models import Script

LOOP = "report"


def make_agents() -> tuple[Agent[None, str], Agent[None, str]]:
    """The agents of the flow, which its workers have, too."""
    return Agent(Script("a draft"), name="writer"), Agent(Script("shorter"), name="editor")


def make_flow(log: Path, place: str = "") -> Step[str, list[str]]:
    def noting(name: str, give: Callable[[Any], Any]) -> TransformStep[Any, Any]:
        def note(value: Any) -> Any:
            with log.open("a") as file:
                file.write(f"{name}\n")
            if name == place:
                os.kill(os.getpid(), signal.SIGKILL)
            return give(value)

        return TransformStep(note, name=name)

    writer, editor = make_agents()
    return Pipeline(
        noting("ask", lambda text: f"{text}?"),
        AgentStep(writer),
        noting("read", lambda text: f"{text}!"),
        ParallelSteps(
            AgentStep(editor, "Shorten it.", history=keep_last_n(2)),
            noting("shout", lambda text: text.upper()),
        ),
        noting("close", lambda both: both),
    )


async def main(options: NatsOptions, log: Path, place: str) -> None:
    async with await NatsRuntime.open(options) as runtime:
        await make_flow(log, place).run("Why", runtime=runtime, loop_id=LOOP)


if __name__ == "__main__":
    asyncio.run(main(msgspec.json.decode(sys.argv[1], type=NatsOptions), Path(sys.argv[2]), sys.argv[3]))
