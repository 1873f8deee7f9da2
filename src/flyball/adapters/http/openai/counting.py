"""What was used, as each protocol counts it. All model calls of an agent's run are added up."""

from __future__ import annotations

from typing import Any

from flyball.core.usage import RunUsage


def chat_usage(usage: RunUsage) -> dict[str, Any]:
    """CompletionUsage."""
    return {
        "prompt_tokens": usage.input_tokens,
        "completion_tokens": usage.output_tokens,
        "total_tokens": usage.total_tokens,
        "prompt_tokens_details": {"cached_tokens": usage.cache_read_tokens},
        "completion_tokens_details": {"reasoning_tokens": usage.reasoning_tokens},
    }


def response_usage(usage: RunUsage) -> dict[str, Any]:
    """ResponseUsage."""
    return {
        "input_tokens": usage.input_tokens,
        "input_tokens_details": {
            "cached_tokens": usage.cache_read_tokens,
            "cache_write_tokens": usage.cache_write_tokens,
        },
        "output_tokens": usage.output_tokens,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning_tokens},
        "total_tokens": usage.total_tokens,
    }
