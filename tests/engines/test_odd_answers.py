"""Answers that are not as their vendor says: out comes an answer that can be kept, or an error of ours."""

from __future__ import annotations

from typing import Any, cast

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flyball.core.errors import FlyballError, UnexpectedModelBehavior
from flyball.core.messages import Message
from flyball.engines.anthropic.decode import messages_result
from flyball.engines.google.decode import generated
from flyball.engines.openai.chat.decode import chat_result
from flyball.engines.openai.responses.decode import responses_result
from flyball.inference.request import Result
from tests.engines.every_engine import ENGINES, HELLO, streamed
from tests.engines.loopback import Answer, Loopback

_plain = st.none() | st.booleans() | st.integers(-3, 2**70) | st.floats(allow_nan=False)
_odd = st.recursive(
    _plain | st.sampled_from(["", "12", "x"]),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(st.sampled_from(["text", "type", "a"]), inner, max_size=2)
    ),
    max_leaves=4,
)
_CHAT: dict[str, Any] = {
    "id": "c", "model": "m",
    "choices": [{
        "index": 0, "finish_reason": "stop",
        "message": {"content": "Hi", "reasoning": "Hm", "reasoning_details": [], "tool_calls": [
            {"id": "a", "type": "function", "function": {"name": "look", "arguments": "{}"}},
        ]},
    }],
    "timings": {"predicted_per_second": 2.5},
    "usage": {"prompt_tokens": 3, "completion_tokens": 4, "prompt_tokens_details": {"cached_tokens": 1}},
}  # fmt: skip
_RESPONSES: dict[str, Any] = {
    "id": "r", "model": "m", "status": "completed", "incomplete_details": None,
    "output": [
        {"type": "reasoning", "summary": [{"type": "summary_text", "text": "Hm"}]},
        {"type": "message", "content": [{"type": "output_text", "text": "Hi"}]},
        {"type": "function_call", "call_id": "a", "name": "look", "arguments": "{}"},
    ],
    "usage": {"input_tokens": 3, "output_tokens": 4, "input_tokens_details": {"cached_tokens": 1}},
}  # fmt: skip
_MESSAGES: dict[str, Any] = {
    "id": "m", "model": "m", "stop_reason": "tool_use",
    "content": [
        {"type": "thinking", "thinking": "Hm", "signature": "s"},
        {"type": "text", "text": "Hi"},
        {"type": "tool_use", "id": "a", "name": "look", "input": {}},
    ],
    "usage": {"input_tokens": 2, "cache_read_input_tokens": 1, "output_tokens": 4},
}  # fmt: skip
_GENERATED: dict[str, Any] = {
    "candidates": [{
        "index": 0, "finishReason": "STOP",
        "content": {"parts": [
            {"text": "Hm", "thought": True, "thoughtSignature": "s"},
            {"text": "Hi"},
            {"functionCall": {"id": "a", "name": "look", "args": {}}},
        ]},
    }],
    "usageMetadata": {"promptTokenCount": 3, "candidatesTokenCount": 4},
}  # fmt: skip


def result_of(vendor: str, body: Any) -> Result:
    data = msgspec.json.encode(body)
    match vendor:
        case "chat":
            return chat_result(data, {}, "p", "m")
        case "responses":
            return responses_result(data, {}, "p", "m")
        case "messages":
            return messages_result(data, {}, "p", "m")
        case _:
            return generated(HELLO, data, {}, "p", "m")


BODIES = {"chat": _CHAT, "responses": _RESPONSES, "messages": _MESSAGES, "generated": _GENERATED}


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every place in a JSON value."""
    inner: list[tuple[Any, Any]] = []
    if isinstance(value, dict):
        inner = list(cast("dict[str, Any]", value).items())
    elif isinstance(value, list):
        inner = list(enumerate(cast("list[Any]", value)))
    return [path, *[place for key, one in inner for place in places(one, (*path, key))]]


def changed(value: Any, path: tuple[Any, ...], to: Any) -> Any:
    if not path:
        return to
    copy: Any = value.copy()
    copy[path[0]] = changed(value[path[0]], path[1:], to)
    return copy


@pytest.mark.parametrize("vendor", BODIES)
@given(data=st.data())
def test_whatever_stands_anywhere(vendor: str, data: st.DataObject) -> None:
    body = BODIES[vendor]
    odd = changed(body, data.draw(st.sampled_from(places(body))), data.draw(_odd))
    try:
        message = result_of(vendor, odd).message
    except FlyballError as error:
        assert isinstance(error, UnexpectedModelBehavior) or "error" in odd  # noqa: PT017 - both ways are right
        return
    assert msgspec.json.decode(msgspec.json.encode(message), type=Message) == message
    assert message.usage is None or (message.usage + message.usage).input_tokens >= 0


@pytest.mark.parametrize("vendor", BODIES)
def test_an_answer_is_not_lost_for_a_count(vendor: str) -> None:
    named = {
        "chat": ("usage", "prompt_tokens"),
        "responses": ("usage", "input_tokens"),
        "messages": ("usage", "input_tokens"),
        "generated": ("usageMetadata", "promptTokenCount"),
    }[vendor]
    for told, counted in (("7", 7), (None, 0), (-1, 0)):
        result = result_of(vendor, changed(BODIES[vendor], named, told))
        assert result.message.usage is not None
        cached = result.message.usage.cache_read_tokens if vendor == "messages" else 0
        assert result.message.usage.input_tokens == counted + cached
        assert result.content == "Hi"


@pytest.mark.parametrize("vendor", BODIES)
async def test_an_answer_that_nobody_says_is_whole(vendor: str) -> None:
    """A server that does not stream, and does not say what it sends instead."""
    name = {"messages": "anthropic", "generated": "google"}.get(vendor, vendor)
    body = msgspec.json.encode(BODIES[vendor])
    async with Loopback(lambda _: Answer([body[:9], body[9:]])) as server:
        engine = ENGINES[name](server.url)
        assert (await streamed(engine)).content == "Hi"
        await engine.aclose()


@pytest.mark.parametrize("name", ENGINES)
async def test_a_page_in_the_place_of_a_stream_is_shown(name: str) -> None:
    page = Answer(b"<html>Please log in</html>", headers={"Content-Type": "text/html"})
    async with Loopback(lambda _: page) as server:
        engine = ENGINES[name](server.url)
        with pytest.raises(UnexpectedModelBehavior) as caught:
            await streamed(engine)
        assert "Please log in" in caught.value.body
        await engine.aclose()
