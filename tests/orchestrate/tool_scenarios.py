"""Runs of agents with something around their tools, for the table of scenarios."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec.structs import replace

from flyball import (
    Agent,
    DefaultToolTimeout,
    DeferredToolResult,
    Deps,
    ModelRetry,
    RunContext,
    ToolCallFilterResult,
    ToolCallRejection,
    ToolDefinition,
    ToolOutputTruncation,
    ToolResultValidator,
    Toolset,
    ToolsPrepare,
    stateful,
    tool,
)
from flyball.core.messages import Message, Role, ToolCall, user
from flyball.inference.answers import tool_call as call
from flyball.tool.outside_tool import OutsideTool
from tests.orchestrate.models import Script
from tests.orchestrate.scenario import Scenario


@tool
async def plus(x: int) -> int:
    return x + 1


class Basket:
    """Remembers what was put into it."""

    def __init__(self) -> None:
        self.items: list[str] = []

    def export_state(self) -> Any:
        return self.items

    def restore_state(self, state: Any) -> None:
        self.items = state

    @tool
    async def put(self, item: str) -> int:
        self.items.append(item)
        if item == "stone":
            raise ModelRetry("no stones")
        return len(self.items)

    @tool
    async def empty(self, ctx: RunContext[Any]) -> str:
        taken, self.items = self.items, []
        return f"{ctx.tool_state_by_name('basket', [])} {taken}"


BASKET = stateful(Basket)


def after_one_turn(ctx: RunContext[Any], definition: ToolDefinition) -> ToolDefinition | None:
    return replace(definition, description=f"turn {ctx.run_step}") if ctx.run_step > 1 else None


def long_enough(_: RunContext[Any], result: str) -> None:
    if len(result) < 4:
        raise ModelRetry("longer, please")


@tool(prepare=after_one_turn, validators=[long_enough])
async def look(what: str) -> str:
    return what


@ToolsPrepare
def not_twice(ctx: RunContext[Any], definitions: Sequence[ToolDefinition]) -> list[ToolDefinition]:
    """Nothing is added twice in a row."""
    before = [one.name for one in ctx.messages[-1].tool_results]
    return [one for one in definitions if one.name != "plus" or "plus" not in before]


@ToolResultValidator
async def quoted(_: RunContext[Any], result: Any) -> Any:
    return f"<{result}>"


@tool
async def stock(ctx: RunContext[dict[str, int]], item: str) -> int:
    return ctx.deps[item]


def shelf(ctx: RunContext[dict[str, int]]) -> str:
    return f"There is {', '.join(ctx.deps)}."


async def counted(ctx: RunContext[dict[str, int]], output: str) -> str:
    return f"{output} of {len(ctx.deps)}"


ASK = OutsideTool(ToolDefinition("ask", {"type": "object", "properties": {"who": {"type": "string"}}}))
"""Whoever began the run asks."""


def nobody_is_asked(_: RunContext[Any], calls: Sequence[ToolCall]) -> ToolCallFilterResult:
    kept = [one for one in calls if one.name != "ask"]
    gone = [ToolCallRejection(one, "ask nobody") for one in calls if one.name == "ask"]
    return ToolCallFilterResult(tuple(kept), tuple(gone))


LOOKING = Toolset("looking", [look], instructions="Look twice.", features=[quoted])

AROUND_TOOLS = (
    Scenario(
        "tools that remember",
        lambda: Agent(
            Script(
                [
                    call("plus", {"x": 1}),
                    call("put", {"item": "tea"}),
                    call("put", {"item": "milk"}),
                    call("put", {"item": "stone"}),
                ],
                [call("empty"), call("put", {"item": "salt"})],
                "done",
            ),
            tools=[plus, BASKET],
        ),
        "done",
        options={"tool_state": {"basket": ["bread"], "other": {"kept": True}}},
    ),
    Scenario(
        "tools that are prepared, looked at and cut",
        lambda: Agent(
            Script(
                call("look", {"what": "now"}),
                [call("look", {"what": "no"}), call("plus", {"x": 1})],
                call("look", {"what": "again"}),
                call("look", {"what": "far " * 50}),
                "done",
            ),
            tools=[plus, LOOKING],
            features=[not_twice, ToolOutputTruncation(20), DefaultToolTimeout(30)],
            retries=3,
        ),
        "done",
    ),
    Scenario(
        "dependencies of the agent's own",
        lambda: Agent(
            Script(call("stock", {"item": "tea"}), "4"),
            tools=[stock],
            instructions=shelf,
            validators=[counted],
            features=[Deps({"tea": 4})],
        ),
        "4 of 1",
    ),
    Scenario(
        "tools of the caller's that a filter turns away",
        lambda: Agent(
            Script([call("plus", {"x": 1}), call("ask", {"who": "Ann"})], call("ask"), "done"),
            tools=[plus, ASK],
            tool_filters=[nobody_is_asked],
            features=[DefaultToolTimeout(30)],
        ),
        "done",
    ),
    Scenario(
        "tools of the caller's that were answered",
        lambda: Agent(Script(call("plus", {"x": 1}), "done"), tools=[plus, ASK]),
        "done",
        prompt=None,
        options={
            "messages": (user("go"), Message(Role.ASSISTANT, (ToolCall("c0", "ask", '{"who":"Ann"}'),))),
            "deferred_results": [DeferredToolResult("ask", "c0", "yes")],
        },
    ),
    Scenario(
        "tools of the caller's beside an answer that is there",
        lambda: Agent(
            Script([call("ask", {"who": "Ann"}), call("final_result", {"result": 3})]),
            output=int,
            output_mode="tool",
            tools=[ASK],
        ),
        3,
    ),
    Scenario(
        "results that are never good enough",
        lambda: Agent(
            Script(call("plus", {"x": 1}), *[call("look", {"what": text}) for text in "abcdef"]),
            tools=[plus, look],
        ),
        code="TOOL_EXECUTION_FAILED",
    ),
)
