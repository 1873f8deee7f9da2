"""What the Messages API answers, whole, as we say it.

A block that has no part of its own here (encrypted thoughts, what the server's own tools did, what is yet to
be invented) is a `Thinking` without words that carries the block, so that it goes back as it came.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Struct

from flyball.core.encodable import as_text
from flyball.core.errors import UnexpectedModelBehavior
from flyball.core.messages import FinishReason, Message, Part, Role, Text, Thinking, ToolCall
from flyball.core.usage import Usage
from flyball.engines.anthropic.turns import BLOCK, CARRIED, CITATIONS
from flyball.engines.wire.failures import request_id_of, stream_failure
from flyball.engines.wire.fields import count, group, text
from flyball.inference.request import Result

REASONS = {
    "end_turn": FinishReason.STOP,
    "stop_sequence": FinishReason.STOP,
    "tool_use": FinishReason.TOOL_CALL,
    "max_tokens": FinishReason.LENGTH,
    # The window is full: what was said is an answer that was cut, as with max_tokens. A prompt that is too
    # long by itself is refused before it begins, and is a ContextExceeded.
    "model_context_window_exceeded": FinishReason.LENGTH,
    # The server's own tools took long: the model would say more, if what it said were sent back.
    "pause_turn": FinishReason.LENGTH,
    "refusal": FinishReason.CONTENT_FILTER,
}
_TOLD = frozenset(("end_turn", "tool_use", "max_tokens"))
"""Reasons that `finish_reason` says all about; others stand in the message's `extra`."""
UNREADABLE = (msgspec.DecodeError, UnicodeError, RecursionError)


class Ending(Struct, frozen=True):
    """Why an answer ended, and what is said of it besides."""

    stop_reason: str | None = None
    stop_sequence: str | None = None
    stop_details: dict[str, Any] | None = None
    container: dict[str, Any] | None = None


class Body(Ending, frozen=True):
    """A message; or an error, in its place."""

    id: str | None = None
    model: str | None = None
    content: list[dict[str, Any]] | None = None
    usage: Any = None
    error: Any = None


_read = msgspec.json.Decoder(Body).decode


def messages_result(data: bytes, headers: Mapping[str, str], provider: str, model: str) -> Result:
    """The answer that a whole body is.

    Raises:
        UnexpectedModelBehavior: it is none.
        FlyballError: it says that the server failed.
    """
    try:
        body = _read(data)
    except UNREADABLE as error:
        raise unreadable(error, data) from error
    request_id = request_id_of(headers)
    if body.error is not None:
        raise stream_failure(body.error, provider=provider, model=model, request_id=request_id)
    if body.content is None or body.stop_reason is None:
        raise UnexpectedModelBehavior(
            f"{provider} gave an answer without a message", body=data[:500].decode("utf-8", "replace")
        )
    message = Message(
        Role.ASSISTANT,
        tuple([part for block in body.content if (part := part_of(block)) is not None]),
        usage=usage_of(body.usage),
        model=body.model or model,
        finish_reason=reason_of(body.stop_reason),
        extra=extra_of(body),
    )
    return Result(message, request_id or body.id)


def unreadable(error: Exception, data: bytes) -> UnexpectedModelBehavior:
    """The error for what is no answer."""
    return UnexpectedModelBehavior(
        f"the server's answer cannot be read: {error}", body=data[:500].decode("utf-8", "replace")
    )


def part_of(block: dict[str, Any]) -> Part | None:
    """The part that a block is; None for one that says nothing."""
    kind = block.get("type")
    if kind == "text":
        cited = block.get(CITATIONS)
        said = text(block, "text")
        return Text(said, {CITATIONS: cited} if cited else None) if said else None
    if kind == "thinking":
        thought, signature = text(block, "thinking"), text(block, "signature") or None
        return Thinking(thought, signature) if thought or signature else None
    if kind == "tool_use":
        given = block.get("input")
        return call_of(block, "{}" if given is None else as_text(given))
    return Thinking("", provider_data={BLOCK: block})


def call_of(block: dict[str, Any], args_json: str) -> ToolCall:
    """The call that a block asks for, with these arguments."""
    own = {key: block[key] for key in CARRIED if block.get(key) is not None}
    return ToolCall(text(block, "id"), text(block, "name"), args_json, provider_data=own or None)


def reason_of(said: str) -> FinishReason:
    """Why the model stopped; a reason that is not known here counts as an end."""
    return REASONS.get(said, FinishReason.STOP)


def usage_of(told: Any) -> Usage | None:
    """What the call used, where the server said so: flyball counts what was cached as part of the input."""
    if not told:
        return None
    usage = group(told)
    read, written = count(usage, "cache_read_input_tokens"), count(usage, "cache_creation_input_tokens")
    counted = {**group(usage, "cache_creation"), **group(usage, "server_tool_use")}
    return Usage(
        input_tokens=count(usage, "input_tokens") + read + written,
        output_tokens=count(usage, "output_tokens"),
        reasoning_tokens=count(group(usage, "output_tokens_details"), "thinking_tokens"),
        cache_read_tokens=read,
        cache_write_tokens=written,
        details={name: found for name in counted if (found := count(counted, name))} or None,
    )


def extra_of(ending: Ending) -> dict[str, Any] | None:
    """What is said of an answer's end and has no place of its own."""
    extra: dict[str, Any] = {}
    if ending.stop_reason not in _TOLD:
        extra["stop_reason"] = ending.stop_reason
    for name in ("stop_sequence", "stop_details", "container"):
        if (value := getattr(ending, name)) is not None:
            extra[name] = value
    return extra or None
