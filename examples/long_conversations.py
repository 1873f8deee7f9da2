"""Long conversations: what a model is sent of them, while what was said stays whole.

It prints:

    turn 1 sent 2 messages
    turn 2 sent 4 messages
    turn 3 sent 6 messages
    turn 4 sent 6 messages
    turn 5 sent 8 messages
    auto_context: 8 messages became 6, 475 tokens became 221
    said in all: 11 messages
    asked again with less: 13 messages became 3

A model sums up what the agent has read when there is too much of it, once; the instructions stay. And when
a model says that it was sent too much, less is sent. See `docs/memory.md`.
"""

from __future__ import annotations

import asyncio

from flyball import (
    Agent,
    AutoContext,
    ContextOverflow,
    Request,
    Result,
    assistant,
    estimate_tokens,
    tool,
    user,
)
from flyball.core.errors import ContextExceeded
from flyball.core.events import ModelAnswered, TurnPrepared
from flyball.testing import FunctionEngine, ScriptedEngine, tool_call


@tool
async def read(chapter: int) -> str:
    """Read a chapter."""
    return f"Chapter {chapter}. " + "It was a dark and stormy night. " * 18


async def sum_up(request: Request) -> str:
    """What the summing model says; a real one would read the conversation in the request."""
    return "Two chapters, and in both of them it was dark and stormy."


agent = Agent(
    ScriptedEngine(*[tool_call("read", {"chapter": number}) for number in range(1, 5)], "It rains a lot."),
    tools=[read],
    instructions="Read the book and say what it is about.",
    features=[AutoContext(400, keep_last_n=2, summary_model=FunctionEngine(sum_up))],
)


async def read_a_book() -> None:
    """Each chapter is long; the agent never sends more than a few of them."""
    result = await agent.run("Four chapters, please.")
    engine = agent.config.model
    assert isinstance(engine, ScriptedEngine)
    for turn, request in enumerate(engine.calls, start=1):
        print(f"turn {turn} sent {len(request.messages)} messages")
    for event in await result.events():
        for told in event.compactions if isinstance(event, TurnPrepared) else ():
            print(
                f"{told.by}: {told.messages_before} messages became {told.messages_after}, "
                f"{told.tokens_before} tokens became {told.tokens_after}"
            )
    print(f"said in all: {len(result.messages)} messages")


class Narrow(ScriptedEngine):
    """A model with a small window."""

    async def infer(self, request: Request) -> Result:
        """Refuse what is too long."""
        tokens = estimate_tokens(request.messages)
        if tokens > 100:
            raise ContextExceeded("too much", prompt_tokens=tokens, context_window=100)
        return await super().infer(request)


async def ask_too_much() -> None:
    """The history is longer than the model can take, and nobody has counted."""
    talk = [
        message
        for number in range(6)
        for message in (user(f"Tell me story {number}."), assistant("Once upon a time. " * 10))
    ]
    result = await Agent(Narrow("The end."), features=[ContextOverflow()]).run("And then?", messages=talk)
    for event in await result.events():
        if isinstance(event, ModelAnswered) and event.around is not None:
            told = event.around.compactions[-1]
            print(f"asked again with less: {told.messages_before} messages became {told.messages_after}")


async def main() -> None:
    await read_a_book()
    await ask_too_much()


if __name__ == "__main__":
    asyncio.run(main())
