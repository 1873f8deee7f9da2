"""A reader around a reader: what is written into the text becomes parts of its own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from hashlib import blake2b
from typing import Any

from msgspec.structs import replace

from flyball.core.messages import FinishReason, Text, Thinking, ToolCall
from flyball.engines.openai.written.calls import Found
from flyball.engines.openai.written.splitting import Kind, Splitter
from flyball.engines.wire.codec import StreamReader
from flyball.inference.cut import events_of
from flyball.inference.offer import offer_of
from flyball.inference.request import Request, Result
from flyball.inference.stream import (
    Assembler,
    Finish,
    PartEnd,
    PartStart,
    StreamEvent,
    TextDelta,
    ThinkingDelta,
    ToolCallDelta,
)


def reading_written(reader: StreamReader, request: Request) -> StreamReader:
    """A reader that reads what another reads, and looks into the text."""
    return _WrittenReader(reader, request)


def read_written(result: Result, request: Request) -> Result:
    """A whole answer, looked into: the same as its stream would have given."""
    around, joined = _Around(request), Assembler()
    for event in events_of(result.message, request_id=result.request_id):
        for seen in around.take(event):
            joined.feed(seen)
    return joined.result()


class _WrittenReader:
    def __init__(self, reader: StreamReader, request: Request) -> None:
        self._reader = reader
        self._around = _Around(request)

    @property
    def ended(self) -> bool:
        return self._reader.ended

    def feed(self, data: bytes) -> Iterable[StreamEvent]:
        take = self._around.take
        return [seen for event in self._reader.feed(data) for seen in take(event)]

    def close(self) -> Iterable[StreamEvent]:
        take = self._around.take
        return [seen for event in self._reader.close() for seen in take(event)]


class _Around:
    """Events in, events out: parts are numbered anew, since one text may become several."""

    def __init__(self, request: Request) -> None:
        self._request = request
        self._tools: Mapping[str, Mapping[str, Any]] = {
            tool.name: tool.parameters for tool in offer_of(request).tools
        }
        self._numbers: dict[int, int] = {}
        """Our number of each part that is passed on as it is."""
        self._count = 0
        self._splitter: Splitter | None = None
        self._open: Kind | None = None
        self._calls = 0

    def take(self, event: StreamEvent) -> Iterator[StreamEvent]:
        if type(event) is TextDelta and event.index not in self._numbers:
            yield from self._written((self._splitter or self._split()).feed(event.text))
        elif type(event) is PartStart and type(event.part) is Text and not event.part.extra:
            yield from self._written(self._split().feed(event.part.text))
        elif type(event) is PartStart:
            yield from self._end_text()
            self._numbers[event.index] = self._count
            yield PartStart(self._next(), event.part)
        elif type(event) is PartEnd:
            if event.index in self._numbers:
                yield PartEnd(self._numbers[event.index], event.part)
            else:
                yield from self._end_text()
        elif type(event) is TextDelta or type(event) is ThinkingDelta or type(event) is ToolCallDelta:
            if event.index not in self._numbers:
                yield from self._end_text()
                self._numbers[event.index] = self._next()
            yield replace(event, index=self._numbers[event.index])
        elif type(event) is Finish:
            yield from self._end_text()
            called = self._calls and event.finish_reason in (None, FinishReason.STOP)
            yield replace(event, finish_reason=FinishReason.TOOL_CALL) if called else event
        else:
            yield event

    def _split(self) -> Splitter:
        self._splitter = Splitter(self._tools)
        return self._splitter

    def _written(self, pieces: Iterable[tuple[Kind, str] | Found]) -> Iterator[StreamEvent]:
        for kind, text in pieces:
            if not isinstance(kind, Kind):
                yield from self._close_open()
                number = self._next()
                yield PartStart(number, ToolCall(self._call_id(), kind, text))
                yield PartEnd(number)
                continue
            if kind is not self._open:
                yield from self._close_open()
                self._open = kind
                yield PartStart(self._next(), Text("") if kind is Kind.TEXT else Thinking(""))
            at = self._count - 1
            yield TextDelta(at, text) if kind is Kind.TEXT else ThinkingDelta(at, text)

    def _end_text(self) -> Iterator[StreamEvent]:
        if self._splitter is not None:
            yield from self._written(self._splitter.end())
            self._splitter = None
        yield from self._close_open()

    def _close_open(self) -> Iterator[StreamEvent]:
        if self._open is not None:
            self._open = None
            yield PartEnd(self._count - 1)

    def _next(self) -> int:
        self._count += 1
        return self._count - 1

    def _call_id(self) -> str:
        """An id that no other call of the run has, and the same when the same answer is read again."""
        self._calls += 1
        told = f"{self._request.id} {len(self._request.messages)} {self._calls}"
        return "call_" + blake2b(told.encode(), digest_size=8).hexdigest()
