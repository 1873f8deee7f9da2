"""An OpenAI-compatible server that answers at once: ten tool calls, one a turn, then a text; or 1,000 chunks.

It runs in a process of its own (`python server.py`) and prints its port. It parses no more than it must, so
that it is never what is waited for.
"""

from __future__ import annotations

import asyncio
import json
import sys

TURNS = 10
CHUNKS = 1_000
TEXT = "The sum is 55."


def completion(message: dict[str, object], reason: str) -> bytes:
    choice = {
        "index": 0,
        "message": {"role": "assistant", "refusal": None, **message},
        "finish_reason": reason,
    }
    usage = {"prompt_tokens": 50, "completion_tokens": 10, "total_tokens": 60}
    head = {"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "m"}
    data = json.dumps({**head, "choices": [choice], "usage": usage}).encode()
    return b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%s" % (
        len(data),
        data,
    )


def stream() -> bytes:
    head = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    chunks = [
        {**head, "choices": [{"index": 0, "delta": {"content": "word "}, "finish_reason": None}]}
    ] * CHUNKS
    end = {**head, "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}
    events = [b"data: " + json.dumps(chunk).encode() + b"\n\n" for chunk in [*chunks, end]]
    # Eight events a piece: what a fast server's writes come to.
    pieces = [b"".join(events[at : at + 8]) for at in range(0, len(events), 8)] + [b"data: [DONE]\n\n"]
    body = b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces) + b"0\r\n\r\n"
    return b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n" + body


CALLS = [
    completion(
        {
            "content": None,
            "tool_calls": [
                {
                    "id": f"call_{turn}",
                    "type": "function",
                    "function": {"name": "add", "arguments": json.dumps({"a": turn, "b": 1})},
                }
            ],
        },
        "tool_calls",
    )
    for turn in range(TURNS)
]
LAST = completion({"content": TEXT}, "stop")
STREAM = stream()


class Answering(asyncio.Protocol):
    """Answers each request as soon as it is whole."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self.buffer = b""

    def data_received(self, data: bytes) -> None:
        self.buffer += data
        while True:
            head, found, rest = self.buffer.partition(b"\r\n\r\n")
            if not found:
                return
            lower = head.lower()
            at = lower.find(b"content-length:")
            length = int(lower[at + 15 :].split(b"\r\n", 1)[0]) if at >= 0 else 0
            if len(rest) < length:
                return
            body, self.buffer = rest[:length], rest[length:]
            self.transport.write(answer(body))


def answer(body: bytes) -> bytes:
    """The reply to a request's body."""
    tight = body.replace(b" ", b"") if b'"role": ' in body else body
    if b'"stream":true' in tight:
        return STREAM
    turn = tight.count(b'"role":"tool"')
    return CALLS[turn] if turn < TURNS else LAST


async def main() -> None:
    server = await asyncio.get_running_loop().create_server(Answering, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(main())
