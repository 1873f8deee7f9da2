"""What Chat Completions answers, whole and in pieces, as we say it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from flyball.core.encodable import as_text
from flyball.core.errors import UnexpectedModelBehavior
from flyball.core.messages import FinishReason, Message, Part, Role, Text, Thinking, ToolCall
from flyball.core.usage import Usage
from flyball.engines.openai.chat.encode import DETAILS, MORE
from flyball.engines.wire.failures import request_id_of, stream_failure
from flyball.engines.wire.fields import count, group, objects, rate, text
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

REASONS = {
    "stop": FinishReason.STOP,
    "length": FinishReason.LENGTH,
    "max_tokens": FinishReason.LENGTH,
    "tool_calls": FinishReason.TOOL_CALL,
    "function_call": FinishReason.TOOL_CALL,
    "content_filter": FinishReason.CONTENT_FILTER,
    "error": FinishReason.ERROR,
}
REFUSAL = "refusal"
"""The key of a text part that the model said in place of an answer."""
_DONE = b"[DONE]"
_UNREADABLE = (msgspec.DecodeError, UnicodeError, RecursionError)


class _Function(Struct, frozen=True):
    name: str | None = None
    arguments: Any = None


class _Call(Struct, frozen=True):
    index: int | None = None
    id: str | None = None
    function: _Function | None = None
    extra_content: dict[str, Any] | None = None


class _Said(Struct, frozen=True):
    """A message, or a piece of one. Mistral's thinking models give their content as a list of pieces."""

    content: str | list[dict[str, Any]] | None = None
    refusal: str | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    reasoning_details: list[Any] | None = None
    tool_calls: list[_Call] | None = None


class _Choice(Struct, frozen=True):
    index: int | None = None
    message: _Said | None = None
    delta: _Said | None = None
    finish_reason: str | None = None


class _Body(Struct, frozen=True):
    choices: list[_Choice] | None = None
    usage: Any = None
    timings: Any = None
    error: Any = None


class _Named(_Body, frozen=True):
    """A body with what every chunk of a stream says again: it is read once."""

    id: str | None = None
    model: str | None = None


_named = msgspec.json.Decoder(_Named, strict=False).decode
_piece = msgspec.json.Decoder(_Body, strict=False).decode


def _unreadable(error: Exception, data: bytes) -> UnexpectedModelBehavior:
    return UnexpectedModelBehavior(
        f"the server's answer cannot be read: {error}", body=data[:500].decode("utf-8", "replace")
    )


def chat_result(data: bytes, headers: Mapping[str, str], provider: str, model: str) -> Result:
    """The answer that a whole body is.

    Raises:
        UnexpectedModelBehavior: it is none.
        FlyballError: it says that the server failed.
    """
    request_id = request_id_of(headers)
    try:
        body = _named(data)
    except _UNREADABLE as error:
        raise _unreadable(error, data) from error
    if body.error is not None:
        raise stream_failure(body.error, provider=provider, model=model, request_id=request_id)
    choice = _chosen(body.choices or ())
    said = choice.message if choice is not None else None
    if choice is None or said is None:
        raise UnexpectedModelBehavior(
            f"{provider} gave an answer without a message", body=data[:500].decode("utf-8", "replace")
        )
    said, words = _spoken(said)
    parts: list[Part] = []
    if (thought := thinking_of(said)) or said.reasoning_details:
        parts.append(Thinking(thought, provider_data=_details(said.reasoning_details)))
    if words:
        parts.append(Text(words))
    if said.refusal:
        parts.append(Text(said.refusal, {REFUSAL: True}))
    for number, call in enumerate(said.tool_calls or ()):
        parts.append(_call(call, call_id(call, body.id, number)))
    message = Message(
        Role.ASSISTANT,
        tuple(parts),
        usage=usage_of(body),
        model=body.model or model,
        finish_reason=reason_of(choice.finish_reason, parts),
    )
    return Result(message, request_id or body.id)


