"""Steps that run a tool."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, cast

from msgspec import ValidationError, convert
from msgspec.json import encode
from msgspec.structs import replace

from flyball.core.errors import (
    ConfigurationFailure,
    RuleFailed,
    ToolExecutionFailed,
    ToolTimeout,
    ToolUnavailable,
    UserError,
)
from flyball.core.messages import ToolCall, ToolResult
from flyball.core.tools import Safety
from flyball.inference.request import Result
from flyball.orchestrate.agent import Agent
from flyball.orchestrate.bindings import Bindings
from flyball.orchestrate.failing import as_rule
from flyball.orchestrate.filtering import filtered
from flyball.orchestrate.flow.doing import StepContext
from flyball.orchestrate.plan.handling import StepHandler
from flyball.orchestrate.plan.ir import StepInput, StepOutput
from flyball.orchestrate.plan.steps import PlanStep, mismatch
from flyball.orchestrate.tooling import offered
from flyball.tool.availability import availability
from flyball.tool.execute import execute
from flyball.tool.registry import Registry


def tool_handler(tools: Agent[Any, Any] | Registry | Iterable[Any] | None) -> StepHandler:
    """Runs a tool: takes a `ToolCall`, or `{"name": …, "arguments": {…}}`; gives what the tool gave.

    A tool that may not be run twice is refused: after a crash nobody knows whether a step has run. So is one
    that needs approval, which nobody could give. What an idempotent tool fails with is retryable.

    Of an agent, the tools are run as in its own loops: what is not on offer is not run, its tool filters
    decide about each call, and results are checked and cut.
    """
    bindings = tools.bindings() if isinstance(tools, Agent) else None
    if bindings is not None:
        registry: Registry | None = Registry(*bindings.tools.values())
    elif tools is None or isinstance(tools, Registry):
        registry = tools
    else:
        registry = Registry(*cast("Iterable[Any]", tools))

    async def run(context: StepContext[Any], step: PlanStep) -> Any:
        if registry is None:
            raise ConfigurationFailure("tool handler: nil registry")
        call = call_of(step.input, context.idempotency_key)
        if call is None:
            raise mismatch("ToolCall", step.input)
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
        if bindings is not None:
            call = await _let_through(call, bindings, context)
        return _output_of(await execute(tool, call, context), tool.spec.safety is Safety.IDEMPOTENT)

    return run


async def _let_through(call: ToolCall, bindings: Bindings, context: StepContext[Any]) -> ToolCall:
    """A call as an agent's preparations and filters let it through, perhaps with other arguments.

    Raises:
        ToolUnavailable: the tool is not on offer.
        RuleFailed: a filter refuses the call, or failed.
    """
    on_offer, _ = await offered(bindings.spec, bindings, context)
    if on_offer is not None and call.name not in on_offer:
        raise ToolUnavailable(f"the tool {call.name!r} is not on offer here", tool=call.name)
    if not bindings.filters:
        return call
    try:
        (verdict,) = await filtered(bindings.filters, context, {0: call})
    except Exception as error:
        raise as_rule(error, "a tool filter failed") from error
    if not verdict.allowed:
        rules = [{"name": verdict.by, "reason": verdict.reason}]
        text = f"the call of {call.name!r} was not allowed: {verdict.reason}"
        raise RuleFailed(text, retryable=False, rules=rules, tool=call.name)
    return call if verdict.args_json is None else replace(call, args_json=verdict.args_json)


def call_of(given: Any, call_id: str) -> ToolCall | None:
    """The call that a step's input stands for, also where it is as it was recorded; None if it is none.

    One that is only named and has arguments gets the id that is given.
    """
    named = cast("dict[str, Any]", given) if isinstance(given, dict) else {}
    if isinstance(name := named.get("name"), str) and ("arguments" in named or "id" not in named):
        return ToolCall(call_id, name, str(encode(named.get("arguments") or {}), "utf-8"))
    calls = StepInput.of(given).tool_calls or _recorded(given)
    return calls[0] if len(calls) == 1 else None


def _recorded(given: Any) -> tuple[ToolCall, ...]:
    """The calls in what a step gave, as plain JSON: itself one, some of them, an answer, an output."""
    for kind in (ToolCall, tuple[ToolCall, ...], Result, StepOutput):
        try:
            found: Any = convert(given, kind)
        except ValidationError:
            continue
        if calls := StepInput.of(found).tool_calls:
            return calls
    return ()


def _output_of(result: ToolResult, idempotent: bool) -> Any:
    if result.error is not None:
        code = (result.metadata or {}).get("code")
        kind = ToolTimeout if code == ToolTimeout.code else ToolExecutionFailed
        raise kind(result.error, retryable=idempotent, tool=result.name)
    if result.status != "return":
        raise ToolExecutionFailed(result.text, tool=result.name)
    return result.content
