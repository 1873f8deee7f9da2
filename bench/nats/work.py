"""What is measured: five turns with a tool call each, then the answer. Model and tool cost nothing."""

from __future__ import annotations

from typing import Any

from flyball import Agent, tool
from flyball.core.events import Event, ToolReturned
from flyball.core.messages import Message, ResultKind, Role
from flyball.inference.answers import text_answer, tool_call_answer
from flyball.inference.request import Request
from flyball.inference.scripted import FunctionEngine

CALLS = 5
ANSWER = "The answer is 42."
PROMPT = "Add the numbers."
NAME = "adder"


@tool
async def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


async def _answer(request: Request) -> Message:
    turn = sum(message.role is Role.ASSISTANT for message in request.messages)
    if turn == CALLS:
        return text_answer(ANSWER)
    return tool_call_answer("add", {"a": turn, "b": 1}, f"call_{turn}")


def make_agent() -> Agent[Any, str]:
    """The agent, which answers any number of loops at once."""
    return Agent(FunctionEngine(_answer), tools=[add], name=NAME, instructions="You are a calculator.")


def check(loop_id: str, events: list[Event]) -> None:
    """Look at what became of a loop.

    Raises:
        RuntimeError: not what had to.
    """
    from flyball.orchestrate.machine import fold

    state = fold(events, loop_id)
    results = [event.result for event in events if isinstance(event, ToolReturned)]
    said = [(result.call_id, result.status, result.content) for result in results]
    expected = [(f"call_{n}", ResultKind.RETURN, n + 1) for n in range(CALLS)]
    if state.at != "done" or state.answer != ANSWER or said != expected:
        raise RuntimeError(f"loop {loop_id} came to {state.at}, {state.answer!r} and {said}")