class ChatReader:
    """Makes the events of an answer from the chunks of its stream."""

    def __init__(self, headers: Mapping[str, str], provider: str, model: str) -> None:
        self._provider, self._model = provider, model
        self._request_id = request_id_of(headers)
        self._begun = False
        self._id: str | None = None
        self._parts: list[Part] = []
        """What each part began as."""
        self._writing = False
        """Whether the last part is plain text: what nearly every chunk adds to."""
        self._last = 0
        self._thought: list[str] = []
        self._details: list[Any] = []
        self._calls: dict[int, tuple[int, str]] = {}
        """The part and the id of each call, by the number that the server gives it."""
        self._reason: str | None = None
        self._usage: Usage | None = None
        self.ended = False
        """See `StreamReader.ended`."""

    def feed(self, data: bytes) -> Sequence[StreamEvent]:
        """See `StreamReader.feed`."""
        try:
            body = _piece(data) if self._begun else self._first(data)
        except _UNREADABLE as error:
            if data == _DONE:
                self.ended = True
                return ()
            raise _unreadable(error, data) from error
        choice = body.choices[0] if body.choices else None
        said = choice.delta if choice is not None else None
        if (
            self._writing
            and said is not None
            and type(said.content) is str
            and said.content
            and said.tool_calls is None
            and said.refusal is None
            and choice is not None
            and not choice.index
            and choice.finish_reason is None
            and body.usage is None
        ):
            # What nearly every chunk is.
            return (TextDelta(self._last, said.content),)
        return self._read(body, choice)

    def _read(self, body: _Body, choice: _Choice | None) -> Sequence[StreamEvent]:
        if body.error is not None:
            raise stream_failure(
                body.error, provider=self._provider, model=self._model, request_id=self._request_id
            )
        if body.usage is not None:
            self._usage = usage_of(body)
        if choice is not None and choice.index:
            choice = _chosen(body.choices or ())
        if choice is None:
            return ()
        if choice.finish_reason is not None:
            self._reason = choice.finish_reason
        said = choice.delta or choice.message
        return () if said is None else self._said(*_spoken(said))

    def close(self) -> Sequence[StreamEvent]:
        """See `StreamReader.close`."""
        if self._reason is None and not self.ended:
            raise UnexpectedModelBehavior(
                f"{self._provider} ended the stream before the answer was over", body="", model=self._model
            )
        events: list[StreamEvent] = []
        self._end_words(events)
        events += [PartEnd(part) for part, _ in self._calls.values()]
        if self._details:
            # They came after the words that they are about.
            self._begin(Thinking(""), events)
            self._end_words(events)
        events.append(
            Finish(
                usage=self._usage,
                model=self._model,
                finish_reason=reason_of(self._reason, self._parts),
                request_id=self._request_id or self._id,
            )
        )
        return events

    def _first(self, data: bytes) -> _Body:
        body = _named(data)
        self._id, self._model, self._begun = body.id, body.model or self._model, True
        return body

    def _said(self, said: _Said, words: str) -> list[StreamEvent]:
        events: list[StreamEvent] = []
        self._details += said.reasoning_details or ()
        if (thought := thinking_of(said)) or (said.reasoning_details and not self._parts):
            self._on(Thinking(""), events)
            if thought:
                self._thought.append(thought)
                events.append(ThinkingDelta(len(self._parts) - 1, thought))
        if words:
            self._on(Text(""), events)
            events.append(TextDelta(len(self._parts) - 1, words))
        if said.refusal:
            self._on(Text("", {REFUSAL: True}), events)
            events.append(TextDelta(len(self._parts) - 1, said.refusal))
        for call in said.tool_calls or ():
            self._called(call, events)
        return events

    def _on(self, part: Text | Thinking, events: list[StreamEvent]) -> None:
        """Go on with words of this kind: in the last part, or in a new one."""
        if self._parts and self._parts[-1] == part:
            return
        self._begin(part, events)
        self._writing, self._last = type(part) is Text and part.extra is None, len(self._parts) - 1

    def _begin(self, part: Part, events: list[StreamEvent]) -> None:
        self._end_words(events)
        events.append(PartStart(len(self._parts), part))
        self._parts.append(part)

    def _end_words(self, events: list[StreamEvent]) -> None:
        """End the last part, unless it is a call: pieces of calls may come in any order."""
        self._writing = False
        last = self._parts[-1] if self._parts else None
        if type(last) is Thinking:
            whole = Thinking("".join(self._thought), provider_data=_details(merged(self._details)))
            self._thought, self._details = [], []
            events.append(PartEnd(len(self._parts) - 1, whole))
        elif type(last) is Text:
            events.append(PartEnd(len(self._parts) - 1))

    def _called(self, call: _Call, events: list[StreamEvent]) -> None:
        number = call.index if call.index is not None else max(len(self._calls) - 1, 0)
        known = self._calls.get(number)
        # Some servers number every call 0, or not at all, and send each in one piece: its id is then new, or
        # it has a name and no id.
        named = call.index is None and not call.id and call.function is not None and call.function.name
        if known is not None and (named or (call.id and call.id != known[1])):
            number, known = len(self._calls), None
        if known is None:
            begun = _call(call, call_id(call, self._id, len(self._calls)))
            self._begin(begun, events)
            self._calls[number] = (len(self._parts) - 1, begun.id)
        elif call.function is not None and (args := _arguments(call.function)):
            events.append(ToolCallDelta(known[0], args))


