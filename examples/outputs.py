"""Outputs: one of several, shown as it grows, checked, and put right where the model got it wrong.

It prints:

    Rain(place='Oslo', millimetres=4, hours=[])
    Rain(place='Oslo', millimetres=4, hours=[8, 9])
    Rain(place='Oslo', millimetres=4, hours=[8, 9, 10])
    Sun(place='Rome', degrees=31)
    put right by: function degrees
    I cannot see that far.
    Sun(place='Cairo', degrees=40)
    put right by: model, after 2 model calls

The model is scripted, so that the example runs anywhere. A real one is named: `Agent("openai:gpt-5", ...)`.
"""

from __future__ import annotations

import asyncio
import re
from typing import Any

from pydantic import BaseModel

from flyball import Agent, ModelRepair, ModelRetry, OutputRepair, RunContext
from flyball.core.events import TurnSettled
from flyball.orchestrate.result import RunResult
from flyball.testing import ScriptedEngine, tool_call


class Sun(BaseModel):
    """It is sunny."""

    place: str
    degrees: int


class Rain(BaseModel):
    """It rains."""

    place: str
    millimetres: int
    hours: list[int] = []


@OutputRepair
def degrees(ctx: RunContext, raw: str, error: Exception) -> str:
    """Models like to write the unit, too. Code that we wrote ourselves is cheaper than a model call."""
    return re.sub(r'"(\d+) ?°C?"', r"\1", raw)


model = ScriptedEngine(
    tool_call("final_result_Rain", {"place": "Oslo", "millimetres": 4, "hours": [8, 9, 10]}),
    tool_call("final_result_Sun", {"place": "Rome", "degrees": "31 °C"}),
    "I cannot see that far.",
    tool_call("final_result_Sun", {"place": "Cairo", "degrees": "forty"}),
    chunk=5,
)
small_model = ScriptedEngine('{"place": "Cairo", "degrees": 40}', name="small")
agent = Agent(
    model,
    output=[Sun, Rain, str],  # a tool for each type, and plain text will do as well
    features=[degrees, ModelRepair(small_model)],
)


@agent.output_validator
def plausible(ctx: RunContext, forecast: Sun | Rain | str) -> Sun | Rain | str:
    """Looks at the whole output, whichever it is."""
    if isinstance(forecast, Sun) and forecast.degrees > 60:
        raise ModelRetry(f"{forecast.degrees} degrees? Look again.")
    return forecast


async def repairs(result: RunResult[Any]) -> str:
    settled = [event for event in await result.events() if isinstance(event, TurnSettled)]
    return ", ".join(settled[-1].repairs)


async def main() -> None:
    async with agent.run_stream("Oslo?") as stream:
        async for forecast in stream.stream_output(debounce_by=None):
            print(repr(forecast))
    result = await agent.run("Rome?")
    print(repr(result.output))
    print(f"put right by: {await repairs(result)}")
    result = await agent.run("The moon?")
    print(result.output)
    result = await agent.run("Cairo?")
    print(repr(result.output))
    print(f"put right by: {await repairs(result)}, after {result.usage.requests} model calls")


if __name__ == "__main__":
    asyncio.run(main())
