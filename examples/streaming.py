"""Streaming to the terminal: text as it comes, and what the model asks for in between.

It prints:

    Let me look.
    [weather {"city":"Oslo"}]
    Snow until noon, then clear skies.
    [2 model calls, 1 tool call]
"""

from __future__ import annotations

import asyncio

from flyball import Agent, tool
from flyball.core.messages import ToolCall, assistant
from flyball.inference.stream import Finish, PartStart, StreamEvent, TextDelta, ToolCallDelta
from flyball.testing import ScriptedEngine, tool_call


@tool
async def weather(city: str) -> str:
    """The weather in a city."""
    return f"{city}: snow until noon, then clear"


model = ScriptedEngine(
    assistant("Let me look.", tool_call("weather", {"city": "Oslo"}, id="call-1")),
    "Snow until noon, then clear skies.",
    chunk=5,
)
agent = Agent(model, tools=[weather])


def show(event: StreamEvent) -> None:
    """Pieces of text go out as they are; a call's arguments come in pieces, too."""
    match event:
        case TextDelta():
            print(event.text, end="", flush=True)
        case PartStart(part=ToolCall(name=name)):
            print(f"\n[{name} ", end="", flush=True)
        case ToolCallDelta():
            print(event.args_json, end="", flush=True)
        case Finish(finish_reason=reason):
            print("]" if reason == "tool_call" else "", flush=True)
        case _:
            pass


async def main() -> None:
    async with agent.run_stream("Oslo?") as stream:
        async for event in stream.events():
            show(event)
    usage = stream.result.usage
    print(f"[{usage.requests} model calls, {usage.tool_calls} tool call]")


if __name__ == "__main__":
    asyncio.run(main())
