"""A request's messages: as JSON, and as what a run takes: instructions, a history and a prompt.

As JSON they are flat, one text and a list of calls each, wherever that says all that there is to say; else
(images, thinking, several texts) they are written with their parts. Both are read.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from flyball.core.errors import InvalidMessage, InvalidRequest
from flyball.core.forms.fields import items
from flyball.core.forms.pagantic import read_messages, write_messages
from flyball.core.history import check_history
from flyball.core.messages import JSON, Message, Part, Role, Text
from flyball.orchestrate.contracts.reading import typed


class Conversation(Struct, frozen=True):
    """What a run takes: what the system messages say, what was said before, and what is asked now."""

    instructions: tuple[str, ...]
    history: tuple[Message, ...]
    prompt: tuple[Part, ...] | None


def conversation(messages: Sequence[Message]) -> Conversation:
    """A request's messages as a run takes them; the last user message is the prompt.

    What one speaker says in several messages in a row is taken together, and so are tool results.

    Raises:
        InvalidRequest: they are no conversation that a model can answer; the message says which, and why.
    """
    if not messages:
        raise InvalidRequest("messages is empty: give at least one user message", field="messages")
    joined: list[Message] = []
    for number, message in enumerate(messages):
        try:
            message.check()
        except InvalidMessage as error:
            raise InvalidRequest(
                f"messages[{number}]: {error.message}", field=f"messages[{number}]"
            ) from error
        if joined and joined[-1].role is message.role is not Role.ASSISTANT:
            joined[-1] = replace(joined[-1], parts=(*joined[-1].parts, *message.parts))
        else:
            joined.append(message)
    instructions: tuple[str, ...] = ()
    if joined[0].role is Role.SYSTEM:
        instructions = tuple([part.text for part in joined.pop(0).parts if isinstance(part, Text)])
    try:
        check_history(joined, complete=True)
    except InvalidMessage as error:
        raise InvalidRequest(f"messages: {error.message}", field="messages") from error
    if joined[-1].role is not Role.USER:
        return Conversation(instructions, tuple(joined), None)
    return Conversation(instructions, tuple(joined[:-1]), joined[-1].parts)


def read_conversation(document: JSON, where: str) -> tuple[Message, ...]:
    """Messages from JSON.

    Raises:
        InvalidMessage: one of them is malformed.
    """
    found = items(document, where)
    if not any(_has_parts(value) for value, _ in found):
        return read_messages(document)
    return tuple(
        [
            typed(value, Message, place) if _has_parts(value) else read_messages([value])[0]
            for value, place in found
        ]
    )


def _has_parts(value: JSON) -> bool:
    return isinstance(value, dict) and "parts" in value


def write_conversation(messages: Sequence[Message]) -> list[JSON]:
    """Messages as JSON, from which the same messages are read."""
    try:
        flat = write_messages(messages)
        if read_messages(flat) == tuple(messages):
            return list(flat)
    except InvalidMessage:
        pass  # The flat form has no words for them: they are written with their parts.
    return [msgspec.to_builtins(message) for message in messages]
