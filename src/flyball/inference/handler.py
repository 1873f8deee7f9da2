"""Callbacks on a stream: pagantic's `StreamHandler`, fed from the canonical events."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterable

from flyball.core.errors import StreamRestarted
from flyball.core.messages import Part, Text, Thinking, ToolCall
from flyball.inference.stream import (
    Assembler,
    Finish,
    PartEnd,
    PartStart,
    Restart,
    StreamEvent,
    StreamHandler,
    TextDelta,
    ThinkingDelta,
    close_stream,
)


async def feed_handler(
    handler: StreamHandler, events: AsyncIterable[StreamEvent]
) -> AsyncGenerator[StreamEvent, None]:
    """Pass a stream's events on unchanged, and call the handler as they go by.

    `on_content` and `on_reasoning` get each piece as it comes, never an empty one; `on_tool_call` gets each
    call once, when its arguments are complete. What a callback raises ends the stream and goes to the reader.

    Raises:
        StreamRestarted: the answer began again after callbacks had some of it, and there is no `on_restart`.
        UnexpectedModelBehavior: the events make no answer (see `Assembler`).
    """
    tap = HandlerTap(handler)
    try:
        async for event in events:
            tap.feed(event)
            yield event
    finally:
        await close_stream(events)


class HandlerTap:
    """One handler on one stream, which is fed its events."""

    __slots__ = ("_given", "_handler", "_joined", "_open_calls")

    def __init__(self, handler: StreamHandler) -> None:
        self._handler = handler
        self._joined = Assembler()
        self._open_calls: dict[int, None] = {}
        self._given = False

    def feed(self, event: StreamEvent) -> None:
        """Take the next event, and call what it calls for."""
        unseen = type(event) is PartEnd and self._joined.part(event.index) is None
        self._joined.feed(event)
        if type(event) is TextDelta:
            self._content(event.text)
        elif type(event) is ThinkingDelta:
            self._reasoning(event.text)
        elif type(event) is PartStart:
            self._began(event.index, event.part)
        elif type(event) is PartEnd:
            if unseen and event.part is not None:
                self._began(event.index, event.part)
            self._ended(event.index)
        elif type(event) is Finish:
            for index in tuple(self._open_calls):
                self._ended(index)
        elif type(event) is Restart:
            self._restarted()

    def _restarted(self) -> None:
        self._open_calls.clear()
        if self._handler.on_restart is not None:
            self._handler.on_restart()
        elif self._given:
            raise StreamRestarted(
                "the model's answer began again, and the callbacks were given some of it already: "
                "give the handler an on_restart"
            )
        self._given = False

    def _began(self, index: int, part: Part) -> None:
        if type(part) is Text:
            self._content(part.text)
        elif type(part) is Thinking:
            self._reasoning(part.text)
        elif type(part) is ToolCall:
            self._open_calls[index] = None

    def _ended(self, index: int) -> None:
        call = self._joined.part(index)
        if type(call) is ToolCall and index in self._open_calls:
            del self._open_calls[index]
            if self._handler.on_tool_call is not None:
                self._given = True
                self._handler.on_tool_call(call.name, call.args_json)

    def _content(self, text: str) -> None:
        if text and self._handler.on_content is not None:
            self._given = True
            self._handler.on_content(text)

    def _reasoning(self, text: str) -> None:
        if text and self._handler.on_reasoning is not None:
            self._given = True
            self._handler.on_reasoning(text)
