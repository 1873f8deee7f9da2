"""Which requests are equal: the SHA-256 of all that a model is asked, and which model."""

from __future__ import annotations

import hashlib

from msgspec import Struct, json
from msgspec.structs import replace

from flyball.core.messages import Message, Part, ToolCall, ToolResult
from flyball.core.settings import ModelSettings
from flyball.core.tools import ToolChoice, ToolDefinition
from flyball.inference.notes import without_notes
from flyball.inference.request import NO_SETTINGS, ModelInfo, OutputObject, Request

_FORMAT = 1
"""Counted up when the same request gets another key, or what is kept of an answer changes."""


class _Asked(Struct, frozen=True, omit_defaults=True):
    """All that an answer hangs on."""

    format: int
    model: str
    provider: str
    messages: tuple[Message, ...]
    tools: tuple[ToolDefinition, ...] = ()
    settings: ModelSettings = NO_SETTINGS
    tool_choice: ToolChoice | None = None
    output: OutputObject | None = None
    grammar: str | None = None
    allows_text: bool = True


def request_key(request: Request, model: ModelInfo) -> str | None:
    """The key of a request to a model; None where it holds what has no JSON form, and is not kept.

    It leaves out the request's id and deadline, when messages were said, what they used and how they came
    about, and the loops and traces that tool calls are of. The order of a JSON object's keys is nothing, too.
    """
    asked = _Asked(
        _FORMAT,
        model.name,
        model.provider,
        tuple([_said(message) for message in request.messages]),
        request.tools,
        request.settings,
        request.tool_choice,
        request.output,
        request.grammar,
        request.allows_text,
    )
    try:
        return hashlib.sha256(json.encode(asked, order="deterministic")).hexdigest()
    except (TypeError, ValueError, OverflowError, RecursionError):
        return None


def _said(message: Message) -> Message:
    """What of a message is asked."""
    if message.usage is not None or message.timestamp is not None:
        message = replace(message, usage=None, timestamp=None)
    message = without_notes(message)
    if any(isinstance(part, ToolCall | ToolResult) for part in message.parts):
        message = replace(message, parts=tuple([_part(part) for part in message.parts]))
    return message


def _part(part: Part) -> Part:
    if isinstance(part, ToolCall | ToolResult) and (part.loop_id is not None or part.trace_id is not None):
        return replace(part, loop_id=None, trace_id=None)
    return part
