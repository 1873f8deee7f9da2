"""Agents to look at: one books trips, one waits for what it is let say, one repeats, one is hostile."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

from flyball import Agent, tool
from flyball.core.messages import Message, Role, Text
from flyball.core.usage import Usage
from flyball.inference.answers import tool_call_answer
from flyball.inference.cut import events_of
from flyball.inference.request import Request
from flyball.inference.scripted import FunctionEngine
from flyball.inference.stream import StreamEvent

ANSWER = "It is **21 °C** and clear, so pack light."
HOSTILE = (
    "<script>window.owned = 1</script><img src=x onerror='window.owned=1'>"
    "[a link](javascript:window.owned=1) \x1b[31mred\x1b]0;title\x07 \x00 "
    "\u202egnp.exe\u202c \u2066x\u2069 \u200b <style>body{display:none}</style> {{owned}} ${owned}"
)


def told(request: Request) -> list[str]:
    return [result.text for message in request.messages for result in message.tool_results]


@tool
async def weather(city: str) -> dict[str, Any]:
    """The weather in a city."""
    return {"city": city, "celsius": 21}


@tool(approval=True)
async def book(city: str) -> str:
    """Book a trip."""
    return f"booked {city}"


async def _travel(request: Request) -> Message:
    results = told(request)
    usage = Usage(input_tokens=100 + 50 * len(results), output_tokens=20)
    if not results:
        call = tool_call_answer("weather", {"city": "Rome"}).parts
        return Message(Role.ASSISTANT, (Text("Let me look."), *call), usage=usage, model="demo")
    if len(results) == 1:
        call = tool_call_answer("book", {"city": "Rome"}).parts
        return Message(Role.ASSISTANT, call, usage=usage, model="demo")
    return Message(Role.ASSISTANT, (Text(f"{ANSWER} ({results[-1]})"),), usage=usage, model="demo")


async def _travel_told(request: Request) -> AsyncGenerator[StreamEvent | str]:
    for event in events_of(await _travel(request)):
        yield event


class Said:
    """What an agent is let say, word by word."""

    def __init__(self) -> None:
        self._words: asyncio.Queue[str | None] = asyncio.Queue()

    def say(self, *words: str | None) -> None:
        """Let it say words; None is the end of its answer."""
        for word in words:
            self._words.put_nowait(word)

    async def words(self, request: Request) -> AsyncGenerator[StreamEvent | str]:
        while (word := await self._words.get()) is not None:
            yield word

    async def whole(self, request: Request) -> str:
        return "".join([word async for word in self.words(request) if isinstance(word, str)])

    def agent(self) -> Agent[Any, Any]:
        return Agent(FunctionEngine(self.whole, self.words, info="slow"), name="slow")


async def _echo(request: Request) -> str:
    return f"You said: {request.messages[-1].text}, after {len(request.messages) - 1} messages"


@tool
async def echo(text: str) -> str:
    """Gives back what it is given."""
    return text


async def _hostile(request: Request) -> Message | str:
    return HOSTILE if told(request) else tool_call_answer("echo", {"text": HOSTILE})


def agents() -> list[Agent[Any, Any]]:
    return [
        Agent(
            FunctionEngine(_travel, _travel_told, info="demo"),
            name="travel",
            tools=[weather, book],
            instructions="You plan trips.",
            description="Plans and books trips.",
        ),
        Agent(FunctionEngine(_echo, info="parrot"), name="parrot"),
        Agent(FunctionEngine(_hostile, info="hostile"), name="hostile", tools=[echo], instructions=HOSTILE),
    ]
