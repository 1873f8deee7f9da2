"""What was said, as attributes of spans, in the form of the conventions: only for those who ask for it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from msgspec import json

from flyball.core.encodable import as_text
from flyball.core.messages import Message, Part, Retry, Role, Text, Thinking, ToolCall, ToolResult
from flyball.observe.events import ModelRequestedEvent, ModelRespondedEvent, ToolCalledEvent, ToolEndedEvent
from flyball.observe.timeline import finish_reason
from flyball.observe.tool_outcome import arguments_of

INPUT_MESSAGES = "gen_ai.input.messages"
OUTPUT_MESSAGES = "gen_ai.output.messages"
SYSTEM_INSTRUCTIONS = "gen_ai.system_instructions"
TOOL_ARGUMENTS = "gen_ai.tool.call.arguments"
TOOL_RESULT = "gen_ai.tool.call.result"


def asked_content(event: ModelRequestedEvent) -> dict[str, str]:
    """What a model is sent."""
    told = [message for message in event.messages if message.role is not Role.SYSTEM]
    instructions = [part for one in event.messages if one.role is Role.SYSTEM for part in _parts(one)]
    content = {INPUT_MESSAGES: _written([_message(message) for message in told])}
    if instructions:
        content[SYSTEM_INSTRUCTIONS] = _written(instructions)
    return content


def answer_content(event: ModelRespondedEvent) -> dict[str, str]:
    """What a model answered, if it did."""
    if event.response is None:
        return {}
    answer = {**_message(event.response), "finish_reason": str(finish_reason(event))}
    return {OUTPUT_MESSAGES: _written([answer])}


def called_content(event: ToolCalledEvent) -> dict[str, str]:
    """What a tool is called with."""
    return {TOOL_ARGUMENTS: event.args_json}


def result_content(event: ToolEndedEvent) -> dict[str, str]:
    """What came of a tool call, as the model reads it."""
    return {TOOL_RESULT: event.result.text}


def _written(value: Any) -> str:
    return str(json.encode(value), "utf-8")


def _message(message: Message) -> dict[str, Any]:
    role = str(message.role)
    if message.parts and all(isinstance(part, ToolResult) for part in message.parts):
        role = "tool"
    return {"role": role, "parts": _parts(message)}


def _parts(message: Message) -> list[dict[str, Any]]:
    return [_part(part) for part in _of(message)]


def _of(message: Message) -> Iterable[Part]:
    return message.parts


def _part(part: Part) -> dict[str, Any]:
    if isinstance(part, Text | Retry):
        return {"type": "text", "content": part.text}
    if isinstance(part, Thinking):
        return {"type": "reasoning", "content": part.text}
    if isinstance(part, ToolCall):
        return {"type": "tool_call", "id": part.id, "name": part.name, "arguments": arguments_of(part)}
    if isinstance(part, ToolResult):
        said = part.error if part.error is not None else part.content
        return {"type": "tool_call_response", "id": part.call_id, "response": as_text(said)}
    return {"type": "uri", "modality": type(part).__name__.lower(), "uri": part.url}
