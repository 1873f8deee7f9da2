"""Requests as llama.cpp takes them, and what it answers as stream events. Nothing here moves a byte."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from hashlib import blake2b
from typing import Any

import msgspec

from flyball.constraint.protocol import AnswerParser, Rendered, ToolProtocol
from flyball.core.messages import FinishReason, ToolCall
from flyball.core.usage import Usage, in_steps
from flyball.inference.request import Request
from flyball.inference.stream import Finish, PartEnd, PartStart, StreamEvent, ThinkingDelta

MAX_TOKENS = 2_048
"""Tokens of an answer where the request says nothing: a small model may go on for ever."""

CHOICE = "choice"
"""Where a message has what was chosen before its turn: it belongs to the record of it."""
SENT = "sent"
"""Where a message has the fingerprint of what the model was given for it."""

TEMPERATURE = 0.2
"""Where the request says nothing. llama.cpp's own, 0.8, has a small model contradict what its tools say."""

_REASONS = {"stop": FinishReason.STOP, "length": FinishReason.LENGTH, "tool_calls": FinishReason.STOP}

_OURS = {
    "stream": True,
    "stream_options": {"include_usage": True},
    # Between the batches of a prompt it says how far it is: that is when a call can be given up.
    "return_progress": True,
    "cache_prompt": True,
}


def call_body(request: Request, rendered: Rendered) -> dict[str, Any]:
    """The body of a call. What is unset but for length and temperature is left to llama.cpp.

    `options` goes over all but ours.
    """
    settings = request.settings
    body: dict[str, Any] = {
        "messages": list(rendered.messages),
        "max_tokens": settings.max_tokens or MAX_TOKENS,
    }
    temperature = settings.effective_temperature
    said = {
        "temperature": TEMPERATURE if temperature is None else temperature,
        "top_p": settings.top_p,
        "seed": settings.seed,
        "stop": list(settings.stop) or None,
        "chat_template_kwargs": _template_settings(request) or None,
    }
    body.update({key: value for key, value in said.items() if value is not None})
    if rendered.grammar:
        body["grammar"] = rendered.grammar
    return body | (rendered.body or {}) | (settings.options or {}) | _OURS


def fingerprint(bodies: Sequence[dict[str, Any]]) -> str:
    """A short hash of what was sent for a turn, by which it is known again."""
    return blake2b(msgspec.json.encode(bodies, order="sorted"), digest_size=8).hexdigest()


def _template_settings(request: Request) -> dict[str, Any]:
    settings = request.settings
    said: dict[str, Any] = {}
    if settings.thinking is not None:
        said["enable_thinking"] = settings.thinking
    if settings.reasoning_effort is not None:
        said["reasoning_effort"] = settings.reasoning_effort
    return said


class AnswerReader:
    """Joins the chunks of one answer into stream events.

    `sent` is the fingerprint of what the model was given. `choice` is what the question before it came to,
    if there was one, and `before` what that used.
    """

    def __init__(
        self,
        request: Request,
        protocol: ToolProtocol,
        *,
        model: str,
        context: int,
        sent: str,
        choice: str | None = None,
        before: Usage | None = None,
    ) -> None:
        self._request = request
        self._extra: dict[str, Any] = {SENT: sent} if choice is None else {SENT: sent, CHOICE: choice}
        self._choice = choice
        self._before = before
        self._protocol = protocol
        self._model = model
        self._context = context
        self._parser: AnswerParser | None = None
        self._thinks = False
        self._calls = False
        self._reason = FinishReason.STOP
        self._usage: Usage | None = None

    def feed(self, chunk: dict[str, Any]) -> Iterator[StreamEvent]:
        """The events of a chunk."""
        thinking: str | None = chunk.get("thinking")
        if thinking and self._parser is None:
            self._thinks = True
            yield ThinkingDelta(0, thinking)
        text: str | None = chunk.get("text")
        if text:
            if self._parser is None:
                yield from self._begin()
            assert self._parser is not None
            yield from self._noted(self._parser.feed(text))
        self._reason = _REASONS.get(chunk.get("reason", ""), self._reason)
        if "usage" in chunk:
            self._usage = usage_of(chunk["usage"], chunk.get("timings", {}), self._context)

    def close(self) -> Iterator[StreamEvent]:
        """The events that are left, and the `Finish`."""
        if self._parser is None:
            yield from self._begin()
        assert self._parser is not None
        yield from self._noted(self._parser.close(self._reason))
        calls = self._calls and self._reason is FinishReason.STOP
        yield Finish(
            usage=in_steps(self._before, self._usage),
            model=self._model,
            finish_reason=FinishReason.TOOL_CALL if calls else self._reason,
            extra=self._extra,
        )

    def _begin(self) -> Iterator[StreamEvent]:
        self._parser = self._protocol.parser(self._request, 1 if self._thinks else 0, self._choice)
        if self._thinks:
            yield PartEnd(0)

    def _noted(self, events: Any) -> Iterator[StreamEvent]:
        for event in events:
            if type(event) is PartStart and type(event.part) is ToolCall:
                self._calls = True
            yield event


def usage_of(usage: dict[str, Any], timings: dict[str, Any], context: int) -> Usage:
    """What a call used."""
    # The first token comes with the prompt: the speed of one alone says nothing.
    details: dict[str, Any] = usage.get("prompt_tokens_details") or {}
    measured = timings.get("predicted_n", 0) > 1
    return Usage(
        input_tokens=usage.get("prompt_tokens", 0),
        output_tokens=usage.get("completion_tokens", 0),
        cache_read_tokens=details.get("cached_tokens", 0),
        context_tokens=usage.get("total_tokens", 0),
        context_window=context,
        tokens_per_second=round(float(timings.get("predicted_per_second", 0.0)), 2) if measured else 0.0,
    )
