"""Testing an agent: the agent of the application, a scripted model, and no patching.

It prints:

    test_a_ticket_is_filed: passed
    test_a_wrong_priority_is_put_right: passed
    test_a_model_that_does_not_stop_is_stopped: passed

These are plain pytest functions (pytest-asyncio's auto mode runs them); here they are called by hand.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Literal

from flyball import Agent, Limits, RunContext
from flyball.core.errors import LoopDetected
from flyball.testing import ScriptedEngine, forbid_model_requests, tool_call

# The application


@dataclass
class Tracker:
    """Where tickets go."""

    tickets: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])


agent = Agent(
    "openai:gpt-5",
    deps_type=Tracker,
    instructions="File a ticket for what the user reports.",
    name="helpdesk",
)


@agent.tool
async def file_ticket(ctx: RunContext[Tracker], title: str, priority: Literal["low", "high"]) -> str:
    """File a ticket."""
    ctx.deps.tickets.append((title, priority))
    return f"ticket {len(ctx.deps.tickets)}"


# Its tests


async def test_a_ticket_is_filed() -> None:
    tracker = Tracker()
    model = ScriptedEngine(tool_call("file_ticket", {"title": "No tea", "priority": "high"}), "Ticket 1.")
    with agent.override(model=model):
        result = await agent.run("There is no tea!", deps=tracker)
    assert result.output == "Ticket 1."
    assert tracker.tickets == [("No tea", "high")]
    first, second = model.calls
    assert first.messages[0].text == "File a ticket for what the user reports."
    assert [definition.name for definition in first.tools] == ["file_ticket"]
    assert second.messages[-1].tool_results[0].text == "ticket 1"


async def test_a_wrong_priority_is_put_right() -> None:
    tracker = Tracker()
    model = ScriptedEngine(
        tool_call("file_ticket", {"title": "No tea", "priority": "urgent"}),
        tool_call("file_ticket", {"title": "No tea", "priority": "high"}),
        "Ticket 1.",
    )
    with agent.override(model=model):
        await agent.run("There is no tea!", deps=tracker)
    assert "Input should be 'low' or 'high'" in model.calls[1].messages[-1].tool_results[0].text
    assert len(tracker.tickets) == 1


async def test_a_model_that_does_not_stop_is_stopped() -> None:
    tracker = Tracker()
    again = tool_call("file_ticket", {"title": "No tea", "priority": "low"})
    stopped = False
    with agent.override(model=ScriptedEngine(*[again] * 10), limits=Limits(repeated_calls=2)):
        try:
            await agent.run("There is no tea!", deps=tracker)
        except LoopDetected:
            stopped = True
    assert stopped
    assert len(tracker.tickets) == 2, "the third time it was not run"


async def main() -> None:
    tests = (
        test_a_ticket_is_filed,
        test_a_wrong_priority_is_put_right,
        test_a_model_that_does_not_stop_is_stopped,
    )
    with forbid_model_requests():
        for test in tests:
            await test()
            print(f"{test.__name__}: passed")


if __name__ == "__main__":
    asyncio.run(main())
