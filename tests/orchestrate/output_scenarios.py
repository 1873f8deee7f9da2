"""Runs with outputs of every sort, as a table: unions, functions that make them of text, repairs."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel

from flyball import Agent, ModelRepair, OutputRepair, RunContext, TextOutput, ToolOutput, tool
from flyball.core.errors import EngineError
from flyball.inference.answers import tool_call as call
from tests.orchestrate.models import Script
from tests.orchestrate.scenario import Scenario


class Lake(BaseModel):
    name: str
    depth: int = 0


class River(BaseModel):
    km: float


@tool
async def sum_of(x: int, y: int) -> int:
    """Add two numbers."""
    return x + y


def named(text: str) -> Lake:
    return Lake(name=text, depth=len(text))


def deeper(_: RunContext[Any], lake: Lake) -> Lake:
    lake.depth += 1
    return lake


@OutputRepair
async def as_name(_: RunContext[Any], raw: str, error: Exception) -> dict[str, str]:
    return {"name": raw}


OUTPUTS = (
    Scenario(
        "one of several outputs, each by its tool",
        lambda: Agent(Script(call("final_result_River", {"km": 1.5})), output=[Lake, River]),
        River(km=1.5),
    ),
    Scenario(
        "outputs with names of their own, and another try",
        lambda: Agent(
            Script("A lake.", call("lake", {"depth": 3}), call("lake", {"name": "Como"})),
            output=[ToolOutput(Lake, name="lake"), River],
            retries=2,
        ),
        Lake(name="Como"),
    ),
    Scenario("text beside an output", lambda: Agent(Script("No lake."), output=[Lake, str]), "No lake."),
    Scenario(
        "a function that makes the output of text",
        lambda: Agent(Script("Como"), output=TextOutput(named)),
        Lake(name="Como", depth=4),
    ),
    Scenario(
        "an answer that a function puts right",
        lambda: Agent(Script("Como!"), output=Lake, output_mode="native", features=[as_name]),
        Lake(name="Como!"),
    ),
    Scenario(
        "an answer that a model puts right",
        lambda: Agent(
            Script(
                call("sum_of", {"x": 1, "y": 1}),
                [call("final_result", {"name": 5}), call("sum_of", {"x": 2, "y": 2})],
            ),
            output=Lake,
            output_mode="tool",
            tools=[sum_of],
            features=[ModelRepair(Script('{"name": "five"}', first=2, name="mender"))],
            validators=[deeper],
        ),
        Lake(name="five", depth=1),
    ),
    Scenario(
        "an answer that a model cannot put right, and is asked for again",
        lambda: Agent(
            Script("Como?", "Como!", '{"name": "Como"}'),
            output=Lake,
            output_mode="native",
            retries=2,
            features=[ModelRepair(Script("I cannot.", EngineError("down"), name="mender"))],
        ),
        Lake(name="Como"),
    ),
)
