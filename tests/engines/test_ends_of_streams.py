"""An answer that is complete is an answer, whatever its server does to the connection then."""

from __future__ import annotations

from typing import Any, Literal

import pytest

from tests.engines.every_engine import ENGINES, streamed
from tests.engines.loopback import Answer, Loopback, sse

_CHUNK: dict[str, Any] = {
    "id": "c", "choices": [{"index": 0, "delta": {"content": "Hi"}, "finish_reason": "stop"}]
}  # fmt: skip
_ITEM: dict[str, Any] = {"type": "message", "content": [{"type": "output_text", "text": "Hi"}]}
_WHOLE: dict[str, Any] = {"id": "r", "status": "completed", "output": [_ITEM]}
STREAMS = {
    "chat": sse(_CHUNK),
    "compatible": sse(_CHUNK),
    "responses": sse(
        {"type": "response.output_item.done", "output_index": 0, "item": _ITEM},
        {"type": "response.completed", "response": _WHOLE},
        ended=False,
    ),
    "anthropic": sse(
        {"type": "message_start", "message": {"id": "m", "content": []}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Hi"}},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}},
        {"type": "message_stop"},
        ended=False,
    ),
}


@pytest.mark.parametrize("end", ["stall", "reset"])
@pytest.mark.parametrize("name", STREAMS)
async def test_what_comes_after_the_end_is_not_waited_for(name: str, end: Literal["stall", "reset"]) -> None:
    told = STREAMS[name]
    async with Loopback(lambda _: Answer(told.body, headers=told.headers, end=end)) as server:
        engine = ENGINES[name](server.url)
        assert (await streamed(engine)).content == "Hi"
        await engine.aclose()


@pytest.mark.parametrize("name", STREAMS)
async def test_a_connection_serves_stream_after_stream(name: str) -> None:
    async with Loopback(lambda _: STREAMS[name]) as server:
        engine = ENGINES[name](server.url)
        for _ in range(3):
            await streamed(engine)
        assert server.connections == 1
        await engine.aclose()
