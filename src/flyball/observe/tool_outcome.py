"""A tool call as it is told: its arguments as data, and the taxonomy's code of what went wrong."""

from __future__ import annotations

from flyball.core.errors import IncompleteToolCall, ToolExecutionFailed
from flyball.core.messages import JSON, ToolCall, ToolResult


def arguments_of(call: ToolCall) -> JSON:
    """A call's arguments as an object; the raw text where they are none."""
    try:
        return call.arguments
    except IncompleteToolCall:
        return call.args_json


def code_of(result: ToolResult) -> str | None:
    """The taxonomy's code of a result that is no success; None of one that is."""
    code = (result.metadata or {}).get("code")
    if isinstance(code, str):
        return code
    return ToolExecutionFailed.code if result.is_error else None
