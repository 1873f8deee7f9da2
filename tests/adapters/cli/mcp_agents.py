"""Agents for `flyball mcp serve`: they print, call tools, wait, and say when they do."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from flyball import Agent, tool
from flyball.core.context import RunContext
from flyball.inference.answers import tool_call
from flyball.inference.request import Request
from flyball.inference.scripted import FunctionEngine

print("printed while it is imported")


@tool
def noise(ctx: RunContext[Any]) -> str:
    """Print in all the ways that there are."""
    print("printed by a tool")
    os.write(1, b"written by a tool\n")
    subprocess.run([sys.executable, "-c", "print('printed by a child')"], check=True)
    return f"{ctx.deps}, stdin gives {sys.stdin.read()!r}"


@tool(approval=True)
async def pay() -> str:
    """Pay."""
    return "paid"


def _calling(name: str) -> FunctionEngine:
    async def answer(request: Request) -> Any:
        results = [result.text for message in request.messages for result in message.tool_results]
        return f"Then: {results[-1]}" if results else tool_call(name, {})

    return FunctionEngine(answer)


async def _waits(_: Request) -> str:
    Path(os.environ["ASKED"]).touch()  # noqa: ASYNC240 - it takes no time
    await asyncio.Event().wait()
    return ""


noisy = Agent(_calling("noise"), name="noisy", tools=[noise])
shop = Agent(_calling("pay"), name="shop", tools=[pay])
waits = Agent(FunctionEngine(_waits), name="waits")