def _chosen(choices: Sequence[_Choice]) -> _Choice | None:
    """Of several answers, the first: who asks for more by `options` is given one."""
    return next((choice for choice in choices if not choice.index), None)


def merged(details: Sequence[Any]) -> list[Any]:
    """OpenRouter's details of a thought, whose texts a stream cuts into pieces, whole again."""
    whole: list[Any] = []
    for piece in details:
        last = whole[-1] if whole else None
        same = isinstance(last, dict) and isinstance(piece, dict) and all(
            cast("dict[str, Any]", last).get(key) == cast("dict[str, Any]", piece).get(key)
            for key in ("type", "index", "id")
        )  # fmt: skip
        if not same:
            whole.append(piece)
            continue
        joined = dict(cast("dict[str, Any]", last))
        for key, value in cast("dict[str, Any]", piece).items():
            grows = key in ("text", "summary", "data") and isinstance(value, str) and key in joined
            joined[key] = f"{joined[key] or ''}{value}" if grows else value
        whole[-1] = joined
    return whole


def _spoken(said: _Said) -> tuple[_Said, str]:
    """What was said, and its words: of a list of pieces the thoughts are told apart from them."""
    content = said.content
    if not isinstance(content, list):
        return said, content or ""
    thought = [text(inner, "text") for piece in content for inner in objects(piece, "thinking")]
    words = [text(piece, "text") for piece in content]
    return replace(said, reasoning_content="".join(thought) or said.reasoning_content), "".join(words)


def thinking_of(said: _Said) -> str:
    """What the model thought, by whichever name the server has for it."""
    return said.reasoning_content or said.reasoning or ""


def call_id(call: _Call, answer: str | None, number: int) -> str:
    """The id of a call; where the server gives none, one that no other call of the history has."""
    return call.id or f"{answer or 'call'}-{number}"


def reason_of(said: str | None, parts: Sequence[Part]) -> FinishReason:
    """Why the model stopped. Servers that say `stop` after a tool call mean the call."""
    if any(type(part) is Text and part.extra and REFUSAL in part.extra for part in parts):
        return FinishReason.CONTENT_FILTER
    reason = REASONS.get(said or "", FinishReason.STOP)
    called = any(type(part) is ToolCall for part in parts)
    return FinishReason.TOOL_CALL if called and reason is FinishReason.STOP else reason


def usage_of(body: _Body) -> Usage | None:
    """What the call used, where the server said so."""
    if body.usage is None:
        return None
    usage = group(body.usage)
    read, written = group(usage, "prompt_tokens_details"), group(usage, "completion_tokens_details")
    cost = usage.get("cost")
    return Usage(
        input_tokens=count(usage, "prompt_tokens"),
        output_tokens=count(usage, "completion_tokens"),
        reasoning_tokens=count(written, "reasoning_tokens") if written else 0,
        cache_read_tokens=count(read, "cached_tokens") if read else 0,
        cache_write_tokens=count(read, "cache_write_tokens") if read else 0,
        tokens_per_second=round(rate(group(body.timings), "predicted_per_second"), 2)
        if body.timings
        else 0.0,
        details=_counted(read, written) if read or written else None,
        extra=None if cost is None else {"cost": cost},
    )


def _counted(read: Mapping[str, Any], written: Mapping[str, Any]) -> dict[str, int] | None:
    """What else is counted, and is not nothing."""
    details = {
        "input_audio_tokens": count(read, "audio_tokens"),
        "output_audio_tokens": count(written, "audio_tokens"),
        "accepted_prediction_tokens": count(written, "accepted_prediction_tokens"),
        "rejected_prediction_tokens": count(written, "rejected_prediction_tokens"),
    }
    return {name: counted for name, counted in details.items() if counted} or None


def _call(call: _Call, call_id: str) -> ToolCall:
    function = call.function or _Function()
    return ToolCall(
        call_id,
        function.name or "",
        _arguments(function) or "{}",
        provider_data=None if call.extra_content is None else {MORE: call.extra_content},
    )


def _arguments(function: _Function) -> str:
    """The arguments as text; some servers give the object itself."""
    given = function.arguments
    return given if isinstance(given, str) else "" if given is None else as_text(given)


def _details(details: list[Any] | None) -> dict[str, Any] | None:
    return {DETAILS: details} if details else None
