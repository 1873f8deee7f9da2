"""From a model's text to stream events, piece by piece: text as it comes, calls as soon as they are named."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from flyball.constraint.grammar.layout import ARGUMENTS, NAME, CallLayout
from flyball.core.messages import FinishReason, Text, ToolCall
from flyball.inference.stream import PartEnd, PartStart, StreamEvent, TextDelta, ToolCallDelta


class TextParser:
    """Gives the text on as it comes, as one part."""

    __slots__ = ("_begun", "_index")

    def __init__(self, index: int) -> None:
        self._index = index
        self._begun = False

    def feed(self, text: str) -> Iterable[StreamEvent]:
        """The piece."""
        self._begun = True
        return (TextDelta(self._index, text),)

    def close(self, reason: FinishReason) -> Iterable[StreamEvent]:
        """The end; an empty text where nothing came, because an answer has at least one part."""
        del reason
        if self._begun:
            return (PartEnd(self._index),)
        return (PartStart(self._index, Text("")), PartEnd(self._index))


class CallParser:
    """Reads calls, and nothing else, as a layout spells them; a grammar has held the model to it.

    A call begins when its name is known, and its arguments are given on as they come. A call that was cut off
    keeps the arguments that it had: whoever runs it sees that they are no JSON.
    """

    def __init__(self, index: int, layout: CallLayout, new_id: Callable[[], str]) -> None:
        self._index = index
        self._new_id = new_id
        self._before, _, rest = layout.call.partition(NAME)
        self._middle, _, _ = rest.partition(ARGUMENTS)
        self._waiting = ""
        self._object: _ObjectEnd | None = None

    def feed(self, text: str) -> Iterator[StreamEvent]:
        """The events of a piece."""
        self._waiting += text
        while True:
            if self._object is None:
                named = self._named()
                if named is None:
                    return
                yield PartStart(self._index, ToolCall(self._new_id(), named, ""))
                self._object = _ObjectEnd()
            piece, ended = self._object.take(self._waiting)
            if piece:
                yield ToolCallDelta(self._index, piece)
            self._waiting = self._waiting[len(piece) :]
            if not ended:
                return
            yield PartEnd(self._index)
            self._index += 1
            self._object = None

    def close(self, reason: FinishReason) -> Iterator[StreamEvent]:
        """The end of a call that was cut off."""
        del reason
        if self._object is not None:
            yield PartEnd(self._index)

    def _named(self) -> str | None:
        """The name of the next call, once all that stands before its arguments is there."""
        start = self._waiting.find(self._before)
        if start < 0:
            return None
        start += len(self._before)
        end = self._waiting.find(self._middle, start)
        if end < 0:
            return None
        name = self._waiting[start:end]
        self._waiting = self._waiting[end + len(self._middle) :]
        return name


class _ObjectEnd:
    """Finds where a JSON object that comes in pieces ends; each character is looked at once."""

    __slots__ = ("_depth", "_escaped", "_quoted")

    def __init__(self) -> None:
        self._depth = 0
        self._quoted = False
        self._escaped = False

    def take(self, text: str) -> tuple[str, bool]:
        """How much of the text belongs to the object, and whether that was its end."""
        for at, char in enumerate(text):
            if self._escaped:
                self._escaped = False
            elif self._quoted:
                self._escaped = char == "\\"
                self._quoted = char != '"'
            elif char == '"':
                self._quoted = True
            elif char in "{[":
                self._depth += 1
            elif char in "}]":
                self._depth -= 1
                if self._depth == 0:
                    return text[: at + 1], True
        return text, False
