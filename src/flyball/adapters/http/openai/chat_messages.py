"""The messages of a chat: from OpenAI's to ours.

What system and developer messages say comes first, wherever they stand. An assistant's message that says
nothing is left out, and what it says in several messages in a row is one. `reasoning_content` is thinking.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from flyball.adapters.http.openai.content import read_content, read_text
from flyball.adapters.http.openai.errors import Refused, unsupported
from flyball.adapters.http.openai.reading import param_of, place, required_text
from flyball.core.forms.fields import Fields, malformed
from flyball.core.messages import JSON, Message, Part, Role, Text, Thinking, ToolCall, ToolResult


def read_messages(found: list[tuple[JSON, str]]) -> tuple[Message, ...]:
    """The conversation that a request brings.

    Raises:
        InvalidMessage: a message is malformed.
        Refused: a message holds what cannot be, or nobody asks anything.
    """
    if not found:
        raise Refused("'messages' is empty: give at least one message.", param="messages", code="empty_array")
    talk = _Talk([], [], {})
    for value, where in found:
        fields = Fields(value, where)
        role = required_text(fields, "role")
        read = _ROLES.get(role)
        if read is None:
            raise malformed(fields.place("role"), f"one of {', '.join(_ROLES)}", role)
        read(fields, talk)
    if not talk.said or talk.said[-1].role is Role.ASSISTANT:
        raise Refused(
            "The last message should be the user's, or a tool's.", param="messages", code="invalid_value"
        )
    told = [Message(Role.SYSTEM, tuple(talk.told))] if talk.told else []
    return (*told, *talk.said)


class _Talk(Struct):
    """A conversation as far as it was read."""

    told: list[Part]
    """What the system messages say."""
    said: list[Message]
    names: dict[str, str]
    """The names of the tools that were called, by the calls' ids."""


def _system(fields: Fields, talk: _Talk) -> None:
    if text := read_text(fields.any("content"), fields.place("content")):
        talk.told.append(Text(text))


def _user(fields: Fields, talk: _Talk) -> None:
    parts = read_content(fields.any("content"), fields.place("content"))
    if not parts:
        raise Refused(
            "A user's message needs content.", param=param_of(fields, "content"), code="invalid_value"
        )
    talk.said.append(Message(Role.USER, parts, name=fields.text("name") or None))


def _assistant(fields: Fields, talk: _Talk) -> None:
    for key in ("function_call", "audio"):
        if fields.any(key) is not None:
            raise unsupported(param_of(fields, key), "it cannot be taken back: use tool_calls, and text")
    parts: list[Part] = []
    if thoughts := fields.text("reasoning_content"):
        parts.append(Thinking(thoughts))
    content = read_content(fields.any("content"), fields.place("content"), only_text=True)
    parts += [part for part in content if isinstance(part, Text) and part.text]
    if refusal := fields.text("refusal"):
        parts.append(Text(refusal, {"refusal": True}))
    for value, where in fields.items("tool_calls"):
        parts.append(_call(value, where, talk.names))
    if not any(isinstance(part, Text | ToolCall) for part in parts):
        return
    before = talk.said[-1] if talk.said else None
    if before is not None and before.role is Role.ASSISTANT and not before.tool_calls:
        talk.said[-1] = replace(before, parts=(*before.parts, *parts))
    else:
        talk.said.append(Message(Role.ASSISTANT, tuple(parts)))


def _call(value: JSON, where: str, names: dict[str, str]) -> ToolCall:
    fields = Fields(value, where)
    kind = fields.text("type") or "function"
    if kind != "function":
        raise unsupported(param_of(fields, "type"), f"a call of kind {kind!r} cannot be taken back")
    inner = Fields(fields.any("function"), fields.place("function"))
    call = ToolCall(
        required_text(fields, "id"), required_text(inner, "name"), inner.text("arguments") or "{}"
    )
    names[call.id] = call.name
    return call


def _tool(fields: Fields, talk: _Talk) -> None:
    call_id = required_text(fields, "tool_call_id")
    if call_id not in talk.names:
        raise Refused(
            f"{place(fields.where)}: no call {call_id!r} was made before it.",
            param=param_of(fields, "tool_call_id"),
            code="invalid_value",
        )
    result = ToolResult(
        call_id, talk.names[call_id], read_text(fields.any("content"), fields.place("content"))
    )
    talk.said.append(Message(Role.TOOL, (result,)))


def _function(fields: Fields, talk: _Talk) -> None:
    raise unsupported(param_of(fields, "role"), "the role function is gone: use tool")


_ROLES: Mapping[str, Callable[[Fields, Any], None]] = {
    "developer": _system,
    "system": _system,
    "user": _user,
    "assistant": _assistant,
    "tool": _tool,
    "function": _function,
}
