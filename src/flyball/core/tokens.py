"""How many tokens messages come to, roughly: what is known of them before a model has counted.

Three rules of thumb, by name: `by_words`, `by_characters`, `by_bytes`. Each is a `TokenEstimator`, and so is
any function from a text to a number, such as a tokenizer's. A provider's own count is better where there is
one: whoever has it takes the larger of both.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import ceil
from typing import Protocol

from flyball.core.messages import Message, Part, ToolCall, ToolResult

BYTES_PER_TOKEN = 4
"""How many bytes of text are counted as a token."""
CHARACTERS_PER_TOKEN = 4
"""How many characters of text are counted as a token."""
TOKENS_PER_TEN_WORDS = 13
"""How many tokens are counted for ten words: 1.3 for each."""
MEDIA_TOKENS = 1_000
"""What an image, a sound or a document is counted as: no provider says it before it has looked."""


class TokenEstimator(Protocol):
    """Says how many tokens a text has. It must be sure to give the same number for the same text."""

    def __call__(self, text: str, /) -> float:
        """The tokens of a text, never less than 0."""
        ...


def by_words(text: str, /) -> int:
    """1.3 tokens a word. Good for prose; what has no spaces (JSON, Chinese) is counted far too low."""
    return -(-len(text.split()) * TOKENS_PER_TEN_WORDS // 10)


def by_characters(text: str, /) -> int:
    """A token for four characters."""
    return -(-len(text) // CHARACTERS_PER_TOKEN)


def by_bytes(text: str, /) -> int:
    """A token for four bytes: as by characters for English, and nearer the truth for other scripts."""
    size = len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))
    return -(-size // BYTES_PER_TOKEN)


def estimate_tokens(messages: Iterable[Message], estimator: TokenEstimator = by_bytes) -> int:
    """How many tokens messages have: all that is sent of them, calls and results too; media by a constant.

    An estimator may give fractions: they are rounded up in the end.
    """
    return ceil(sum([_of_part(part, estimator) for message in messages for part in message.parts]))


def _of_part(part: Part, estimator: TokenEstimator) -> float:
    if isinstance(part, ToolCall):
        return estimator(part.name) + estimator(part.args_json)
    if isinstance(part, ToolResult):
        return estimator(part.name) + estimator(part.text) + MEDIA_TOKENS * len(part.images)
    text: str | None = getattr(part, "text", None)
    return MEDIA_TOKENS if text is None else estimator(text)
