"""Runs with a reflection, and runs that go on from a snapshot: they join `feature_scenarios.FEATURES`."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel

from flyball import (
    Agent,
    Limits,
    Reflection,
    RunContext,
    RunSnapshot,
    TextContains,
    UsageLimits,
    tool,
)
from flyball.core.messages import ToolResult, assistant, user
from flyball.core.usage import RunUsage
from flyball.inference.answers import tool_call as call
from tests.orchestrate.models import Script
from tests.orchestrate.scenario import Scenario


class Village(BaseModel):
    name: str
    people: int = 0


@tool
async def count(village: str) -> int:
    """How many people live there."""
    return len(village)


@tool
async def close(text: str) -> ToolResult:
    """End the run."""
    return ToolResult("", "", text, stop_loop=True)


def says_when(_: RunContext[Any], output: str) -> str | None:
    return "longer, please" if len(output) < 6 else None


async def never_content(_: RunContext[Any], output: Any) -> str:
    return f"{output!r} is not it"


async def out_of_order(_: RunContext[Any], output: Any) -> str:
    raise RuntimeError(f"cannot judge {output!r}")


def one_more(_: RunContext[Any], village: Village) -> Village:
    return Village(name=village.name, people=village.people + 1)


def briefly(ctx: RunContext[Any]) -> str:
    return f"Be brief about {ctx.prompt}, after {ctx.run_step} turns."


def found(**fields: Any) -> Any:
    return call("final_result", fields)


REFLECTIONS = (
    Scenario(
        "a reflection, until it is good",
        lambda: Agent(Script("no", "later", "far later"), features=[Reflection(says_when)]),
        "far later",
    ),
    Scenario(
        "a reflection that is never content",
        lambda: Agent(
            Script(found(), found(name="Ii"), [call("count", {"village": "Å"}), found(name="Å")]),
            output=Village,
            output_mode="tool",
            tools=[count],
            validators=[one_more],
            features=[Reflection(never_content, 1, "{output}? No!")],
        ),
        Village(name="Å", people=1),
    ),
    Scenario(
        "a reflection beside other calls",
        lambda: Agent(
            Script([found(name="Ii"), call("count", {"village": "Ii"})], found(name="Å")),
            output=Village,
            output_mode="tool",
            tools=[count],
            features=[Reflection(lambda _, village: "further" if village.name == "Ii" else None)],
        ),
        Village(name="Å"),
    ),
    Scenario(
        "a reflection on what a tool ended the run with",
        lambda: Agent(
            Script(call("close", {"text": "over"}), call("close", {"text": "over and out"})),
            tools=[close],
            features=[Reflection(says_when, prompt="Not yet.")],
        ),
        "over and out",
    ),
    Scenario(
        "a condition ends a run that a reflection is not content with",
        lambda: Agent(Script("no", "enough"), features=[Reflection(never_content), TextContains("enough")]),
        "enough",
    ),
    Scenario(
        "a reflection at a limit",
        lambda: Agent(
            Script("a", "b"),
            features=[Reflection(never_content)],
            limits=Limits(usage=UsageLimits(request_limit=2)),
        ),
        code="ORCHESTRATION_USAGE_LIMIT",
    ),
    Scenario(
        "a reflection fails",
        lambda: Agent(Script("a"), features=[Reflection(out_of_order)]),
        code="VALIDATION_RULE_FAILED",
    ),
)

_BEFORE = RunSnapshot(
    messages=(user("hi"), assistant("hello")),
    usage=RunUsage(7, 5, requests=3, tool_calls=2),
    retries=1,
    tool_retries={"count": 1},
    run_id="before",
    parent_run_id="above",
    run_step=3,
    prompt="hi",
)
SNAPSHOTS = (
    Scenario(
        "gone on from a snapshot",
        lambda: Agent(
            Script(call("count", {"village": "Ii"}), "2", first=4), tools=[count], instructions=[briefly]
        ),
        "2",
        options={"snapshot": _BEFORE},
    ),
    Scenario(
        "gone on from a snapshot, with what it had used",
        lambda: Agent(
            Script(call("count", {"village": "Ii"}), "2", first=4),
            tools=[count],
            limits=Limits(usage=UsageLimits(request_limit=4)),
        ),
        code="ORCHESTRATION_USAGE_LIMIT",
        options={"snapshot": _BEFORE},
    ),
)

RUNS = (*REFLECTIONS, *SNAPSHOTS)
