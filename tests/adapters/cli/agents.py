"""Agents that workers can be started for."""

from __future__ import annotations

from flyball import Agent, tool
from flyball.testing import ScriptedEngine, tool_call


@tool(approval=True)
async def pay(amount: int) -> str:
    """Pay."""
    return f"paid {amount}"


shop = Agent(ScriptedEngine(tool_call("pay", {"amount": 3}), "Paid."), tools=[pay], name="shop")
same = shop
greeter = Agent(ScriptedEngine("Hello."), name="greeter")
some = [greeter]
made = "made by hand"


def make() -> str:
    return "made by a function"


def cannot() -> str:
    raise ValueError("no database")


number = 7
