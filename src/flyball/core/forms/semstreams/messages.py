"""ChatMessage and ToolCall: SemStreams' flat messages, after OpenAI's convention."""

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
from flyball.core.messages import JSON, Message, Part, Role, Thinking, ToolCall, ToolResult

_MESSAGE = frozenset(
    {"role", "content", "name", "reasoning_content", "reasoning", "tool_calls", "tool_call_id"}
)
_CALL = frozenset({"id", "name", "arguments", "metadata", "loop_id", "trace_id"})


def read_messages(documents: object) -> tuple[Message, ...]:
    """A conversation. Consecutive tool messages that answer one assistant's calls are joined.

    Raises:
        InvalidMessage: something in it is malformed.
    """
    return messages_from(entered(documents, "messages"), "messages")


def messages_from(value: JSON, where: str) -> tuple[Message, ...]:
    """A conversation out of a document that was entered already."""
    return grouped([message_from(*item) for item in items(value, where)])


def read_message(document: object) -> Message:
    """One message.

    Raises:
        InvalidMessage: it is malformed.
    """
    return message_from(entered(document, "message"), "message")


def message_from(value: JSON, where: str) -> Message:
    """One message out of a document that was entered already."""
    fields = Fields(value, where)
    role = read_role(fields)
    content, name = fields.text("content"), fields.text("name")
    if role is not Role.ASSISTANT:
        refuse(fields, role, "tool_calls", "reasoning_content", "reasoning")
    if role is Role.TOOL:
        call_id = fields.text("tool_call_id")
        return Message(role, (ToolResult(call_id, name, content, extra=fields.rest()),))
    refuse(fields, role, "tool_call_id")
    alias, canonical = fields.text("reasoning"), fields.text("reasoning_content")
    reasoning = canonical or alias
    thinking: tuple[Part, ...] = (Thinking(reasoning),) if reasoning else ()
    calls: tuple[Part, ...] = tuple([call_from(*item) for item in fields.items("tool_calls")])
    parts = (*thinking, *text_parts(content, thinking + calls), *calls)
    return Message(role, parts, name=name or None, extra=fields.rest())


def write_messages(messages: Iterable[Message]) -> list[dict[str, JSON]]:
    """A conversation; a message with several tool results becomes several.

    Raises:
        InvalidMessage: a message has content that the form cannot hold.
    """
    return [document for message in messages for document in _written(message)]


def _written(message: Message) -> list[dict[str, JSON]]:
    role: dict[str, JSON] = {"role": str(message.role)}
    if message.role is Role.TOOL:
        return [
            written(
                role | filled(content=result.text, name=result.name, tool_call_id=result.call_id),
                result.extra,
                _MESSAGE,
            )
            for result in results_of(message, "SemStreams")
        ]
    known = role | filled(
        content=flat_text(message, "SemStreams"),
        name=message.name,
        reasoning_content=message.thinking,
        tool_calls=[write_tool_call(call) for call in message.tool_calls],
    )
    return [written(known, message.extra, _MESSAGE)]


def read_tool_call(document: object) -> ToolCall:
    """A tool call.

    Raises:
        InvalidMessage: it is malformed.
    """
    return call_from(entered(document, "tool_call"), "tool_call")


def call_from(value: JSON, where: str) -> ToolCall:
    """A tool call out of a document that was entered already."""
    fields = Fields(value, where)
    return ToolCall(
        fields.text("id"),
        fields.text("name"),
        read_arguments(fields),
        metadata=fields.mapping("metadata"),
        loop_id=fields.text("loop_id") or None,
        trace_id=fields.text("trace_id") or None,
        extra=fields.rest(),
    )


def write_tool_call(call: ToolCall) -> dict[str, JSON]:
    """A tool call."""
    known: dict[str, JSON] = {"id": call.id, "name": call.name}
    known |= write_arguments(call, always=False)
    known |= filled(metadata=call.metadata, loop_id=call.loop_id, trace_id=call.trace_id)
    return written(known, call.extra, _CALL)
