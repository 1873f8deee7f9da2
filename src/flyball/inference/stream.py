"""An answer in pieces: stream events, and how they become a message again.

Pieces belong to parts, which are numbered in the order of the finished message. A text or thinking part may
begin with its first delta; a tool call begins with a `PartStart` that names it. `Finish` closes the stream.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from flyball.core.errors import UnexpectedModelBehavior
from flyball.core.messages import FinishReason, Message, Part, Role, Text, Thinking, ToolCall
from flyball.core.usage import Usage
from flyball.inference.request import Result


class _StreamEvent(Struct, frozen=True, omit_defaults=True, tag_field="stream", gc=False):
    pass


class PartStart(_StreamEvent, tag="part_start"):
    """A part begins, with what is known of it so far."""

    index: int
    part: Part


class TextDelta(_StreamEvent, tag="text"):
    """More text of a text part."""

    index: int
    text: str


class ThinkingDelta(_StreamEvent, tag="thinking"):
    """More text of a thinking part."""

    index: int
    text: str


class ToolCallDelta(_StreamEvent, tag="tool_call"):
    """More of a tool call's arguments, as JSON text that may be cut anywhere."""

    index: int
    args_json: str


class PartEnd(_StreamEvent, tag="part_end"):
    """A part is complete; `part` replaces what was joined, where the engine knows more (a signature)."""

    index: int
    part: Part | None = None


class Finish(_StreamEvent, tag="finish"):
    """The answer is complete."""

    usage: Usage | None = None
    model: str | None = None
    finish_reason: FinishReason | None = None
    request_id: str | None = None


StreamEvent: TypeAlias = PartStart | TextDelta | ThinkingDelta | ToolCallDelta | PartEnd | Finish


class StreamHandler(Struct, frozen=True):
    """pagantic's three callbacks, fed with a stream's events. Each may be left out."""

    on_content: Callable[[str], None] | None = None
    on_reasoning: Callable[[str], None] | None = None
    on_tool_call: Callable[[str, str], None] | None = None


class Assembler:
    """Joins stream events into the message they make. Feeding costs the same however long the stream is."""

    __slots__ = ("_chunks", "_finish", "_parts")

    def __init__(self) -> None:
        self._parts: dict[int, Part] = {}
        self._chunks: dict[int, list[str]] = {}
        self._finish: Finish | None = None

    def feed(self, event: StreamEvent) -> None:
        """Take the next event.

        Raises:
            UnexpectedModelBehavior: a delta for a part of another kind, or for a tool call without its start.
        """
        kind = type(event)
        if kind is TextDelta or kind is ThinkingDelta or kind is ToolCallDelta:
            chunks = self._chunks.get(event.index)  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType, reportUnknownArgumentType]
            if chunks is None:
                chunks = self._open(event)
            chunks.append(event.args_json if kind is ToolCallDelta else event.text)  # pyright: ignore
        elif kind is PartStart:
            self._parts[event.index] = event.part  # pyright: ignore
        elif kind is PartEnd:
            if event.part is not None:  # pyright: ignore
                self._parts[event.index] = event.part  # pyright: ignore
                self._chunks.pop(event.index, None)  # pyright: ignore
        else:
            self._finish = event  # pyright: ignore

    def _open(self, event: TextDelta | ThinkingDelta | ToolCallDelta) -> list[str]: ...

    def message(self) -> Message: ...

    def result(self) -> Result: ...
