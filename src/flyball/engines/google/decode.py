"""What Gemini answers, as we say it. A whole body is a stream of one chunk: there is one way to read both."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

import msgspec
from msgspec import Raw

from flyball.core.errors import FlyballError, UnexpectedModelBehavior
from flyball.core.messages import Audio, Image, Message, Part, Text, Thinking, ToolCall
from flyball.core.usage import Usage
from flyball.engines.google.endings import blocked, reason_of, usage_of
from flyball.engines.google.marks import KEY, SIGNATURE, mark
from flyball.engines.google.reply import Blob, Candidate, FunctionCall, Reply, read_part, read_replies
from flyball.engines.wire.failures import request_id_of, stream_failure
from flyball.inference.request import Request, Result
from flyball.inference.stream import (
    Assembler,
    Finish,
    PartEnd,
    PartStart,
    StreamEvent,
    TextDelta,
    ThinkingDelta,
)

_DONE = b"[DONE]"
_THOUGHT = Thinking("", provider_data=mark(thought=True))
_SAID = Text("")
_BESIDE = {
    "citation_metadata": "citationMetadata",
    "grounding_metadata": "groundingMetadata",
    "url_context_metadata": "urlContextMetadata",
    "logprobs_result": "logprobsResult",
}
"""What Google says of an answer, besides."""


def generated(request: Request, body: bytes, headers: Mapping[str, str], provider: str, model: str) -> Result:
    """The answer that a whole body is.

    Raises:
        ContentFilterError: the prompt was blocked.
        UnexpectedModelBehavior: it is none.
        FlyballError: it says that Google failed.
    """
    reader, assembler = GoogleReader(request, headers, provider, model), Assembler()
    for event in (*reader.feed(body), *reader.close()):
        assembler.feed(event)
    return assembler.result()


class GoogleReader:
    """Makes the events of an answer from the chunks of its stream.

    Texts that follow each other are one part, and so are thoughts; a part with a signature is its own,
    because the signature has to go back in its place.
    """

    def __init__(self, request: Request, headers: Mapping[str, str], provider: str, model: str) -> None:
        self._messages: Sequence[Message] = request.messages
        self._provider, self._model = provider, model
        self._request_id = request_id_of(headers)
        self._id: str | None = None
        self._parts: list[Part] = []
        """What each part began as."""
        self._open: Part | None = None
        """The part that words may still be added to."""
        self._ids: set[str] | None = None
        self._reason: str | None = None
        self._told: str | None = None
        self._usage: Usage | None = None
        self._extra: dict[str, Any] = {}

    @property
    def ended(self) -> bool:
        """See `StreamReader.ended`: Gemini has no word for it."""
        return False

    def feed(self, data: bytes) -> Sequence[StreamEvent]:
        """See `StreamReader.feed`."""
        if data == _DONE:
            return ()
        events: list[StreamEvent] = []
        for reply in read_replies(data):
            self._take(reply, events)
        return events

    def close(self) -> Sequence[StreamEvent]:
        """See `StreamReader.close`."""
        if self._reason is None:
            raise UnexpectedModelBehavior(
                f"{self._provider} ended the answer before it was over", body="", model=self._model
            )
        reason = reason_of(self._reason, self._told, self._parts, self._provider)
        events: list[StreamEvent] = []
        self._end(events)
        events.append(
            Finish(
                usage=self._usage,
                model=self._model,
                finish_reason=reason,
                request_id=self._request_id or self._id,
                extra={KEY: self._extra} if self._extra else None,
            )
        )
        return events

    def _take(self, reply: Reply, events: list[StreamEvent]) -> None:
        if reply.error is not None:
            raise self._failure(reply.error)
        self._id = self._id or reply.response_id
        if reply.model_version:
            self._model = reply.model_version
        if reply.usage_metadata is not None:
            self._usage = usage_of(reply.usage_metadata)
        if reply.prompt_feedback is not None and reply.prompt_feedback.block_reason:
            raise blocked(reply.prompt_feedback, self._provider, self._request_id or self._id)
        for candidate in reply.candidates or ():
            if not candidate.index:  # of several answers, the first
                self._candidate(candidate, events)

    def _candidate(self, candidate: Candidate, events: list[StreamEvent]) -> None:
        if candidate.content is not None:
            for part in candidate.content.parts or ():
                self._part(part, events)
        if candidate.finish_reason is not None:
            self._reason = candidate.finish_reason
        if candidate.finish_message is not None:
            self._told = candidate.finish_message
        for name, key in _BESIDE.items():
            if (told := getattr(candidate, name)) is not None:
                self._extra[key] = told

    def _part(self, data: Raw, events: list[StreamEvent]) -> None:
        part = read_part(data)
        signature = part.thought_signature or None
        if part.function_call is not None:
            self._whole(self._call(part.function_call, signature), events)
        elif (
            part.inline_data is not None
            and (media := _media(part.inline_data, signature))
            and not part.thought
        ):
            self._whole(media, events)
        elif part.text is None and _has_more(data):
            kept: dict[str, Any] = msgspec.json.decode(data)
            kept.pop(SIGNATURE, None)
            self._whole(Thinking("", signature, mark(part=kept)), events)
        elif signature is None:
            if part.text:
                self._words(part.text, events, thought=bool(part.thought))
        elif part.thought or not part.text:
            self._whole(Thinking(part.text or "", signature, mark(thought=bool(part.thought))), events)
        else:
            self._whole(Text(part.text, mark(thoughtSignature=signature)), events)

    def _words(self, text: str, events: list[StreamEvent], *, thought: bool) -> None:
        begin = _THOUGHT if thought else _SAID
        if self._open is not begin:
            self._end(events)
            events.append(PartStart(len(self._parts), begin))
            self._parts.append(begin)
            self._open = begin
        at = len(self._parts) - 1
        events.append(ThinkingDelta(at, text) if thought else TextDelta(at, text))

    def _whole(self, part: Part, events: list[StreamEvent]) -> None:
        self._end(events)
        at = len(self._parts)
        self._parts.append(part)
        events += [PartStart(at, part), PartEnd(at)]

    def _end(self, events: list[StreamEvent]) -> None:
        if self._open is not None:
            self._open = None
            events.append(PartEnd(len(self._parts) - 1))

    def _call(self, call: FunctionCall, signature: str | None) -> ToolCall:
        if call.partial_args is not None or call.will_continue:
            raise UnexpectedModelBehavior(
                f"{self._provider} gave the arguments of {call.name!r} in pieces, which is not read: leave "
                "streamFunctionCallArguments out of the options",
                retryable=False,
                body="",
            )
        args = msgspec.json.format(bytes(call.args), indent=-1)
        return ToolCall(
            self._call_id(call.id),
            call.name or "",
            "{}" if args == b"null" else args.decode("utf-8"),
            provider_data=mark(id=call.id or None, thoughtSignature=signature),
        )

    def _call_id(self, given: str | None) -> str:
        """The id of a call: Gemini's own, or one that follows from the answer; no other of the history's."""
        if self._ids is None:
            self._ids = {call.id for message in self._messages for call in message.tool_calls}
        number = sum(type(part) is ToolCall for part in self._parts)
        found = given or (f"{self._id}-{number}" if self._id else "")
        number = len(self._ids)
        while not found or found in self._ids:
            found = f"call_{number}"
            number += 1
        self._ids.add(found)
        return found

    def _failure(self, error: Any) -> FlyballError:
        code = cast("dict[str, Any]", error).get("code") if isinstance(error, dict) else None
        return stream_failure(
            {"error": error},
            provider=self._provider,
            model=self._model,
            request_id=self._request_id or self._id,
            status=code if isinstance(code, int) else 0,
        )


def _media(blob: Blob, signature: str | None) -> Image | Audio | None:
    kind = blob.mime_type or ""
    url = f"data:{kind};base64,{blob.data or ''}"
    if kind.startswith("image/"):
        return Image(url, kind, extra=mark(thoughtSignature=signature))
    return Audio(url, kind, extra=mark(thoughtSignature=signature)) if kind.startswith("audio/") else None


def _has_more(data: Raw) -> bool:
    """Whether a part says anything but that it is a thought, and signed."""
    told: dict[str, Any] = msgspec.json.decode(data)
    return bool(told.keys() - {"thought", SIGNATURE})
