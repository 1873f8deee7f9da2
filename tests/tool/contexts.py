"""What the tests here call tools with."""

from __future__ import annotations

from typing import Any

from flyball.core.context import RunContext, RunFacts
from flyball.core.messages import ToolCall


def a_context(deps: Any = None, **facts: Any) -> RunContext[Any]:
    return RunContext(deps, RunFacts(loop_id="loop", **facts))


def a_call(args_json: str = "{}", name: str = "it") -> ToolCall:
    return ToolCall("call-1", name, args_json)
