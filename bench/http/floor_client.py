"""The floor: a loop by hand on aiohttp and msgspec, with no more than the work needs."""

from __future__ import annotations

from typing import Any

import aiohttp
import msgspec
from msgspec import Struct

TOOL = {
    "type": "function",
    "function": {
        "name": "add",
        "description": "Add two numbers.",
        "parameters": {
            "type": "object",
            "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
            "required": ["a", "b"],
        },
    },
}


class Function(Struct):
    name: str
    arguments: str


class Call(Struct):
    id: str
    function: Function


class Said(Struct):
    content: str | None = None
    tool_calls: list[Call] | None = None


class Choice(Struct):
    message: Said | None = None
    delta: Said | None = None


class Body(Struct):
    choices: list[Choice]


class Args(Struct):
    a: int
    b: int


HEADERS = {"Content-Type": "application/json", "Authorization": "Bearer sk-nothing"}
encode, decode = msgspec.json.Encoder().encode, msgspec.json.Decoder(Body).decode
arguments = msgspec.json.Decoder(Args).decode


class Client:
    def __init__(self, url: str) -> None:
        self.url = f"{url}/v1/chat/completions"
        self.session = aiohttp.ClientSession()

    async def turns(self) -> None:
        messages: list[dict[str, Any]] = [{"role": "user", "content": "Add the numbers."}]
        while True:
            body = encode({"model": "m", "messages": messages, "tools": [TOOL]})
            async with self.session.post(self.url, data=body, headers=HEADERS) as reply:
                said = decode(await reply.read()).choices[0].message
            assert said is not None
            if not said.tool_calls:
                assert said.content == "The sum is 55."
                return
            calls = [
                {"id": call.id, "type": "function", "function": call.function} for call in said.tool_calls
            ]
            messages.append({"role": "assistant", "tool_calls": calls})
            for call in said.tool_calls:
                args = arguments(call.function.arguments)
                messages.append({"role": "tool", "tool_call_id": call.id, "content": str(args.a + args.b)})

    async def stream(self) -> None:
        body = encode({"model": "m", "messages": [{"role": "user", "content": "Tell."}], "stream": True})
        pieces: list[str] = []
        rest = b""
        async with self.session.post(self.url, data=body, headers=HEADERS) as reply:
            async for chunk in reply.content.iter_any():
                *events, rest = (rest + chunk).split(b"\n\n")
                for event in events:
                    if event != b"data: [DONE]":
                        delta = decode(event[6:]).choices[0].delta
                        if delta is not None and delta.content:
                            pieces.append(delta.content)
        assert len("".join(pieces)) == 5_000

    async def aclose(self) -> None:
        await self.session.close()
