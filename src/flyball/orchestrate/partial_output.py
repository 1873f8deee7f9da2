"""The output while it is being written: what has come of an answer, read as far as that goes.

What is given is always valid: an instance of the output's type, made of what is there. It is read anew only
once the text has grown by a part of itself, so that reading it all costs as much as its length, whatever the
size of its pieces.
"""

from __future__ import annotations

import re
from asyncio import get_running_loop
from collections.abc import AsyncGenerator
from typing import Any

from msgspec import UNSET, UnsetType

from flyball.core.messages import Text, ToolCall
from flyball.core.spec import OutputMode, OutputSpec
from flyball.inference.stream import (
    Finish,
    PartEnd,
    PartStart,
    Restart,
    StreamEvent,
    TextDelta,
    ToolCallDelta,
    close_stream,
)
from flyball.orchestrate.output import Reader

_STEP = 32
"""An answer is read again when there is one more part in so many of it."""
_NUMBER = re.compile(r"[-+.0-9eE]+\Z")
_THOUGHT = re.compile(r"\A\s*<think>.*?(</think>|\Z)", re.DOTALL)


class PartialOutput:
    """Follows the pieces of answers, and reads what may become the output."""

    __slots__ = ("_begun", "_output", "_part", "_pieces", "_read", "_reader", "_size", "_tool", "_tools")

    def __init__(self, reader: Reader, output: OutputSpec) -> None:
        self._reader = reader
        self._output = output
        self._tools = frozenset([definition.name for definition in output.tools])
        self._begin()

    def _begin(self) -> None:
        self._pieces: list[str] = []
        self._size = self._read = 0
        self._begun: set[int] = set()
        self._part: int | None = None
        """The part that carries the output; None while that is the text."""
        self._tool: str | None = None

    def feed(self, event: StreamEvent) -> None:
        """Take the next piece."""
        if type(event) is TextDelta:
            self._begun.add(event.index)
            if self._part is None:
                self._add(event.text)
        elif type(event) is ToolCallDelta:
            if event.index == self._part:
                self._add(event.args_json)
        elif type(event) is PartStart or type(event) is PartEnd:
            if self._part is None and event.index not in self._begun:
                self._begin_part(event.index, event.part)
        elif isinstance(event, Finish | Restart):
            self._begin()

    def _begin_part(self, index: int, part: Any) -> None:
        self._begun.add(index)
        if isinstance(part, Text):
            self._add(part.text)
        elif isinstance(part, ToolCall) and part.name in self._tools:
            # The first output call of an answer is the one that is followed.
            self._begin()
            self._part, self._tool = index, part.name
            self._add("" if part.args_json == "{}" else part.args_json)

    def _add(self, text: str) -> None:
        self._pieces.append(text)
        self._size += len(text)

    @property
    def is_due(self) -> bool:
        """Whether enough has come since it was read last."""
        return self._size - self._read > self._read // _STEP

    def read(self) -> Any | UnsetType:
        """What has come, as the output; UNSET where that cannot be told yet."""
        self._read = self._size
        text = "".join(self._pieces)
        self._pieces = [text]
        if self._tool is None and not self._output.allows_text:
            return UNSET
        if self._tool is None and self._output.mode in (OutputMode.TEXT, OutputMode.TOOL):
            return self._reader.partial(text, None)
        # What has no end yet: a number may become another. Within a text, that is a few characters less.
        return self._reader.partial(_NUMBER.sub("", _json_in(text)), self._tool)


def _json_in(text: str) -> str:
    """Text from where its JSON begins, which is an object: after thoughts, and after what introduces it."""
    text = _THOUGHT.sub("", text)
    start = text.find("{")
    return text[start:] if start >= 0 else ""


async def partial_outputs(
    events: AsyncGenerator[StreamEvent], following: PartialOutput, debounce_by: float | None
) -> AsyncGenerator[Any]:
    """The output as it grows, each time that it has changed, and no more often than every `debounce_by` s."""
    now = get_running_loop().time
    last, given = 0.0, _NOTHING
    try:
        async for event in events:
            following.feed(event)
            if not following.is_due or (debounce_by and now() - last < debounce_by):
                continue
            value = following.read()
            if value is UNSET or same(value, given):
                continue
            last, given = now(), value
            yield value
    finally:
        await close_stream(events)


_NOTHING: Any = object()


def same(one: Any, other: Any) -> bool:
    """Whether two outputs are equal, and of one type."""
    return type(one) is type(other) and bool(one == other)
