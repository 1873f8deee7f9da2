"""The vendor's own client beside ours, on the same server: it sends what we send, and reads what we read."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest
from anthropic import AsyncAnthropic
from anthropic.types import Message as Theirs
from hypothesis import given

from flyball.core.messages import (
    Document,
    Image,
    Message,
    Role,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    data_url,
    system,
    tool_results,
    user,
)
from flyball.core.settings import ModelSettings
from flyball.core.tools import ToolChoice, ToolDefinition
from flyball.inference.request import OutputObject, Request, Result
from flyball.inference.stream import collect
from tests.effort import examples
from tests.engines.anthropic.strategies import bodies
from tests.engines.anthropic.wire import MODEL, answering, body, engine_at, text
from tests.engines.loopback import Loopback

_ASKED: Any = {"model": MODEL, "max_tokens": 20_000, "messages": [{"role": "user", "content": "Hi"}]}
_REQUEST = Request((user("Hi"),))


def client_at(server: Loopback) -> AsyncAnthropic:
    return AsyncAnthropic(base_url=server.url, api_key="sk-secret", max_retries=0)


async def read_by_both(whole: dict[str, Any]) -> tuple[Theirs, Theirs, Result, Result]:
    """What is read by the client and by us, whole and streamed."""
    async with Loopback(answering(whole, chunk=11)) as server, client_at(server) as client:
        create: Any = client.messages.create
        theirs: Theirs = await create(**_ASKED)
        async with client.messages.stream(**_ASKED) as stream:
            streamed = await stream.get_final_message()
        engine = engine_at(server)
        try:
            return theirs, streamed, await engine.infer(_REQUEST), await collect(engine.stream(_REQUEST))
        finally:
            await engine.aclose()


def seen(message: Theirs) -> Message:
    """The vendor's message in our words."""
    parts: list[Any] = []
    for block in message.content:
        match block.type:
            case "text":
                cited = [one.to_dict() for one in block.citations or ()]
                parts += [Text(block.text, {"citations": cited} if cited else None)] if block.text else []
            case "thinking":
                parts.append(Thinking(block.thinking, block.signature))
            case "tool_use":
                own = None if block.caller is None else {"caller": block.caller.to_dict()}
                args = msgspec.json.encode(block.input).decode()
                parts.append(ToolCall(block.id, block.name, args, provider_data=own))
            case _:
                parts.append(Thinking("", provider_data={"anthropic": block.to_dict()}))
    return Message(Role.ASSISTANT, tuple(parts))


@examples(of_a_hundred=25)
@given(bodies())
def test_what_the_client_reads_is_what_we_read(whole: dict[str, Any]) -> None:
    theirs, streamed, mine, pieces = asyncio.run(read_by_both(whole))
    assert streamed.to_dict(exclude_none=True) == theirs.to_dict(exclude_none=True)
    assert mine == pieces
    assert mine.message.parts == seen(theirs).parts
    usage = theirs.usage
    cached = (usage.cache_read_input_tokens or 0) + (usage.cache_creation_input_tokens or 0)
    assert mine.usage.input_tokens == usage.input_tokens + cached
    assert mine.usage.output_tokens == usage.output_tokens
    assert mine.message.model == theirs.model


_TOOL = {"type": "object", "properties": {"at": {"type": "integer"}}, "required": ["at"]}
_PNG = {"type": "base64", "media_type": "image/png", "data": "iVBORw=="}
_CASES: dict[str, tuple[Request, dict[str, Any]]] = {
    "plain": (_REQUEST, {}),
    "system and stop": (
        Request((system("Be brief."), user("Hi")), settings=ModelSettings(stop=("END",), max_tokens=9)),
        {"system": "Be brief.", "stop_sequences": ["END"], "max_tokens": 9},
    ),
    "media": (
        Request((
            user([
                "Look",
                Image(data_url(b"\x89PNG", "image/png")),
                Image("https://x/y.jpg"),
                Document("https://x/y.pdf", title="Report"),
                Document(data_url(b"words", "text/plain")),
            ]),
        )),
        {
            "messages": [{
                "role": "user",
                "content": [
                    text("Look"),
                    {"type": "image", "source": _PNG},
                    {"type": "image", "source": {"type": "url", "url": "https://x/y.jpg"}},
                    {
                        "type": "document",
                        "source": {"type": "url", "url": "https://x/y.pdf"},
                        "title": "Report",
                    },
                    {
                        "type": "document",
                        "source": {"type": "text", "media_type": "text/plain", "data": "words"},
                    },
                ],
            }]
        },
    ),
    "tools": (
        Request(
            (
                user("Hi"),
                Message(
                    Role.ASSISTANT,
                    (Thinking("Hm.", "c2ln"), ToolCall("a", "look", '{"at": 1}'), ToolCall("b", "look")),
                ),
                tool_results([
                    ToolResult("a", "look", "seen", images=(Image(data_url(b"\x89PNG", "image/png")),)),
                    ToolResult("b", "look", error="no at"),
                ]),
            ),
            (ToolDefinition("look", _TOOL, "Look.", sequential=True),),
            tool_choice=ToolChoice("auto"),
        ),
        {
            "messages": [
                {"role": "user", "content": "Hi"},
                {
                    "role": "assistant",
                    "content": [
                        {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"},
                        {"type": "tool_use", "id": "a", "name": "look", "input": {"at": 1}},
                        {"type": "tool_use", "id": "b", "name": "look", "input": {}},
                    ],
                },
                {
                    "role": "user",
                    "content": [
                        {
                            "type": "tool_result",
                            "tool_use_id": "a",
                            "content": [text("seen"), {"type": "image", "source": _PNG}],
                        },
                        {"type": "tool_result", "tool_use_id": "b", "content": "no at", "is_error": True},
                    ],
                },
            ],
            "tools": [{"name": "look", "description": "Look.", "input_schema": _TOOL}],
            "tool_choice": {"type": "auto", "disable_parallel_tool_use": True},
        },
    ),
    "thinking and a schema": (
        Request(
            (user("Hi"),),
            settings=ModelSettings(thinking=True, reasoning_effort="high"),
            output=OutputObject(_TOOL),
        ),
        {
            "thinking": {"type": "adaptive", "display": "summarized"},
            "output_config": {
                "effort": "high",
                "format": {"type": "json_schema", "schema": {**_TOOL, "additionalProperties": False}},
            },
        },
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", _CASES)
async def test_what_we_send_is_what_the_client_would_send(case: str) -> None:
    request, more = _CASES[case]
    async with Loopback(answering(body(text("So.")))) as server, client_at(server) as client:
        engine = engine_at(server, betas=["x-1", "y-2"])
        await engine.infer(request)
        await collect(engine.stream(request))
        await engine.aclose()
        asked: Any = {**_ASKED, **more, "extra_headers": {"anthropic-beta": "x-1,y-2"}}
        await client.messages.create(**asked)
        async with client.messages.stream(**asked) as stream:
            await stream.until_done()
        whole, streamed, *theirs = server.received
    for mine, other in zip((whole, streamed), theirs, strict=True):
        assert mine.json == other.json
        assert (mine.method, mine.path) == (other.method, other.path)
        for name in ("anthropic-version", "anthropic-beta", "content-type"):
            assert mine.headers[name] == other.headers[name]
    # The client sends its key as a token since its second version; the API takes it either way.
    assert whole.headers["x-api-key"] == "sk-secret"
    assert theirs[0].headers["authorization"] == "Bearer sk-secret"
