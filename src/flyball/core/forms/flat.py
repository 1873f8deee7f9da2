"""What pagantic's and SemStreams' forms share: flat messages: one text, a list of calls, one result.

A message of ours with several results becomes several flat ones. On the way back, consecutive tool messages
that answer calls of the assistant's message before them, each call once, are joined into one.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import json

from flyball.core.errors import IncompleteToolCall, InvalidMessage
from flyball.core.forms.fields import Fields, malformed
from flyball.core.messages import (
    JSON,
    Message,
    Part,
    Retry,
    Role,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)

RAW_ARGUMENTS = "args_json"
"""Beside `arguments`, only where they are no JSON object: the text as the model wrote it.

The flat forms hold arguments as an object, and have no words for a call that a model broke off. A history
with such a call must still be written, so its text goes under a key that their readers do not know.
"""


def read_role(fields: Fields) -> Role:
    """The message's role."""
    value = fields.any("role")
    try:
        return Role(value)
    except ValueError:
        raise malformed(fields.place("role"), f"one of {', '.join(Role)}", value) from None


def refuse(fields: Fields, role: Role, *keys: str) -> None:
    """Refuse what a message of this role cannot carry; empty ones are as good as missing."""
    for key in keys:
        if value := fields.any(key):
            raise malformed(fields.place(key), f"left out in a message of the role {role}", value)


def text_parts(content: str, others: tuple[Part, ...]) -> tuple[Part, ...]:
    """The text as a part: also an empty one, where the message has nothing else."""
    return (Text(content),) if content or not others else ()


def flat_text(message: Message, form: str) -> str:
    """The one text of a message: a model's answer joined, anybody else's texts set apart by an empty line.

    Raises:
        InvalidMessage: it has a part that the form cannot hold.
    """
    texts: list[str] = []
    for part in message.parts:
        if isinstance(part, Text | Retry):
            texts.append(part.text)
        elif not isinstance(part, Thinking | ToolCall):
            raise InvalidMessage(
                f"the {form} form has no place for a {type(part).__name__} part in a {message.role} message: "
                "leave it out, or use a form that has one"
            )
    return ("" if message.role is Role.ASSISTANT else "\n\n").join(texts)


def results_of(message: Message, form: str) -> tuple[ToolResult, ...]:
    """The results of a tool message.

    Raises:
        InvalidMessage: it carries something else, or a result has images, which the form cannot hold.
    """
    for part in message.parts:
        if not isinstance(part, ToolResult) or part.images:
            what = (
                "images in a tool result" if isinstance(part, ToolResult) else f"a {type(part).__name__} part"
            )
            raise InvalidMessage(f"the {form} form has no place for {what} in a tool message")
    return message.tool_results


def read_arguments(fields: Fields) -> str:
    """A call's arguments, as the text that a model would have written."""
    arguments = fields.mapping("arguments")
    if arguments is not None:
        return json.encode(arguments).decode("utf-8")
    raw = fields.peek(RAW_ARGUMENTS)
    if isinstance(raw, str) and _object(ToolCall("", "", raw)) is None:
        fields.any(RAW_ARGUMENTS)
        return raw
    return "{}"


def write_arguments(call: ToolCall, *, always: bool) -> dict[str, JSON]:
    """The `arguments` key, empty or not if `always`; or the raw text under a key of its own."""
    arguments = _object(call)
    if arguments is None:
        raw: dict[str, JSON] = {RAW_ARGUMENTS: call.args_json}
        return dict(arguments={}, **raw) if always else raw
    return {"arguments": arguments} if arguments or always else {}


def _object(call: ToolCall) -> dict[str, JSON] | None:
    try:
        return call.arguments
    except IncompleteToolCall:
        return None


def grouped(messages: Iterable[Message]) -> tuple[Message, ...]:
    """Messages with one result each, joined where they answer the calls of one assistant's message."""
    joined: list[Message] = []
    waiting: set[str] = set()
    answers: list[Part] = []

    def close() -> None:
        if answers:
            joined.append(Message(Role.TOOL, tuple(answers)))
            answers.clear()

    for message in messages:
        given = {result.call_id for result in message.tool_results}
        if message.role is Role.TOOL and given <= waiting:
            answers.extend(message.parts)
            waiting -= given
            continue
        close()
        joined.append(message)
        if message.role is not Role.TOOL:
            waiting = {call.id for call in message.tool_calls}
    close()
    return tuple(joined)
