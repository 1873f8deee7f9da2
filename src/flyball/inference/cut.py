"""A message as the stream events that make it: what engines without a stream of their own give out."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from flyball.core.errors import InvalidMessage, UserError
from flyball.core.messages import Message, Role, Text, Thinking, ToolCall
from flyball.inference.stream import (
    Finish,
    PartEnd,
    PartStart,
    StreamEvent,
    TextDelta,
    ThinkingDelta,
    ToolCallDelta,
)


def events_of(
    message: Message, chunk: int | None = None, request_id: str | None = None
) -> Iterator[StreamEvent]:
    """The events of a stream that gives this message, its texts cut after every `chunk` characters.

    Without `chunk` each text comes whole. Joined they give the message again, but for its name and its
    timestamp, which no stream carries.

    Raises:
        InvalidMessage: it is no assistant's message.
        UserError: `chunk` is less than one.
    """
    if message.role is not Role.ASSISTANT:
        raise InvalidMessage(
            f"only an assistant's message can be streamed, and this is a {message.role} message"
        )
    if chunk is not None and chunk < 1:
        raise UserError(f"chunk is the number of characters in a piece, at least 1, not {chunk}")
    return _events(message, chunk, request_id)


def _events(message: Message, chunk: int | None, request_id: str | None) -> Iterator[StreamEvent]:
    for index, part in enumerate(message.parts):
        if type(part) is Text:
            if part.extra is not None or not part.text:
                yield PartStart(index, Text("", part.extra))
            for piece in _pieces(part.text, chunk):
                yield TextDelta(index, piece)
            yield PartEnd(index)
        elif type(part) is ToolCall:
            yield PartStart(index, replace(part, args_json=""))
            for piece in _pieces(part.args_json, chunk):
                yield ToolCallDelta(index, piece)
            yield PartEnd(index)
        elif type(part) is Thinking:
            for piece in _pieces(part.text, chunk):
                yield ThinkingDelta(index, piece)
            # As providers do it: the signature comes last.
            yield PartEnd(index, part)
        else:
            yield PartStart(index, part)
            yield PartEnd(index)
    yield Finish(message.usage, message.model, message.finish_reason, request_id, message.extra)


def _pieces(text: str, chunk: int | None) -> Iterator[str]:
    if chunk is None or chunk >= len(text):
        if text:
            yield text
        return
    for start in range(0, len(text), chunk):
        yield text[start : start + chunk]
