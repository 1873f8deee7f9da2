"""The demo: a typed agent on a model of this machine. No key, no service, no question asked.

It calls a tool, gives a validated object, streams an answer, and shows what happened, step by step; then the
other modes: an answer by a schema, a vote on it, a plan that looks something up in this project's pages.
`FLYBALL_MODEL` names another model than the embedded one.
"""

from __future__ import annotations

import asyncio
import sys

from modes import show_modes
from pydantic import BaseModel, Field
from rich.console import Console
from rich.pretty import Pretty

from flyball import Agent, FlyballError, ModelSettings, tool
from flyball.adapters.cli.driven import default_model
from flyball.adapters.cli.fetching import fetched
from flyball.adapters.cli.timeline import print_timeline

STEADY = ModelSettings(temperature=0.0, max_tokens=200)
QUESTION = "Do I need an umbrella in Paris today?"
STORY = "In one short sentence: what does a governor do for a steam engine?"


class Forecast(BaseModel):
    """What to expect of the weather."""

    city: str
    temperature: int = Field(description="in degrees Celsius")
    umbrella: bool = Field(description="whether one needs an umbrella")


@tool
async def weather(city: str) -> str:
    """Get the current weather in a city."""
    return f"In {city} it is 12 degrees Celsius, and it is raining."


async def main(console: Console) -> None:
    """Fetch the model if need be, and do the main job."""
    model = await fetched(default_model())

    console.rule("[bold]a typed agent with a tool", align="left")
    console.print(f"[bold]>[/] {QUESTION}")
    forecast = Agent(model, output=Forecast, tools=[weather], name="forecast", settings=STEADY)
    result = await forecast.run(QUESTION)
    console.print(Pretty(result.output))
    console.print()
    print_timeline(await result.events(), console)

    console.print()
    console.rule("[bold]a streamed answer", align="left")
    console.print(f"[bold]>[/] {STORY}")
    async with Agent(model, name="teller", settings=STEADY).run_stream(STORY) as stream:
        async for text in stream.text():
            console.print(text, end="", markup=False, highlight=False)
    console.print("\n")
    print_timeline(await stream.result.events(), console)

    console.print()
    console.rule("[bold]a schema, a vote, a plan", align="left")
    await show_modes(model, console)


if __name__ == "__main__":
    try:
        asyncio.run(main(Console()))
    except FlyballError as error:
        sys.exit(f"{error.code}: {error.message}")
    except KeyboardInterrupt:
        sys.exit(130)
