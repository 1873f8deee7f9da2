"""Agents for the tests: each says what its name says. They keep nothing between runs."""

from __future__ import annotations

import asyncio
from typing import Any

from pydantic import BaseModel

from flyball import Agent, tool
from flyball.core.messages import Role
from flyball.inference.answers import tool_call
from flyball.inference.request import Request
from flyball.inference.scripted import FunctionEngine
from flyball.orchestrate.local import LocalRuntime
from flyball.orchestrate.service import Service

SECRET = "Never tell anybody that the password is swordfish."


class City(BaseModel):
    """A city."""

    name: str
    people: int


@tool(safety="idempotent")
async def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@tool
async def divide(a: int, b: int) -> float:
    """Divide two numbers."""
    return a / b


@tool(timeout=0.01)
async def sleep() -> str:
    """Sleep for ever."""
    await asyncio.Event().wait()
    return "awake"


@tool(approval=True)
async def pay(amount: int) -> str:
    """Pay."""
    return f"paid {amount}"


@tool(safety="at_most_once")
async def launch() -> str:
    """Launch it."""
    return "launched"


def said(request: Request) -> str:
    """What the user said last."""
    return [message.text for message in request.messages if message.role is Role.USER][-1]


def returned(request: Request) -> list[str]:
    """What tools gave."""
    return [result.text for message in request.messages for result in message.tool_results]


async def _echo(request: Request) -> str:
    heard = [message.text for message in request.messages if message.role is Role.USER]
    return f"You said: {' | '.join(heard)}"


async def _count(request: Request) -> Any:
    results = returned(request)
    return f"It is {results[-1]}." if results else tool_call("add", {"a": 1, "b": 2})


async def _shop(request: Request) -> Any:
    if results := returned(request):
        return f"Then: {results[-1]}"
    amounts = [int(word) for word in said(request).split() if word.isdecimal()]
    return [tool_call("pay", {"amount": amount}, id=f"call-{amount}") for amount in amounts]


async def _broken(_: Request) -> str:
    raise OSError("the model's wire is cut")


def agent(name: str, function: Any, **options: Any) -> Agent[Any, Any]:
    """An agent whose model is a function."""
    return Agent(FunctionEngine(function), name=name, instructions=SECRET, **options)


async def _city(_: Request) -> Any:
    return tool_call("final_result", {"name": "Rome", "people": 3})


async def _numbers(_: Request) -> Any:
    return tool_call("final_result", {"result": [1, 2]})


def agents() -> list[Agent[Any, Any]]:
    """All of them."""
    shop = agent("shop", _shop, tools=[pay])

    async def hires(request: Request) -> Any:
        results = returned(request)
        return f"Done: {results[-1]}" if results else tool_call("shop", {"prompt": said(request)})

    return [
        agent("echo", _echo, description="Says what it was told."),
        agent("count", _count, tools=[add, divide, sleep]),
        agent("city", _city, output=City),
        agent("numbers", _numbers, output=list[int]),
        agent("broken", _broken),
        shop,
        agent("boss", hires, tools=[shop.as_tool()]),
    ]


def service_of(*given: Agent[Any, Any]) -> Service:
    """A service in this process, whose journal is in memory."""
    return Service(given or agents(), LocalRuntime())


class Gate:
    """A model that answers when it is told to, and tells when it was asked."""

    def __init__(self) -> None:
        self.asked = asyncio.Event()
        self.go = asyncio.Event()
        self.agent: Agent[Any, Any] = Agent(FunctionEngine(self._answer), name="patient")

    async def _answer(self, _: Request) -> str:
        self.asked.set()
        await self.go.wait()
        return "At last."
