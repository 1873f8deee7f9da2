"""Runs of agents that are watched: they join `feature_scenarios.FEATURES`.

Who watches decides nothing: a run comes to the same end, and leaves the same journal, whatever its watchers
do. `heard_by` is the other half: what they are told is what the journal says.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import pytest
from pydantic import BaseModel

from flyball import (
    Agent,
    ContentFilter,
    EventBus,
    Hook,
    MaxTurns,
    RunContext,
    RuntimeEvent,
    ToolCallCount,
    Toolset,
    Tracing,
    tool,
)
from flyball.inference.answers import tool_call as call
from tests.orchestrate.models import Script
from tests.orchestrate.scenario import Scenario

T = TypeVar("T")

HOOKS = (
    "on_run_start",
    "on_run_end",
    "on_model_request",
    "on_model_response",
    "on_tool_start",
    "on_tool_end",
    "on_turn_start",
    "on_turn_end",
    "on_guardrail_evaluated",
    "on_output_validation",
    "on_output_repair",
    "on_run_condition_checked",
    "on_context_compaction",
)


class Hill(BaseModel):
    name: str


@tool
async def climb(ctx: RunContext[Any], name: str) -> str:
    """Climb a hill."""
    if ctx.event_bus is not None:
        ctx.event_bus.publish_async(("climbed", name))
    return f"{name} climbed"


async def reads_all(ctx: RunContext[Any], *given: Any) -> None:
    """Looks at whatever there is, and takes its time."""
    await asyncio.sleep(0)
    assert ctx.snapshot().messages is not None
    assert len(ctx.messages) + ctx.usage.requests + len(given) > 0


def breaks(*_: Any) -> None:
    raise RuntimeError("a hook of mine is broken")


def busy_bus() -> EventBus:
    bus = EventBus()
    bus.subscribe(RuntimeEvent, lambda _: None)
    return bus


CLIMBING = [call("climb", {"name": name}) for name in ("Etna", "Fuji")]

WATCHED = (
    Scenario(
        "all hooks, an event bus and a trace",
        lambda: Agent(
            Script(CLIMBING, "both"),
            tools=[climb],
            features=[Hook(**dict.fromkeys(HOOKS, reads_all)), busy_bus(), Tracing(), MaxTurns(3)],
        ),
        "both",
    ),
    Scenario(
        "hooks that break",
        lambda: Agent(
            Script(CLIMBING, "no JSON", call("final_result", {"name": "Fuji"})),
            output=Hill,
            output_mode="tool",
            tools=[climb],
            features=[Hook(**dict.fromkeys(HOOKS, breaks)), ContentFilter("sea")],
        ),
        Hill(name="Fuji"),
    ),
    Scenario(
        "watched until a condition ends it",
        lambda: Agent(
            Script(CLIMBING[0], CLIMBING[1], "never"),
            tools=Toolset("hills", [climb], features=[Hook(on_run_condition_checked=reads_all)]),
            features=[busy_bus(), Tracing(), ToolCallCount(1)],
        ),
        code="ORCHESTRATION_RUN_CONDITION",
    ),
    Scenario(
        "watched, and refused by the second guardrail",
        lambda: Agent(
            Script("never"), features=[ContentFilter("sea"), ContentFilter("go"), busy_bus(), Tracing()]
        ),
        code="VALIDATION_RULE_FAILED",
    ),
)


USUAL = WATCHED
"""Those that go every way in every test run; the others do so in `make properties`."""


def heard_by(agent: Agent[Any, Any]) -> tuple[Agent[Any, Any], list[RuntimeEvent]]:
    """The agent with one more watcher, and all that this one is told."""
    bus, heard = EventBus(), list[RuntimeEvent]()
    bus.subscribe(RuntimeEvent, heard.append)
    return agent.clone(features=[bus, *agent.config.features]), heard


def some(all_of: Iterable[T], usual: Callable[[T], bool]) -> list[Any]:
    """All of them as parameters; those that are not usual are left to `make properties`."""
    return [one if usual(one) else pytest.param(one, marks=pytest.mark.slow) for one in all_of]
