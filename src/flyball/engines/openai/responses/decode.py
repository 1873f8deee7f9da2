"""What the Responses API answers, whole and in pieces, as we say it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from flyball.core.errors import UnexpectedModelBehavior
from flyball.core.messages import FinishReason, Message, Part, Role, Text, Thinking, ToolCall
from flyball.core.usage import Usage
from flyball.engines.openai.chat.decode import REFUSAL
from flyball.engines.openai.responses.encode import PHASE, item_key
from flyball.engines.wire.failures import request_id_of, stream_failure
from flyball.engines.wire.fields import count, group, objects, text
from flyball.inference.request import Result
from flyball.inference.stream import (
    Finish,
    PartEnd,
    PartStart,
    StreamEvent,
    TextDelta,
    ThinkingDelta,
    ToolCallDelta,
)

_LEFT_OUT = ("status",)
"""What of an item is ours to leave out: it says how far the item had come."""


class _Incomplete(Struct, frozen=True):
    reason: str | None = None


class _Response(Struct, frozen=True):
    id: str | None = None
    model: str | None = None
    status: str | None = None
    output: list[dict[str, Any]] | None = None
    usage: Any = None
    error: Any = None
    incomplete_details: _Incomplete | None = None


class _Event(Struct, frozen=True):
    type: str = ""
    output_index: int = 0
    content_index: int = 0
    summary_index: int = 0
    delta: str | None = None
    item: dict[str, Any] | None = None
    response: _Response | None = None


_whole = msgspec.json.Decoder(_Response, strict=False).decode
_event = msgspec.json.Decoder(_Event, strict=False).decode


def responses_result(data: bytes, headers: Mapping[str, str], provider: str, model: str) -> Result:
    """The answer that a whole body is.

    Raises:
        UnexpectedModelBehavior: it is none.
        FlyballError: it says that the server failed.
    """
    response = _read(_whole, data)
    request_id = request_id_of(headers)
    _check(response, provider, model, request_id)
    if not response.status:
        raise UnexpectedModelBehavior(
            f"{provider} gave an answer without a status", body=data[:500].decode("utf-8", "replace")
        )
    parts = [part for item in response.output or () for _, part in parts_of(item, provider)]
    message = Message(
        Role.ASSISTANT,
        tuple(parts),
        usage=usage_of(response.usage),
        model=response.model or model,
        finish_reason=reason_of(response, parts),
    )
    return Result(message, request_id or response.id)


def parts_of(item: dict[str, Any], provider: str) -> Iterator[tuple[int, Part]]:
    """The parts that an item is, each with its place in the item.

    What has no part of its own (a search that the server made) is a thought without words, so that it goes
    back where it came from.
    """
    match item.get("type"):
        case "message":
            extra = {PHASE: item[PHASE]} if item.get(PHASE) else None
            for place, content in enumerate(objects(item, "content")):
                if content.get("type") == "refusal":
                    yield place, Text(text(content, "refusal"), {**(extra or {}), REFUSAL: True})
                elif said := text(content, "text"):
                    yield place, Text(said, extra)
        case "function_call":
            call_id = text(item, "call_id") or text(item, "id")
            yield 0, ToolCall(call_id, text(item, "name"), text(item, "arguments") or "{}")
        case "reasoning":
            yield 0, Thinking(_thought(item), provider_data={item_key(provider): _kept(item)})
        case _:
            yield 0, Thinking("", provider_data={item_key(provider): _kept(item)})


class ResponsesReader:
    """Makes the events of an answer from the events of its stream.

    Deltas pass by as they come; what an item was is read from the item itself, when it is done.
    """

    def __init__(self, headers: Mapping[str, str], provider: str, model: str) -> None:
        self._provider, self._model = provider, model
        self._request_id = request_id_of(headers)
        self._places: dict[tuple[int, int], int] = {}
        """Our number of each part, by item and place."""
        self._paragraph: dict[int, int] = {}
        """Which part of its summary a thought is at."""
        self._parts: list[Part] = []
        self._end: _Response | None = None

    @property
    def ended(self) -> bool:
        """See `StreamReader.ended`."""
        return self._end is not None

    def feed(self, data: bytes) -> Sequence[StreamEvent]:
        """See `StreamReader.feed`."""
        event = _read(_event, data)
        match event.type:
            case "response.output_text.delta" | "response.refusal.delta":
                return self._text(event)
            case "response.function_call_arguments.delta":
                number = self._places.get((event.output_index, 0))
                return (ToolCallDelta(number, event.delta),) if number is not None and event.delta else ()
            case "response.reasoning_summary_text.delta" | "response.reasoning_text.delta":
                return self._thought(event)
            case "response.output_item.added" if event.item and event.item.get("type") == "function_call":
                [(_, call)] = parts_of({**event.item, "arguments": ""}, self._provider)
                return (PartStart(self._begin((event.output_index, 0)), call),)
            case "response.output_item.done" if event.item is not None:
                return list(self._done(event.output_index, event.item))
            case "response.completed" | "response.incomplete" | "response.failed":
                end = event.response or _Response()
                _check(end, self._provider, self._model, self._request_id)
                self._end = end
            case "error":
                raise stream_failure(
                    data.decode("utf-8", "replace"),
                    provider=self._provider,
                    model=self._model,
                    request_id=self._request_id,
                )
            case _:
                pass  # how far it is, and what newer versions of the API tell besides
        return ()

    def close(self) -> Sequence[StreamEvent]:
        """See `StreamReader.close`."""
        end = self._end
        if end is None:
            raise UnexpectedModelBehavior(
                f"{self._provider} ended the stream before the answer was over", body="", model=self._model
            )
        return (
            Finish(
                usage=usage_of(end.usage),
                model=end.model or self._model,
                finish_reason=reason_of(end, self._parts),
                request_id=self._request_id or end.id,
            ),
        )

    def _begin(self, place: tuple[int, int]) -> int:
        number = self._places[place] = len(self._places)
        return number

    def _text(self, event: _Event) -> Sequence[StreamEvent]:
        place = (event.output_index, event.content_index)
        number = self._places.get(place)
        if not event.delta:
            return ()
        if number is not None:
            return (TextDelta(number, event.delta),)
        number = self._begin(place)
        return (PartStart(number, Text("")), TextDelta(number, event.delta))

    def _thought(self, event: _Event) -> Sequence[StreamEvent]:
        events: list[StreamEvent] = []
        place = (event.output_index, 0)
        number = self._places.get(place)
        if number is None:
            number = self._begin(place)
            events.append(PartStart(number, Thinking("")))
        at = event.summary_index or event.content_index
        if at != self._paragraph.setdefault(event.output_index, at):
            self._paragraph[event.output_index] = at
            events.append(ThinkingDelta(number, "\n\n"))
        if event.delta:
            events.append(ThinkingDelta(number, event.delta))
        return events

    def _done(self, item_number: int, item: dict[str, Any]) -> Iterator[StreamEvent]:
        for at, part in parts_of(item, self._provider):
            number = self._places.get((item_number, at))
            if number is None:
                number = self._begin((item_number, at))
                yield PartStart(number, part)
            self._parts.append(part)
            yield PartEnd(number, part)


def reason_of(response: _Response, parts: Sequence[Part]) -> FinishReason:
    """Why the model stopped."""
    if any(type(part) is Text and part.extra and REFUSAL in part.extra for part in parts):
        return FinishReason.CONTENT_FILTER
    if response.status == "incomplete":
        told = response.incomplete_details.reason if response.incomplete_details else None
        return FinishReason.CONTENT_FILTER if told == "content_filter" else FinishReason.LENGTH
    called = any(type(part) is ToolCall for part in parts)
    return FinishReason.TOOL_CALL if called else FinishReason.STOP


def usage_of(told: Any) -> Usage | None:
    """What the call used, where the server said so."""
    if told is None:
        return None
    usage = group(told)
    read, written = group(usage, "input_tokens_details"), group(usage, "output_tokens_details")
    return Usage(
        input_tokens=count(usage, "input_tokens"),
        output_tokens=count(usage, "output_tokens"),
        reasoning_tokens=count(written, "reasoning_tokens"),
        cache_read_tokens=count(read, "cached_tokens"),
        cache_write_tokens=count(read, "cache_write_tokens"),
    )


def _check(response: _Response, provider: str, model: str, request_id: str | None) -> None:
    if response.error is not None or response.status == "failed":
        told = response.error or "it failed, and did not say why"
        raise stream_failure(told, provider=provider, model=model, request_id=request_id)


def _thought(item: dict[str, Any]) -> str:
    told = objects(item, "summary") or objects(item, "content")
    return "\n\n".join([text(piece, "text") for piece in told])


def _kept(item: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in item.items() if key not in _LEFT_OUT and value is not None}


def _read(decode: Any, data: bytes) -> Any:
    try:
        return decode(data)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise UnexpectedModelBehavior(
            f"the server's answer cannot be read: {error}", body=data[:500].decode("utf-8", "replace")
        ) from error
