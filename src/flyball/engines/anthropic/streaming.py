"""What the Messages API answers in pieces, as we say it.

Blocks come one after the other. A part gets its number when it says something, so that the parts are those of
the whole answer: a block without words is none.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from flyball.core.encodable import as_text
from flyball.core.errors import UnexpectedModelBehavior
from flyball.core.messages import Part, Text, ToolCall
from flyball.engines.anthropic.decode import (
    UNREADABLE,
    Body,
    Ending,
    call_of,
    extra_of,
    part_of,
    reason_of,
    unreadable,
    usage_of,
)
from flyball.engines.anthropic.turns import CITATIONS
from flyball.engines.wire.failures import request_id_of, stream_failure
from flyball.engines.wire.fields import group, text
from flyball.inference.stream import (
    Finish,
    PartEnd,
    PartStart,
    StreamEvent,
    TextDelta,
    ThinkingDelta,
    ToolCallDelta,
)


class _Delta(Ending, frozen=True):
    """A piece of a block, or of what is around the blocks."""

    type: str = ""
    text: str = ""
    thinking: str = ""
    partial_json: str = ""
    signature: str = ""
    citation: Any = None


class _Event(Struct, frozen=True):
    type: str = ""
    message: Body | None = None
    content_block: dict[str, Any] | None = None
    delta: _Delta | None = None
    usage: Any = None
    error: Any = None


_read = msgspec.json.Decoder(_Event).decode


class MessagesReader:
    """Makes the events of an answer from those of its stream."""

    def __init__(self, headers: Mapping[str, str], provider: str, model: str) -> None:
        self._provider, self._model = provider, model
        self._request_id = request_id_of(headers)
        self._at = -1
        """The number of the last part that has begun."""
        self._block = _Block({})
        self._usage: dict[str, Any] = {}
        self._ending = Ending()
        self.ended = False
        """See `StreamReader.ended`."""

    def feed(self, data: bytes) -> Sequence[StreamEvent]:
        """See `StreamReader.feed`."""
        try:
            event = _read(data)
        except UNREADABLE as error:
            raise unreadable(error, data) from error
        kind = event.type
        if kind == "content_block_delta":
            return () if event.delta is None else self._delta(event.delta)
        if kind == "content_block_start":
            return self._start(_Block(event.content_block or {}))
        if kind == "content_block_stop":
            return self._stop()
        if kind == "message_start" and event.message is not None:
            self._begin(event.message)
        elif kind == "message_delta":
            self._around(event)
        elif kind == "message_stop":
            self.ended = True
        elif kind == "error" or event.error is not None:
            raise stream_failure(
                event.error or event.type,
                provider=self._provider,
                model=self._model,
                request_id=self._request_id,
            )
        # Pings say nothing, and events that are not known here are none that an answer hangs on.
        return ()

    def close(self) -> Sequence[StreamEvent]:
        """See `StreamReader.close`."""
        reason = self._ending.stop_reason
        if not self.ended or reason is None:
            raise UnexpectedModelBehavior(
                f"{self._provider} ended the stream before the answer was over", body="", model=self._model
            )
        return (
            Finish(
                usage=usage_of(self._usage),
                model=self._model,
                finish_reason=reason_of(reason),
                request_id=self._request_id,
                extra=extra_of(self._ending),
            ),
        )

    def _begin(self, message: Body) -> None:
        self._model = message.model or self._model
        self._request_id = self._request_id or message.id
        self._usage = dict(group(message.usage))
        self._ending = message

    def _around(self, event: _Event) -> None:
        if event.delta is not None:
            kept = event.delta.container or self._ending.container
            self._ending = replace(event.delta, container=kept)
        # Counts are totals: a later one takes the place of an earlier, and what is not said stays.
        self._usage.update({name: count for name, count in group(event.usage).items() if count is not None})

    def _start(self, block: _Block) -> Sequence[StreamEvent]:
        self._block = block
        if block.kind == "tool_use":
            self._at += 1
            return (PartStart(self._at, call_of(block.told, "")),)
        words = text(block.told, block.kind) if block.kind in _WORDS else ""
        return self._words(block.kind, words) if words else ()

    def _delta(self, delta: _Delta) -> Sequence[StreamEvent]:
        block, kind = self._block, delta.type
        if kind == "text_delta":
            return self._words("text", delta.text) if delta.text else ()
        if kind == "thinking_delta":
            return self._words("thinking", delta.thinking) if delta.thinking else ()
        if kind == "input_json_delta":
            if delta.partial_json:
                block.pieces.append(delta.partial_json)
                if block.kind == "tool_use":
                    return (ToolCallDelta(self._at, delta.partial_json),)
        elif kind == "signature_delta":
            block.told["signature"] = delta.signature
        elif kind == "citations_delta":
            block.citations.append(delta.citation)
        else:
            block.readable = False
        return ()

    def _words(self, kind: str, words: str) -> Sequence[StreamEvent]:
        block = self._block
        if block.kind != kind:
            block.readable = False
            return ()
        if not block.pieces:
            self._at += 1
        block.pieces.append(words)
        return (TextDelta(self._at, words) if kind == "text" else ThinkingDelta(self._at, words),)

    def _stop(self) -> Sequence[StreamEvent]:
        block, self._block = self._block, _Block({})
        part = block.part()
        if part is None:
            return ()
        if not block.begun:
            self._at += 1
        return (PartEnd(self._at, None if block.joined_to(part) else part),)


_WORDS = frozenset(("text", "thinking"))


class _Block:
    """A block as far as it has come."""

    __slots__ = ("citations", "kind", "pieces", "readable", "told")

    def __init__(self, told: dict[str, Any]) -> None:
        self.told = told
        self.kind: str = told.get("type") or ""
        self.pieces: list[str] = []
        self.citations: list[Any] = list(told.get(CITATIONS) or ())
        self.readable = True
        """Whether all of its pieces were understood: what is half there must not go back."""

    @property
    def begun(self) -> bool:
        """Whether its part has a number already."""
        return self.kind == "tool_use" or (self.kind in _WORDS and bool(self.pieces))

    def joined_to(self, part: Part) -> bool:
        """Whether its pieces, joined, are all that there is of a part."""
        if type(part) is Text:
            return part.extra is None
        return type(part) is ToolCall and part.args_json == "".join(self.pieces)

    def part(self) -> Part | None:
        """The part that it is, now that it is whole; None where it says nothing, or nothing that we read."""
        told, said = self.told, "".join(self.pieces)
        if self.kind in _WORDS:
            told[self.kind] = said
            if self.citations:
                told[CITATIONS] = self.citations
        elif self.kind == "tool_use":
            return call_of(told, _arguments(said)) if said else part_of(told)
        elif not self.kind or not self.readable:
            return None
        elif said:
            try:
                told["input"] = msgspec.json.decode(said)
            except UNREADABLE:
                return None
        return part_of(told)


def _arguments(said: str) -> str:
    """Arguments as a whole answer has them; what is no JSON stays as the model wrote it."""
    try:
        return as_text(msgspec.json.decode(said))
    except UNREADABLE:
        return said
