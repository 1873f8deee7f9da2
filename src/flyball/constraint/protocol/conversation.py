"""A conversation as a chat template takes it: `role` and `content`, nobody twice in a row."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from flyball.constraint.grammar.layout import ARGUMENTS, NAME, CallLayout
from flyball.core.errors import UserError
from flyball.core.messages import Message, Retry, Role, Text, Thinking, ToolCall, ToolResult

HERMES = CallLayout()


def text_messages(
    messages: Iterable[Message], layout: CallLayout = HERMES, *, more: str = ""
) -> tuple[dict[str, str], ...]:
    """The messages as text; `more` is added to what the system says.

    System messages are joined at the beginning, since many templates take one, and there only. Tool calls are
    spelled as the layout has it, their results are the user's words.

    Raises:
        UserError: there is no message, or a part that is no text.
    """
    rules: list[str] = []
    turns: list[tuple[str, list[str]]] = []
    for message in messages:
        texts = [text for part in message.parts if (text := part_text(part, layout))]
        if message.role is Role.SYSTEM:
            rules += texts
            continue
        role = "assistant" if message.role is Role.ASSISTANT else "user"
        if turns and turns[-1][0] == role:
            turns[-1][1].extend(texts)
        else:
            turns.append((role, texts))
    if more:
        rules.append(more)
    if not turns and not rules:
        raise UserError("the request has no messages")
    first = [("system", rules)] if rules else []
    return tuple([{"role": role, "content": "\n\n".join(texts)} for role, texts in [*first, *turns]])


def plain_messages(messages: Iterable[Message], *, more: str = "") -> tuple[dict[str, str], ...]:
    """The messages without a word about calls: what tools said stands with the question that it answers.

    A small model that sees calls in a conversation goes on writing calls, whatever it is asked for.
    """
    told: list[Message] = []
    for message in messages:
        if message.role is Role.TOOL:
            facts = [
                Text(f"{part.name}: {part.text}") for part in message.parts if isinstance(part, ToolResult)
            ]
            told.append(Message(Role.USER, tuple(facts)))
            continue
        parts = tuple([part for part in message.parts if not isinstance(part, ToolCall)])
        if parts:
            told.append(Message(message.role, parts))
    return text_messages(told, more=more)


def part_text(part: Any, layout: CallLayout = HERMES) -> str:
    """One part as text.

    Raises:
        UserError: it has none: an image, sound, a document.
    """
    if isinstance(part, Text | Retry):
        return part.text
    if isinstance(part, ToolCall):
        return layout.call.replace(NAME, part.name).replace(ARGUMENTS, part.args_json or "{}")
    if isinstance(part, ToolResult):
        return f"<tool_response>\n{part.text}\n</tool_response>"
    if isinstance(part, Thinking):
        return ""
    raise UserError(f"a local model reads text only, and a message has a part of kind {type(part).__name__}")
