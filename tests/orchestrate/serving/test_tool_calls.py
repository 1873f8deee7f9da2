"""The tools that were run under a flow: by agents, and as steps of a plan."""

from __future__ import annotations

from typing import Any

from msgspec import to_builtins

from flyball import Agent, MemoryJournal, System, tool
from flyball.core.messages import ToolCall
from flyball.inference.answers import tool_call as call
from flyball.orchestrate.contracts import Mode
from flyball.orchestrate.plan import PlanStep
from tests.orchestrate.models import Script
from tests.orchestrate.serving.test_modes import asking, code, look, plan_of


async def test_tools_that_were_run_as_steps_are_among_those_that_were_made() -> None:
    ran: list[int] = []

    @tool
    async def shaky() -> str:
        """Fail the first time."""
        ran.append(1)
        if len(ran) == 1:
            raise OSError("not now")
        return "steady"

    def asks(step: PlanStep) -> Any:
        return to_builtins(ToolCall("mine", "look", '{"topic":"milk"}'))

    steps = plan_of(
        PlanStep("find", "tool", {"name": "look", "arguments": {"topic": "tea"}}),
        PlanStep("ask", "infer", "Which?"),
        PlanStep("again", "tool", {"name": "shaky"}, retries=1),
        PlanStep("asks", "asks", 1),
        PlanStep("more", "tool"),
        PlanStep("gone", "tool", {"name": "sings"}),
    )
    agent = Agent(Script(call("look", {"topic": "rain"}), "said"), tools=[look, shaky])
    journal = MemoryJournal()
    system = System(agent, planner=steps, handlers={"asks": asks}, journal=journal)
    response = await system.handle(asking(Mode.PLAN), loop_id="p")
    assert code(response) == "TOOL_NOT_FOUND", "a call that was never run is none that was made"
    assert [(made.name, made.arguments, made.result, made.code) for made in response.tool_calls_made] == [
        ("look", {"topic": "tea"}, "about tea", None),
        ("look", {"topic": "rain"}, "about rain", None),
        ("shaky", {}, None, "TOOL_EXECUTION_FAILED"),
        ("shaky", {}, "steady", None),
        ("look", {"topic": "milk"}, "about milk", None),
    ]
    ids = [made.call_id for made in response.tool_calls_made]
    assert (len(set(ids)), ids[-1]) == (5, "mine")
    assert all(made.duration is not None for made in response.tool_calls_made)
    assert (await System(journal=journal).replay("p")).tool_calls_made == response.tool_calls_made
