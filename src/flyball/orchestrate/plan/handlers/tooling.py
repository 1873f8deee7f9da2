"""Steps that run a tool."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, cast

from msgspec.json import encode

from flyball.core.errors import (
    ConfigurationFailure,
    ToolExecutionFailed,
    ToolTimeout,
    ToolUnavailable,
    UserError,
)
from flyball.core.messages import ToolCall, ToolResult
from flyball.core.tools import Safety
from flyball.orchestrate.flow.doing import StepContext
from flyball.orchestrate.plan.handling import StepHandler
from flyball.orchestrate.plan.ir import StepInput
from flyball.orchestrate.plan.steps import PlanStep, mismatch
from flyball.tool.availability import availability
from flyball.tool.execute import execute
from flyball.tool.registry import Registry


def tool_handler(tools: Registry | Iterable[Any] | None) -> StepHandler:
    """Runs a tool: takes a `ToolCall`, or `{"name": …, "arguments": {…}}`; gives what the tool gave.

    A tool that may not be run twice is refused: after a crash nobody knows whether a step has run. So is one
    that needs approval, which nobody could give.
    """
    registry = None if tools is None else tools if isinstance(tools, Registry) else Registry(*tools)

    async def run(context: StepContext[Any], step: PlanStep) -> Any:
        if registry is None:
            raise ConfigurationFailure("tool handler: nil registry")
        call = _call_of(step, context)
        tool = registry.get(call.name)
        if tool.spec.safety is Safety.AT_MOST_ONCE:
            raise UserError(
                f"the tool {call.name!r} may run at most once: give it to an agent, not to a plan"
            )
        if tool.spec.approval:
            raise UserError(f"the tool {call.name!r} needs approval: give it to an agent, which asks for it")
        answer = await availability(tool, context)
        if not answer.available:
            raise ToolUnavailable(f"the tool {call.name!r} is not available: {answer.reason}", tool=call.name)
        return _output_of(await execute(tool, call, context))

    return run


def _call_of(step: PlanStep, context: StepContext[Any]) -> ToolCall:
    given: Any = step.input
    calls = StepInput.of(given).tool_calls
    if len(calls) == 1:
        return calls[0]
    named = cast("dict[str, Any]", given) if isinstance(given, dict) else {}
    if isinstance(name := named.get("name"), str):
        arguments = str(encode(named.get("arguments") or {}), "utf-8")
        return ToolCall(context.idempotency_key, name, arguments)
    raise mismatch("ToolCall", step.input)


def _output_of(result: ToolResult) -> Any:
    if result.error is not None:
        code = (result.metadata or {}).get("code")
        kind = ToolTimeout if code == ToolTimeout.code else ToolExecutionFailed
        raise kind(result.error, tool=result.name)
    if result.status != "return":
        raise ToolExecutionFailed(result.text, tool=result.name)
    return result.content
