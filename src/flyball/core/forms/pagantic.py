"""pagantic's types as JSON.

Its documents give Go fields, and json tags for Schema only (that is `flyball.core.schema.Schema`). For the
others the keys are the snake_case of the Go names: `Message.ToolCallID` is `tool_call_id`. Of a message,
`tool_calls`, `tool_call_id` and `name` are written where they are not empty, because which of them are filled
depends on the role; all other keys are always written.

Normalised: a known key that is null or missing is written with its zero value, or left out if it is one of
the three above. A text that is empty beside tool calls is no part. Arguments are kept as an object, not as
the text that the model wrote. Several texts of one message become one. A message says neither that a tool
failed nor what else we know of a result; the model reads the same.
"""

from __future__ import annotations

from collections.abc import Iterable

from flyball.core.forms.fields import Fields, entered, filled, items, written
from flyball.core.forms.flat import (
    flat_text,
    grouped,
    read_arguments,
    read_role,
    refuse,
    results_of,
    text_parts,
    write_arguments,
)
from flyball.core.messages import JSON, Message, Part, Role, ToolCall, ToolResult
from flyball.core.tools import ToolDefinition
from flyball.core.usage import Usage

_MESSAGE = frozenset({"role", "content", "tool_calls", "tool_call_id", "name"})
_CALL = frozenset({"id", "name", "arguments"})
_RESULT = frozenset({"call_id", "name", "content", "is_error"})
_DEFINITION = frozenset({"name", "description", "parameters"})
_COUNTS = ("prompt_tokens", "reasoning_tokens", "output_tokens", "context_tokens", "context_window")
_USAGE = frozenset({*_COUNTS, "tokens_per_second"})


def read_messages(documents: object) -> tuple[Message, ...]:
    """A conversation. Consecutive tool messages that answer one assistant's calls are joined.

    Raises:
        InvalidMessage: something in it is malformed.
    """
    return grouped([_message(*item) for item in items(entered(documents, "messages"), "messages")])


def read_message(document: object) -> Message:
    """One message.

    Raises:
        InvalidMessage: it is malformed.
    """
    return _message(entered(document, "message"), "message")


def write_messages(messages: Iterable[Message]) -> list[dict[str, JSON]]:
    """A conversation; a message with several tool results becomes several.

    Raises:
        InvalidMessage: a message has content that the form cannot hold.
    """
    return [document for message in messages for document in _written(message)]


def _message(value: JSON, where: str) -> Message:
    fields = Fields(value, where)
    role = read_role(fields)
    content = fields.text("content")
    name = fields.text("name")
    if role is Role.TOOL:
        refuse(fields, role, "tool_calls")
        call_id = fields.text("tool_call_id")
        return Message(role, (ToolResult(call_id, name, content, extra=fields.rest()),))
    refuse(fields, role, "tool_call_id", *(() if role is Role.ASSISTANT else ("tool_calls",)))
    calls: tuple[Part, ...] = tuple([_call(*item) for item in fields.items("tool_calls")])
    parts = (*text_parts(content, calls), *calls)
    return Message(role, parts, name=name or None, extra=fields.rest())


def _written(message: Message) -> list[dict[str, JSON]]:
    role = str(message.role)
    if message.role is Role.TOOL:
        return [
            written(
                {"role": role, "content": result.text}
                | filled(tool_call_id=result.call_id, name=result.name),
                result.extra,
                _MESSAGE,
            )
            for result in results_of(message, "pagantic")
        ]
    calls = [write_tool_call(call) for call in message.tool_calls]
    known: dict[str, JSON] = {"role": role, "content": flat_text(message, "pagantic")}
    return [written(known | filled(tool_calls=calls, name=message.name), message.extra, _MESSAGE)]


def read_tool_call(document: object) -> ToolCall:
    """A tool call.

    Raises:
        InvalidMessage: it is malformed.
    """
    return _call(entered(document, "tool_call"), "tool_call")


def _call(value: JSON, where: str) -> ToolCall:
    fields = Fields(value, where)
    call_id, name, arguments = fields.text("id"), fields.text("name"), read_arguments(fields)
    return ToolCall(call_id, name, arguments, extra=fields.rest())


def write_tool_call(call: ToolCall) -> dict[str, JSON]:
    """A tool call."""
    known = {"id": call.id, "name": call.name} | write_arguments(call, always=True)
    return written(known, call.extra, _CALL)


def read_tool_result(document: object) -> ToolResult:
    """A tool's result; the content of a failed one is its error.

    Raises:
        InvalidMessage: it is malformed.
    """
    fields = Fields(entered(document, "tool_result"), "tool_result")
    call_id, name, content = fields.text("call_id"), fields.text("name"), fields.text("content")
    if fields.flag("is_error"):
        return ToolResult(call_id, name, error=content, extra=fields.rest())
    return ToolResult(call_id, name, content, extra=fields.rest())


def write_tool_result(result: ToolResult) -> dict[str, JSON]:
    """A tool's result, as the model reads it.

    Raises:
        InvalidMessage: it has images, which the form cannot hold.
    """
    results_of(Message(Role.TOOL, (result,)), "pagantic")
    known = {
        "call_id": result.call_id,
        "name": result.name,
        "content": result.text,
        "is_error": result.is_error,
    }
    return written(known, result.extra, _RESULT)


def read_tool_definition(document: object) -> ToolDefinition:
    """What the model is told about a tool; the parameters are a JSON Schema.

    Raises:
        InvalidMessage: it is malformed.
    """
    fields = Fields(entered(document, "tool"), "tool")
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


def read_usage(document: object) -> Usage:
    """TokenUsage: what an inference used.

    Raises:
        InvalidMessage: it is malformed.
    """
    fields = Fields(entered(document, "usage"), "usage")
    prompt, reasoning, output, context, window = (fields.whole(key) or 0 for key in _COUNTS)
    speed = fields.number("tokens_per_second") or 0.0
    return Usage(
        input_tokens=prompt,
        reasoning_tokens=reasoning,
        output_tokens=output,
        context_tokens=context,
        context_window=window,
        tokens_per_second=speed,
        extra=fields.rest(),
    )


def write_usage(usage: Usage) -> dict[str, JSON]:
    """TokenUsage."""
    known = {
        "prompt_tokens": usage.input_tokens,
        "reasoning_tokens": usage.reasoning_tokens,
        "output_tokens": usage.output_tokens,
        "context_tokens": usage.context_tokens,
        "context_window": usage.context_window,
        "tokens_per_second": usage.tokens_per_second,
    }
    return written(known, usage.extra, _USAGE)
