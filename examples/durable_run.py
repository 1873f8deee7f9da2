"""A run whose process is killed in the middle of a tool call, and which another process finishes.

It prints:

    the first process died with code 9, and left
      Started, ModelAnswered, ToolReturned, ModelAnswered
    the second process says: All is booked.
      flight to Oslo: booked
      room in Oslo: was booked already
    in the hotel's book: 1 room

The room was booked just before the first process died, and nobody recorded it. So the call is made again,
under the same idempotency key, by which the hotel knows it. A tool without such a partner says
`safety="at_most_once"`: its call is not made again, and the model reads that nobody knows what came of it.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from flyball import Agent, Message, RunContext, SQLiteJournal
from flyball.inference.answers import tool_call_answer
from flyball.inference.request import Request
from flyball.testing import FunctionEngine


@dataclass
class World:
    """What the tools work with: a folder in the place of the hotel's book, and whether to die."""

    book: Path
    dies: bool


async def model(request: Request) -> Message | str:
    """Stands in for a model. Like one, it knows nothing but what it is sent."""
    done = {result.name for message in request.messages for result in message.tool_results}
    if "book_flight" not in done:
        return tool_call_answer("book_flight", {"city": "Oslo"})
    if "book_room" not in done:
        return tool_call_answer("book_room", {"city": "Oslo"})
    return "All is booked."


agent = Agent(FunctionEngine(model), deps_type=World, name="traveller")


@agent.tool
async def book_flight(city: str) -> str:
    """Book a flight."""
    return f"flight to {city}: booked"


@agent.tool
async def book_room(ctx: RunContext[World], city: str) -> str:
    """Book a room."""
    entry = ctx.deps.book / ctx.idempotency_key.replace("/", "-")
    before = entry.exists()
    entry.write_text(city)
    if ctx.deps.dies:
        os._exit(9)  # as with kill -9: nothing is tidied up, nothing is flushed
    return f"room in {city}: {'was booked already' if before else 'booked'}"


async def travel(folder: Path, *, dies: bool) -> None:
    """What each process does: the same call begins the run, or goes on with it."""
    async with SQLiteJournal(folder / "runs.db") as journal:
        world = World(folder / "hotel", dies)
        result = await agent.run("A trip to Oslo.", journal=journal, loop_id="trip-17", deps=world)
    print(result.output)
    for message in result.messages:
        for answer in message.tool_results:
            print(" ", answer.text)


async def recorded(folder: Path) -> list[str]:
    async with SQLiteJournal(folder / "runs.db") as journal:
        return [type(event).__name__ for event in await journal.read("trip-17")]


def process(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, __file__, str(folder), *words]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "hotel").mkdir()
        died = process(folder, "and die")
        print(f"the first process died with code {died.returncode}, and left")
        print(" ", ", ".join(asyncio.run(recorded(folder))))
        print("the second process says:", process(folder).stdout.rstrip())
        print("in the hotel's book:", len(list((folder / "hotel").iterdir())), "room")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        asyncio.run(travel(Path(sys.argv[1]), dies=len(sys.argv) > 2))
    else:
        main()
