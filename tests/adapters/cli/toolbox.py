"""Tools and types that the tests name on the command line."""

from __future__ import annotations

import atexit
import os
import time

from pydantic import BaseModel

from flyball import CallDeferred, Toolset, tool


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
    """Takes a while, in a thread that nobody can stop; `WAKE` in the environment wakes it."""
    print("asleep", flush=True)
    if "WAKE" not in os.environ:
        atexit.register(print, "good night")
        time.sleep(600)
    return city


@tool
async def deaf(city: str) -> str:
    """Takes a while, and lets nobody else do anything meanwhile."""
    print("asleep", flush=True)
    time.sleep(600)  # noqa: ASYNC251 - that is what it is for
    return city


@tool
async def leaves(city: str) -> str:
    """Ends the program."""
    raise SystemExit("bye")


@tool
def leaves_thread(city: str) -> str:
    """Ends the program, as it thinks."""
    raise SystemExit("bye")


forecasts = Toolset("forecasts", [weather])
several = [weather]
number = 3


@tool
async def survey(city: str) -> str:
    """Have a city surveyed; somebody says later what it is like."""
    raise CallDeferred(f"{city} is being surveyed")
