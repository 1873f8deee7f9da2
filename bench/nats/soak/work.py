"""Five tool calls and an answer. A tool writes down that it runs before it works: a line that survives it."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any

from flyball import Agent, RunContext, Safety, tool
from flyball.core.messages import Message, Role
from flyball.inference.answers import text_answer, tool_call_answer
from flyball.inference.request import Request
from flyball.inference.scripted import FunctionEngine

CALLS = ("step", "step", "launch", "step", "launch")
"""The tools that a loop calls, turn by turn."""
ANSWER = "all done"
PROMPT = "walk"
_WORK = 0.01
"""Seconds that a tool takes: some are killed in the middle."""


class Notes:
    """Where it is written down. Lines of many processes do not mix: each is one short write at the end."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

    def write(self, name: str, loop_id: str, call_id: str) -> None:
        os.write(self._file, f"{name} {loop_id} {call_id}\n".encode())


async def _run(ctx: RunContext[Notes], name: str) -> str:
    ctx.deps.write(name, ctx.run_id, ctx.tool_call_id)
    await asyncio.sleep(_WORK)
    return f"{ctx.tool_call_id} of {ctx.run_id}"


@tool
async def step(ctx: RunContext[Notes]) -> str:
    """Take a step, which may happen twice."""
    return await _run(ctx, "step")


@tool(safety=Safety.AT_MOST_ONCE)
async def launch(ctx: RunContext[Notes]) -> str:
    """Launch something, which must not happen twice."""
    return await _run(ctx, "launch")


async def _answer(request: Request) -> Message:
    turn = sum(message.role is Role.ASSISTANT for message in request.messages)
    if turn == len(CALLS):
        return text_answer(ANSWER)
    return tool_call_answer(CALLS[turn], {}, f"call_{turn}")


def make_agent() -> Agent[Notes, str]:
    """The agent."""
    engine: Any = FunctionEngine(_answer)
    return Agent(engine, tools=[step, launch], name="walker", deps_type=Notes)
