"""Anthropic's wire: the body of an answer, the events of its stream, and a server that gives either."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import msgspec

from flyball.engines.anthropic import AnthropicEngine, MessagesCodec
from flyball.engines.wire.sse import EventReader
from flyball.inference.request import Request, Result
from flyball.inference.stream import Assembler
from tests.engines.loopback import Answer, Loopback, Received, as_json

MODEL = "claude-opus-5-5"
HEADERS = {"request-id": "req_1"}
JSONObject = dict[str, Any]


def text(words: str) -> JSONObject:
    return {"type": "text", "text": words}


def tool_use(name: str, call_id: str = "toolu_1", **arguments: Any) -> JSONObject:
    return {"type": "tool_use", "id": call_id, "name": name, "input": arguments}


def body(*content: JSONObject, stop_reason: str | None = None, **more: Any) -> JSONObject:
    """The body of an answer with these blocks."""
    called = any(block["type"] == "tool_use" for block in content)
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": MODEL,
        "content": list(content),
        "stop_reason": stop_reason or ("tool_use" if called else "end_turn"),
        "stop_sequence": None,
        "usage": {"input_tokens": 10, "output_tokens": 5},
        **more,
    }


def in_half(words: str) -> Iterator[str]:
    yield words[: len(words) // 2]
    yield words[len(words) // 2 :]


def events(whole: JSONObject, cut: Callable[[str], Iterator[str]] = in_half) -> list[JSONObject]:
    """The events of a stream that gives an answer, its texts cut into pieces."""
    counted = whole["usage"]
    opening: JSONObject = {
        **whole,
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "stop_details": None,
    }
    opening["usage"] = {**counted, "output_tokens": 1, "output_tokens_details": None}
    told: list[JSONObject] = [{"type": "message_start", "message": opening}, {"type": "ping"}]
    for index, block in enumerate(whole["content"]):
        told.append({"type": "content_block_start", "index": index, "content_block": _opened(block)})
        told += [
            {"type": "content_block_delta", "index": index, "delta": delta} for delta in _deltas(block, cut)
        ]
        told.append({"type": "content_block_stop", "index": index})
    told.append(
        {
            "type": "message_delta",
            "delta": {key: whole.get(key) for key in ("stop_reason", "stop_sequence", "stop_details")},
            "usage": {
                key: counted[key]
                for key in ("input_tokens", "output_tokens", "server_tool_use", "output_tokens_details")
                if counted.get(key) is not None
            },
        }
    )
    told.append({"type": "message_stop"})
    return told


def _opened(block: JSONObject) -> JSONObject:
    match block["type"]:
        case "text":
            return {**block, "text": "", "citations": [] if block.get("citations") else None}
        case "thinking":
            return {**block, "thinking": "", "signature": ""}
        case "tool_use" | "server_tool_use":
            return {**block, "input": {}}
        case _:
            return block


def _deltas(block: JSONObject, cut: Callable[[str], Iterator[str]]) -> Iterator[JSONObject]:
    match block["type"]:
        case "text":
            yield from ({"type": "text_delta", "text": piece} for piece in cut(block["text"]))
            yield from ({"type": "citations_delta", "citation": one} for one in block.get("citations") or ())
        case "thinking":
            yield from ({"type": "thinking_delta", "thinking": piece} for piece in cut(block["thinking"]))
            yield {"type": "signature_delta", "signature": block["signature"]}
        case "tool_use" | "server_tool_use":
            yield {"type": "input_json_delta", "partial_json": ""}
            said = json.dumps(block["input"], ensure_ascii=False) if block["input"] else ""
            yield from ({"type": "input_json_delta", "partial_json": piece} for piece in cut(said))
        case _:
            return


def framed(told: Sequence[JSONObject]) -> bytes:
    """Events as bytes."""
    return b"".join(
        b"event: " + event["type"].encode() + b"\ndata: " + msgspec.json.encode(event) + b"\n\n"
        for event in told
    )


def pieces(whole: bytes, size: int) -> list[bytes]:
    return [whole[at : at + size] for at in range(0, len(whole), size)]


def sse(*told: JSONObject, chunk: int = 1 << 20, **more: Any) -> Answer:
    """A stream of events, cut after every `chunk` bytes."""
    headers = {"Content-Type": "text/event-stream", **HEADERS}
    return Answer(pieces(framed(told), chunk), headers=headers, **more)


def answering(*answers: JSONObject, chunk: int = 7) -> Callable[[Received], Answer]:
    """A server that gives one answer after the other, streamed to who asks for that; the last for ever."""
    left = list(answers)

    def handle(got: Received) -> Answer:
        told = left.pop(0) if len(left) > 1 else left[0]
        return (
            sse(*events(told), chunk=chunk) if got.json.get("stream") else as_json(told, request_id="req_1")
        )

    return handle


def engine_at(server: Loopback, model: str = MODEL, **more: Any) -> AnthropicEngine:
    return AnthropicEngine(model, base_url=server.url, api_key="sk-secret", **more)


ASKED = Request(())
CODEC = MessagesCodec("https://nowhere", MODEL)


def read_whole(whole: JSONObject) -> Result:
    return CODEC.result(ASKED, msgspec.json.encode(whole), HEADERS)


def read_stream(chunks: Sequence[bytes]) -> Result:
    """What a stream in these chunks gives."""
    cutter, reader, assembler = EventReader(), CODEC.reader(ASKED, HEADERS), Assembler()
    for chunk in chunks:
        for data in cutter.feed(chunk):
            for event in reader.feed(data):
                assembler.feed(event)
    for event in reader.close():
        assembler.feed(event)
    return assembler.result()
