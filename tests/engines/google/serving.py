"""Engines on a server of ours that speaks `generateContent`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flyball.engines.google import GoogleEngine
from tests.engines.loopback import Answer, Loopback, Received, as_json, sse

Replying = Callable[[Received], Any]


def engine_at(server: Loopback, model: str = "gemini-3.8-flash", **options: Any) -> GoogleEngine:
    return GoogleEngine(model, api_key="the-secret-key", base_url=server.url, **options)


def answer(*parts: Any, reason: str = "STOP", **more: Any) -> dict[str, Any]:
    """A whole answer."""
    return {
        "candidates": [
            {"content": {"parts": list(parts), "role": "model"}, "finishReason": reason, "index": 0}
        ],
        "usageMetadata": {"promptTokenCount": 7, "candidatesTokenCount": 5, "totalTokenCount": 12},
        "modelVersion": "gemini-3.8-flash-001",
        "responseId": "resp-1",
        **more,
    }


def replying(reply: Replying, chunk: int | None = 7) -> Callable[[Received], Answer]:
    """Give an answer as it was asked for: whole, or streamed in as many chunks as it has parts."""

    def handle(got: Received) -> Answer:
        whole: dict[str, Any] = reply(got)
        if not got.path.endswith("alt=sse"):
            return as_json(whole)
        (candidate,) = whole["candidates"]
        parts = candidate["content"]["parts"]
        chunks = [{**whole, "candidates": [{"content": {"parts": [part]}, "index": 0}]} for part in parts]
        return sse(
            *chunks[:-1],
            {**whole, "candidates": [{**candidate, "content": {"parts": parts[-1:]}}]},
            ended=False,
            chunk=chunk,
        )

    return handle
