"""ToolDefinition, ToolResult, ToolChoice and TokenUsage in SemStreams' JSON."""

from __future__ import annotations

from typing import Any, cast

from flyball.core.encodable import as_text
from flyball.core.forms.fields import Fields, entered, filled, malformed, written
from flyball.core.forms.flat import results_of
from flyball.core.messages import JSON, Message, Role, ToolResult
from flyball.core.tools import ToolChoice, ToolDefinition
from flyball.core.usage import Usage

MODES = ("auto", "required", "none", "function")
"""How free the model is in its choice of a tool."""
_DEFINITION = frozenset({"name", "description", "parameters"})
_RESULT = frozenset({"call_id", "name", "content", "error", "metadata", "loop_id", "trace_id", "stop_loop"})
_CHOICE = frozenset({"mode", "function_name"})
_USAGE = frozenset({"prompt_tokens", "completion_tokens"})


def read_tool_definition(document: object) -> ToolDefinition:
    """What the model is told about a tool.

    Raises:
        InvalidMessage: it is malformed.
    """
    return definition_from(entered(document, "tool"), "tool")


def definition_from(value: JSON, where: str) -> ToolDefinition:
    """A tool definition out of a document that was entered already."""
    fields = Fields(value, where)
    name, description, parameters = (
        fields.text("name"),
        fields.text("description"),
        fields.mapping("parameters"),
    )
    return ToolDefinition(name, parameters or {}, description, extra=fields.rest())


def write_tool_definition(tool: ToolDefinition) -> dict[str, JSON]:
    """What the model is told about a tool."""
    known = {"name": tool.name, "description": tool.description, "parameters": tool.parameters}
    return written(known, tool.extra, _DEFINITION)


def read_tool_result(document: object) -> ToolResult:
    """A tool's result. A failed one without content has none; another one's is at least an empty text.

    Raises:
        InvalidMessage: it is malformed.
    """
    return result_from(entered(document, "tool_result"), "tool_result")


def result_from(value: JSON, where: str) -> ToolResult:
    """A tool result out of a document that was entered already."""
    fields = Fields(value, where)
    content, error = fields.text("content"), fields.text("error") or None
    return ToolResult(
        fields.text("call_id"),
        fields.text("name"),
        content if content or error is None else None,
        error,
        metadata=fields.mapping("metadata"),
        stop_loop=fields.flag("stop_loop") or False,
        loop_id=fields.text("loop_id") or None,
        trace_id=fields.text("trace_id") or None,
        extra=fields.rest(),
    )


def write_tool_result(result: ToolResult) -> dict[str, JSON]:
    """A tool's result; content that is no text becomes the JSON that the model would read.

    Raises:
        InvalidMessage: it has images, which the form cannot hold.
    """
    results_of(Message(Role.TOOL, (result,)), "SemStreams")
    silent = result.content is None and result.is_error
    known: dict[str, JSON] = {"call_id": result.call_id}
    known |= filled(
        name=result.name,
        content="" if silent else as_text(result.content),
        error=result.error,
        metadata=result.metadata,
        loop_id=result.loop_id,
        trace_id=result.trace_id,
        stop_loop=result.stop_loop,
    )
    return written(known, result.extra, _RESULT)


def read_tool_choice(document: object) -> ToolChoice:
    """How free the model is in its choice of a tool. No mode is auto.

    Raises:
        InvalidMessage: there is no such mode, or no name beside the mode function.
    """
    return choice_from(entered(document, "tool_choice"), "tool_choice")


def choice_from(value: JSON, where: str) -> ToolChoice:
    """A tool choice out of a document that was entered already."""
    fields = Fields(value, where)
    mode, name = fields.text("mode") or "auto", fields.text("function_name")
    if mode not in MODES:
        raise malformed(fields.place("mode"), f"one of {', '.join(MODES)}", mode)
    if mode == "function" and not name:
        raise malformed(fields.place("function_name"), "the tool's name, as the mode is function", name)
    # Ours forces a tool that is named beside auto; SemStreams does not look at the name there.
    return ToolChoice(cast("Any", mode), (name or None) if mode != "auto" else None, extra=fields.rest())


def write_tool_choice(choice: ToolChoice) -> dict[str, JSON]:
    """How free the model is in its choice of a tool."""
    known: dict[str, JSON] = {"mode": "function" if choice.forced else choice.mode}
    return written(known | filled(function_name=choice.tool_name), choice.extra, _CHOICE)


def read_usage(document: object) -> Usage:
    """TokenUsage: what a request used.

    Raises:
        InvalidMessage: it is malformed.
    """
    return usage_from(entered(document, "token_usage"), "token_usage")


def usage_from(value: JSON, where: str) -> Usage:
    """A TokenUsage out of a document that was entered already."""
    fields = Fields(value, where)
    prompt, completion = fields.whole("prompt_tokens") or 0, fields.whole("completion_tokens") or 0
    return Usage(prompt, completion, extra=fields.rest())


def write_usage(usage: Usage) -> dict[str, JSON]:
    """TokenUsage."""
    known = {"prompt_tokens": usage.input_tokens, "completion_tokens": usage.output_tokens}
    return written(known, usage.extra, _USAGE)
