"""The JSON of `generateContent`'s answers, as far as we read it: bodies and chunks are the same thing."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Raw, Struct

from flyball.core.errors import UnexpectedModelBehavior


class _Wire(Struct, frozen=True, rename="camel"):
    pass


class Blob(_Wire, frozen=True):
    """Bytes in base64."""

    mime_type: str | None = None
    data: str | None = None


class FunctionCall(_Wire, frozen=True):
    """What the model wants called."""

    id: str | None = None
    name: str | None = None
    args: Raw = Raw(b"{}")
    partial_args: Any = None
    will_continue: bool | None = None


class ReplyPart(_Wire, frozen=True):
    """A piece of an answer; one of its fields is what it is."""

    text: str | None = None
    thought: bool | None = None
    thought_signature: str | None = None
    function_call: FunctionCall | None = None
    inline_data: Blob | None = None


class Content(_Wire, frozen=True):
    """What was said. `parts` is read again, as it is, where a part is none that we know."""

    parts: list[Raw] | None = None


class Candidate(_Wire, frozen=True):
    """One answer."""

    content: Content | None = None
    finish_reason: str | None = None
    finish_message: str | None = None
    index: int | None = None
    citation_metadata: Any = None
    grounding_metadata: Any = None
    url_context_metadata: Any = None
    logprobs_result: Any = None


class Feedback(_Wire, frozen=True):
    """What Google has against the prompt."""

    block_reason: str | None = None
    block_reason_message: str | None = None


class Reply(_Wire, frozen=True):
    """An answer, or a chunk of one."""

    candidates: list[Candidate] | None = None
    prompt_feedback: Feedback | None = None
    usage_metadata: Any = None
    model_version: str | None = None
    response_id: str | None = None
    error: Any = None


_one = msgspec.json.Decoder(Reply, strict=False).decode
_several = msgspec.json.Decoder(list[Reply], strict=False).decode
_part = msgspec.json.Decoder(ReplyPart, strict=False).decode


def read_replies(data: bytes) -> list[Reply]:
    """What a body, or the data of one event, holds. Without `alt=sse` Google sends all chunks in one list.

    Raises:
        UnexpectedModelBehavior: it cannot be read.
    """
    try:
        return _several(data) if data.lstrip()[:1] == b"[" else [_one(data)]
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise unreadable(data, error) from error


def read_part(data: Raw) -> ReplyPart:
    """A part of an answer.

    Raises:
        UnexpectedModelBehavior: it cannot be read.
    """
    try:
        return _part(data)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise unreadable(bytes(data), error) from error


def unreadable(data: bytes, error: Exception) -> UnexpectedModelBehavior:
    """The error for what is no answer."""
    return UnexpectedModelBehavior(
        f"Gemini's answer cannot be read: {error}", body=data[:500].decode("utf-8", "replace")
    )
