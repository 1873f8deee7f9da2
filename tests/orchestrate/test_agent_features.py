"""What an agent says of itself: all that it makes use of, and nothing else."""

from __future__ import annotations

from typing import Any, cast

import msgspec
import pytest

from flyball import (
    Agent,
    AgentFeatures,
    AmbientContext,
    AutoContext,
    ConsoleExporter,
    ContentFilter,
    CostTracker,
    DefaultToolTimeout,
    Deps,
    EventBus,
    Hook,
    Knowledge,
    Limits,
    MaxTurns,
    MessageInterceptor,
    ModelRepair,
    OutputRepair,
    Reflection,
    RequestMiddleware,
    ResponseInterceptor,
    SlidingWindow,
    StaticKnowledgeBase,
    StreamMiddleware,
    TextContains,
    ToolCallFilterResult,
    ToolOutputTruncation,
    ToolResultValidator,
    Toolset,
    ToolsPrepare,
    Tracing,
    UsageQuota,
    Watcher,
    stateful,
    tool,
)
from flyball.identity import ActsAs
from flyball.orchestrate.agent_features import COUNTS
from flyball.orchestrate.features import Stages
from tests.orchestrate.identity_scenarios import CLERK

GRAMMAR = 'root ::= "yes" | "no"'


def nothing(*_: Any) -> None:
    return None


@tool(approval=True)
async def pay() -> str:
    """Pay."""
    return "paid"


@tool(available=lambda: True)
async def look() -> str:
    """Look."""
    return "looked"


@tool
async def see() -> str:
    """See."""
    return "seen"


class Remembers:
    """Nothing."""

    def export_state(self) -> None: ...

    def restore_state(self, state: None) -> None: ...

    async def __call__(self) -> None: ...


def passes(*given: Any) -> ToolCallFilterResult:
    return ToolCallFilterResult(tuple(given[1]))


ONE_EACH: dict[str, dict[str, Any]] = {
    "dynamic_instructions": {"instructions": ["Be brief.", lambda _: "Now."]},  # pyright: ignore[reportUnknownLambdaType]
    "toolsets": {"tools": Toolset("eyes", [see], instructions="Look.").prefixed("my")},
    "tools_with_availability": {"tools": Toolset("eyes", [look])},
    "tools_with_prepare": {"tools": [tool(name="see", prepare=nothing)(see.__wrapped__)]},
    "tools_with_validators": {"tools": [tool(name="see", validators=[nothing])(see.__wrapped__)]},
    "stateful_tools": {"tools": stateful(Remembers)},
    "has_tools_prepare": {"features": [ToolsPrepare(nothing)]},
    "result_validators": {"features": [ToolResultValidator(nothing)]},
    "has_truncation": {"features": [ToolOutputTruncation()]},
    "has_default_timeout": {"features": [DefaultToolTimeout(3)]},
    "tools_requiring_approval": {"tools": [pay]},
    "has_tool_approval": {"approval": lambda *_: True},  # pyright: ignore[reportUnknownLambdaType]
    "tool_filters": {"tool_filters": [passes]},
    "input_guardrails": {"features": [ContentFilter("spam")]},
    "turn_guardrails": {"features": [MaxTurns(3)]},
    "history_processors": {"features": [SlidingWindow(3)]},
    "has_auto_context": {"features": [AutoContext(1000)]},
    "message_interceptors": {"features": [MessageInterceptor(nothing)]},
    "response_interceptors": {"features": [ResponseInterceptor(nothing)]},
    "run_conditions": {"features": [TextContains("enough")]},
    "request_middleware": {"features": [RequestMiddleware(cast("Any", nothing))]},
    "stream_middleware": {"features": [StreamMiddleware(cast("Any", nothing))]},
    "has_output_approval": {"output_approval": True},
    "output_validators": {"validators": [lambda _, output: output]},  # pyright: ignore[reportUnknownLambdaType]
    "output_repairs": {"features": [OutputRepair(nothing)]},
    "model_repairs": {"features": [ModelRepair()]},
    "has_reflection": {"features": [Reflection(nothing)]},
    "has_ambient_context": {"features": [AmbientContext()]},
    "has_cost_tracker": {"features": [CostTracker()]},
    "has_knowledge_base": {"features": [Knowledge(StaticKnowledgeBase())]},
    "has_knowledge_auto_store": {"features": [Knowledge(StaticKnowledgeBase(), auto_store=True)]},
    "has_grammar": {"grammar": GRAMMAR},
    "has_usage_quota": {"limits": Limits(quota=UsageQuota(max_requests=3))},
    "has_deps": {"features": [Deps("a database")]},
    "deliveries": {"deliveries": [nothing]},
    "has_editor": {"editor": Agent("test", name="editor")},
    "hooks": {"features": [Hook(on_run_start=nothing)]},
    "trace_exporters": {"features": [Tracing(ConsoleExporter())]},
    "has_event_bus": {"features": [EventBus()]},
    "has_tracing": {"features": [Tracing()]},
    "watchers": {"features": [Watcher()]},
    "has_identity": {"features": [ActsAs(CLERK)]},
}
"""For each feature, what gives an agent one of it and nothing else."""
WITH = {"has_knowledge_auto_store": ("has_knowledge_base",), "trace_exporters": ("has_tracing",)}
"""What cannot be without another."""


@pytest.mark.parametrize("name", list(COUNTS))
def test_what_is_used_is_counted_and_nothing_else(name: str) -> None:
    features = Agent("no such model", **ONE_EACH[name]).features()
    assert features.used == (*WITH.get(name, ()), name)
    assert getattr(features, name) == 1
    assert type(getattr(features, name)) is (bool if name.startswith("has_") else int)


def test_a_plain_agent_uses_none() -> None:
    assert Agent("test", instructions="Be brief.", tools=[see]).features() == AgentFeatures()
    assert AgentFeatures().used == ()


def test_every_kind_of_feature_is_counted() -> None:
    assert list(COUNTS) == [field.name for field in msgspec.structs.fields(AgentFeatures)]
    for place in Stages.__struct_fields__:
        one = place.removesuffix("s")
        names = {
            place,
            f"run_{place}",
            f"request_{place}",
            f"has_{one}",
            f"has_{place}",
            f"has_cost_{one}",
            f"has_{one}_context",
        }
        assert names & set(COUNTS), f"features at {place} are counted nowhere: add them to AgentFeatures"


def test_what_is_overridden_counts() -> None:
    agent = Agent("test", features=[MaxTurns(3)])
    with agent.override(features=[], validators=[nothing]):
        assert agent.features().used == ("output_validators",)
    assert agent.features().used == ("turn_guardrails",)
