"""Breakpoints of the prompt cache: up to where what is sent is kept, and read again by the next request.

Three of the four that a request may have: after the tools, after the system prompt, after the last message. A
run that goes on then pays the full price for what is new in each turn, and a tenth of it for the rest.
"""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

Cache: TypeAlias = bool | Literal["5m", "1h"]
"""Whether to set breakpoints, and how long what they mark is kept; True is the API's own five minutes."""

_UNMARKED = frozenset(("thinking", "redacted_thinking"))


def put_breakpoints(body: dict[str, Any], cache: Cache) -> None:
    """Mark what is to be kept. Nothing is marked where `cache` is False."""
    if cache is False:
        return
    mark: dict[str, Any] = {"type": "ephemeral"}
    if cache is not True:
        mark["ttl"] = cache
    if "tools" in body:
        body["tools"][-1]["cache_control"] = mark
    if "system" in body:
        body["system"] = [{"type": "text", "text": body["system"], "cache_control": mark}]
    last = body["messages"][-1]
    if isinstance(last["content"], str):
        last["content"] = [{"type": "text", "text": last["content"]}]
    if last["content"][-1]["type"] not in _UNMARKED:
        last["content"][-1]["cache_control"] = mark
