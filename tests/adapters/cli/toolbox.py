"""Tools and types that the tests name on the command line."""

from __future__ import annotations

import time

from pydantic import BaseModel

from flyball import Toolset, tool


class City(BaseModel):
    """A city."""

    name: str
    people: int


@tool
async def weather(city: str) -> str:
    """The weather in a city."""
    return f"rain in {city}"


@tool(approval=True)
async def burn(city: str) -> str:
    """Burn a city."""
    return f"{city} burns"


@tool
def sleepy(city: str) -> str:
    """Takes a while, in a thread that nobody can stop."""
    print("asleep", flush=True)
    time.sleep(60)
    return city


forecasts = Toolset("forecasts", [weather])
several = [weather]
number = 3
