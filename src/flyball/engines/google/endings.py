"""Why Gemini stopped, as a finish reason or an error; what it used."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from flyball.core.errors import ContentFilterError, IncompleteToolCall, UnexpectedModelBehavior
from flyball.core.messages import FinishReason, Part, Text, ToolCall
from flyball.core.usage import Usage
from flyball.engines.google.reply import Feedback
from flyball.engines.wire.fields import count, group

REASONS = {
    "STOP": FinishReason.STOP,
    "MAX_TOKENS": FinishReason.LENGTH,
    "CONTINUATION": FinishReason.LENGTH,
    "SAFETY": FinishReason.CONTENT_FILTER,
    "RECITATION": FinishReason.CONTENT_FILTER,
    "LANGUAGE": FinishReason.CONTENT_FILTER,
    "BLOCKLIST": FinishReason.CONTENT_FILTER,
    "PROHIBITED_CONTENT": FinishReason.CONTENT_FILTER,
    "SPII": FinishReason.CONTENT_FILTER,
    "ESCALATION": FinishReason.CONTENT_FILTER,
    "MODEL_ARMOR": FinishReason.CONTENT_FILTER,
    "PUP_LIMITED_DISABLED": FinishReason.CONTENT_FILTER,
    "IMAGE_SAFETY": FinishReason.CONTENT_FILTER,
    "IMAGE_PROHIBITED_CONTENT": FinishReason.CONTENT_FILTER,
    "IMAGE_RECITATION": FinishReason.CONTENT_FILTER,
}
BROKEN = frozenset((
    "MALFORMED_FUNCTION_CALL", "MALFORMED_RESPONSE", "UNEXPECTED_TOOL_CALL", "TOO_MANY_TOOL_CALLS",
    "MISSING_THOUGHT_SIGNATURE", "NO_IMAGE", "IMAGE_OTHER",
))  # fmt: skip
"""Reasons after which what was said is no answer."""


def reason_of(said: str, told: str | None, parts: Sequence[Part], provider: str) -> FinishReason:
    """Why the model stopped; a stop after a call means the call.

    A reason that nobody knows is an error, and so is `OTHER`: what was said before it is kept.

    Args:
        said: Google's word for it.
        told: what Google says about it.
        parts: what the model said.
        provider: who errors are about.

    Raises:
        IncompleteToolCall: the model wrote a call that Google could not read.
        UnexpectedModelBehavior: what was said is no answer, or nothing was said and nobody knows why.
    """
    reason = REASONS.get(said, FinishReason.ERROR)
    if said in BROKEN or (reason is FinishReason.ERROR and not parts):
        message = f"{provider} gave no answer: {said}" + (f" ({told})" if told else "")
        body = told or "".join([part.text for part in parts if type(part) is Text])
        if said == "MALFORMED_FUNCTION_CALL":
            raise IncompleteToolCall(message, body=body, reason=said)
        retryable = said != "MISSING_THOUGHT_SIGNATURE"
        raise UnexpectedModelBehavior(message, retryable=retryable, body=body, reason=said)
    if reason is FinishReason.STOP and any(type(part) is ToolCall for part in parts):
        return FinishReason.TOOL_CALL
    return reason


def blocked(feedback: Feedback, provider: str, request_id: str | None) -> ContentFilterError:
    """The error for a prompt that Google does not let through."""
    told = feedback.block_reason_message
    return ContentFilterError(
        f"{provider} blocked the prompt: {feedback.block_reason}" + (f" ({told})" if told else ""),
        body=told or "",
        reason=feedback.block_reason,
        provider=provider,
        request_id=request_id,
    )


def usage_of(told: Any) -> Usage:
    """What was used, as we count: cached tokens are input, thoughts are output."""
    counts = group(told)
    tools, thoughts = count(counts, "toolUsePromptTokenCount"), count(counts, "thoughtsTokenCount")
    details = {
        **_by_kind("input", counts.get("promptTokensDetails")),
        **_by_kind("output", counts.get("candidatesTokensDetails")),
    }
    if tools:
        details["tool_use_prompt_tokens"] = tools
    return Usage(
        input_tokens=count(counts, "promptTokenCount") + tools,
        output_tokens=count(counts, "candidatesTokenCount") + thoughts,
        reasoning_tokens=thoughts,
        cache_read_tokens=count(counts, "cachedContentTokenCount"),
        details=details or None,
    )


def _by_kind(side: str, told: Any) -> dict[str, int]:
    """Tokens by what they are: IMAGE, AUDIO, VIDEO, DOCUMENT; what is no text."""
    kinds = cast("list[Any]", told) if isinstance(told, list) else []
    return {
        f"{side}_{kind.lower()}_tokens": counted
        for one in kinds
        if isinstance(kind := group(one).get("modality"), str)
        and kind not in ("", "TEXT")
        and (counted := count(group(one), "tokenCount"))
    }
