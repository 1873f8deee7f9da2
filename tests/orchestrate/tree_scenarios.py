"""Runs of agents that have agents as tools, for the table of scenarios. What is made here keeps nothing."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel
from typing_extensions import TypedDict

from flyball import Agent, CostTracker, Limits, MaxCost, ModelPricing, Usage, UsageLimits, UsageQuota, tool
from flyball.core.messages import Message, Role, Text, ToolCall
from flyball.inference.answers import tool_call as call
from tests.orchestrate.models import Script
from tests.orchestrate.scenario import Scenario


class Report(BaseModel):
    town: str
    people: int


class Wanted(TypedDict):
    town: str
    year: int


@tool
async def census(town: str) -> int:
    """How many people live there."""
    return len(town)


def asked(wanted: Wanted) -> str:
    return f"How many lived in {wanted['town']} in {wanted['year']}?"


def used(*answers: Any) -> Script:
    """Answers that each took 3 tokens in and 1 out."""
    parts = [one if isinstance(one, ToolCall) else Text(one) for one in answers]
    return Script(*[Message(Role.ASSISTANT, (part,), usage=Usage(3, 1), model="test") for part in parts])


COUNTER = Agent(used(call("census", {"town": "Rome"}), "four"), tools=[census], name="counter")
CLERK = Agent(
    used(call("counter", {"prompt": "Count Rome."}), "It is four."), tools=[COUNTER.as_tool()], name="clerk"
)
REPORTER = Agent(
    used(call("final_result", {"town": "Rome", "people": 4})),
    output=Report,
    output_mode="tool",
    name="reporter",
)
FAILING = Agent(Script(OSError("away")), name="failing")
ASK = call("clerk", {"prompt": "Rome?"})
"""Six model calls in all: two of each of three."""


def boss(*answers: Any, **options: Any) -> Agent[Any, Any]:
    return Agent(used(*answers), tools=[CLERK.as_tool()], name="boss", **options)


def tree(**options: Any) -> Agent[Any, Any]:
    return boss(ASK, "done", **options)


def dear(most: int) -> Agent[Any, Any]:
    """Each model call costs 5."""
    tracker = CostTracker({"test": ModelPricing(1, 2)})
    return tree(features=[tracker, MaxCost(most, tracker)])


TREES = (
    Scenario("an agent asks an agent that asks one", tree, "done"),
    Scenario(
        "several agents at once",
        lambda: Agent(
            Script(
                [
                    call("clerk", {"prompt": "Rome?"}),
                    call("clerk", {"prompt": "Oslo?"}),
                    call("census", {"town": "Bonn"}),
                    call("reporter", {"town": "Rome", "year": 100}),
                ],
                [call("failing", {"prompt": "well?"}), call("clerk", {"prompt": ""}), call("reporter", {})],
                "done",
            ),
            tools=[
                CLERK.as_tool(),
                census,
                REPORTER.as_tool(parameters=Wanted, prompt=asked),
                FAILING.as_tool(description="Fails."),
            ],
            name="boss",
            limits=Limits(max_concurrency=2),
        ),
        "done",
    ),
    Scenario(
        "a quota over all of the tree",
        lambda: tree(limits=Limits(quota=UsageQuota(max_requests=5))),
        code="ORCHESTRATION_QUOTA_EXCEEDED",
    ),
    Scenario(
        "a tree within its quota",
        lambda: tree(limits=Limits(quota=UsageQuota(max_requests=6, max_total_tokens=24))),
        "done",
    ),
    Scenario(
        "too many tokens in a tree",
        lambda: tree(limits=Limits(usage=UsageLimits(total_tokens_limit=23))),
        code="ORCHESTRATION_USAGE_LIMIT",
    ),
    Scenario("a tree that costs too much", lambda: dear(29), "done"),
    Scenario("a tree that is too deep", lambda: tree(limits=Limits(max_depth=1)), "done"),
)
