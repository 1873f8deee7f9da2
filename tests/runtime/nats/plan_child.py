"""Processes of a plan over NATS, to be killed: python plan_child.py OPTIONS_JSON LOG worker|executor.

A worker has the agents that the plan and the vote ask; an executor runs the plan. Each notes what it does,
with its process. Models stay where they are for as long as the log has a file `hold-<agent>` beside it; the
step `mark` is the end of its process, as long as there is a file `hold-mark`.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path
from typing import Any

import msgspec

from flyball import Agent, ExecutionPlan, PlanExecutor, PlanStep, RedundantConfig, SpecializedLoop
from flyball.inference.answers import Answer
from flyball.inference.request import Request, Result
from flyball.orchestrate.plan.handlers import agent_handler
from flyball.runtime.nats import Crew, NatsJournal, NatsOptions, NatsRuntime
from flyball.runtime.nats.crew import ALL
from tests.orchestrate.models import Script

LOOP = "plan"
NAMES = ("one", "two", "three")
SCHEMA = {"type": "object", "properties": {"a": {"enum": ["x", "y"]}}, "required": ["a"]}
PLAN = ExecutionPlan(
    (
        PlanStep("first", "one", "Go."),
        PlanStep("second", "two"),
        PlanStep("third", "three"),
        PlanStep("last", "mark"),
    )
)


class Noting(Script):
    """A model that notes who was asked, in which process, and stays there while it is to."""

    def __init__(self, log: Path, name: str, answer: str) -> None:
        super().__init__(answer)
        self._log = log
        self._agent = name

    async def infer(self, request: Request) -> Result:
        note(self._log, f"{self._agent} {request.run_id}")
        while _is_held(self._log, self._agent):  # noqa: ASYNC110 - another process decides
            await asyncio.sleep(0.005)
        return await super().infer(request)


def note(log: Path, what: str) -> None:
    """Write down what is done, and where, so that it survives this process."""
    with log.open("a") as file:
        file.write(f"{what} {os.getpid()}\n")


def _is_held(log: Path, place: str) -> bool:
    return log.with_name(f"hold-{place}").exists()


def plan_agents(log: Path) -> list[Agent[Any, str]]:
    """Those that the steps of the plan ask."""
    return [Agent(Noting(log, name, f"said by {name}"), name=name) for name in NAMES]


class Answering(Noting):
    """Answers by a schema where it is asked for one, and in words where not."""

    def result(self, request: Request, answer: Answer) -> Result:
        said = answer if request.output is not None else f"heard {request.messages[-1].text}"
        return super().result(request, said)


def door_agent(log: Path) -> Agent[Any, str]:
    """The agent behind a system's door."""
    return Agent(Answering(log, "door", '{"a":"x"}'), name="door")


def vote_config(log: Path) -> RedundantConfig:
    """A vote of three, side by side."""
    return RedundantConfig(
        engine=Noting(log, "votes", '{"a":"x"}'), schema=SCHEMA, name="votes", concurrency=3
    )


def make_executor(log: Path) -> PlanExecutor:
    """Runs the plan: three agents, and a step of its own process."""

    def mark(step: PlanStep) -> str:
        note(log, "mark")
        if _is_held(log, "mark"):
            os.kill(os.getpid(), signal.SIGKILL)
        return step.input_as(str).upper()

    asking = {agent.config.name: agent_handler(agent) for agent in plan_agents(log)}
    return PlanExecutor({**asking, "mark": mark})


async def work(options: NatsOptions, log: Path) -> None:
    agents = [*plan_agents(log), door_agent(log), SpecializedLoop(vote_config(log)).phases.answering]
    opened = await NatsJournal.open(options)
    async with opened as journal, Crew(journal, agents, ALL, hold=1.0) as crew:
        await crew.work()


async def execute(options: NatsOptions, log: Path) -> None:
    async with await NatsRuntime.open(options) as runtime:
        await make_executor(log).execute(PLAN, runtime=runtime, loop_id=LOOP)


if __name__ == "__main__":
    doing = work if sys.argv[3] == "worker" else execute
    asyncio.run(doing(msgspec.json.decode(sys.argv[1], type=NatsOptions), Path(sys.argv[2])))
