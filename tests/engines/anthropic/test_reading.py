"""Answers, whole and in pieces: the same, however a stream is cut."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flyball.core.errors import ContextExceeded, EngineError, ModelHTTPError, UnexpectedModelBehavior
from flyball.core.messages import FinishReason, Message, Role, Text, Thinking, ToolCall, user
from flyball.core.usage import Usage
from flyball.engines.anthropic.encode import messages_body
from flyball.inference.request import Request
from flyball.inference.stream import PartEnd, TextDelta
from tests.engines.anthropic.strategies import bodies
from tests.engines.anthropic.wire import (
    ASKED,
    CODEC,
    HEADERS,
    MODEL,
    body,
    events,
    framed,
    in_half,
    pieces,
    read_stream,
    read_whole,
    text,
    tool_use,
)


def _every(size: int) -> Callable[[str], Iterator[str]]:
    return lambda words: iter([words[at : at + size] for at in range(0, len(words), size)])


@given(bodies(), st.integers(1, 5), st.data())
def test_a_stream_gives_the_whole_answer_however_it_is_cut(
    whole: dict[str, Any], size: int, data: st.DataObject
) -> None:
    stream = framed(events(whole, _every(size)))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=8)))
    chunks = [stream[start:end] for start, end in zip([0, *cuts], [*cuts, len(stream)], strict=True)]
    assert read_stream(chunks) == read_whole(whole)


@given(bodies())
def test_what_the_model_said_goes_back_as_it_came(whole: dict[str, Any]) -> None:
    said = read_whole({**whole, "stop_reason": "end_turn"}).message
    sent = messages_body(Request((user("Hi"), said)), MODEL, stream=False)["messages"][1:]
    content: Any = sent[0]["content"] if sent else []
    told = [text(content)] if isinstance(content, str) else content
    came = [block for block in whole["content"] if block.get("text", "x").strip()]
    while came and came[-1]["type"] in ("thinking", "redacted_thinking"):
        came.pop()
    if came and came[-1]["type"] == "text":
        came[-1] = {**came[-1], "text": came[-1]["text"].rstrip()}
    used: set[str] = set()
    for mine, theirs in zip(told, came, strict=True):
        if theirs["type"] == "tool_use" and theirs["id"] in used:
            mine.pop("id")
            theirs = {key: value for key, value in theirs.items() if key != "id"}  # noqa: PLW2901
        used.add(theirs.get("id", ""))
        assert mine == {key: value for key, value in theirs.items() if value is not None} or mine == theirs


def test_an_answer_with_everything() -> None:
    whole = body(
        {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"},
        {"type": "redacted_thinking", "data": "ZW5j"},
        text("So."),
        tool_use("look", at=1),
        tool_use("look", "toolu_2"),
        usage={
            "input_tokens": 10,
            "output_tokens": 5,
            "cache_read_input_tokens": 100,
            "cache_creation_input_tokens": 20,
            "cache_creation": {"ephemeral_5m_input_tokens": 20, "ephemeral_1h_input_tokens": 0},
            "output_tokens_details": {"thinking_tokens": 3},
            "service_tier": "standard",
        },
    )
    result = read_whole(whole)
    assert result.message == Message(
        Role.ASSISTANT,
        (
            Thinking("Hm.", "c2ln"),
            Thinking("", provider_data={"anthropic": {"type": "redacted_thinking", "data": "ZW5j"}}),
            Text("So."),
            ToolCall("toolu_1", "look", '{"at":1}'),
            ToolCall("toolu_2", "look"),
        ),
        usage=Usage(
            input_tokens=130,
            output_tokens=5,
            reasoning_tokens=3,
            cache_read_tokens=100,
            cache_write_tokens=20,
            details={"ephemeral_5m_input_tokens": 20},
        ),
        model=MODEL,
        finish_reason=FinishReason.TOOL_CALL,
    )
    assert result.request_id == "req_1"
    assert read_stream([framed(events(whole))]) == result


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ("end_turn", FinishReason.STOP),
        ("stop_sequence", FinishReason.STOP),
        ("tool_use", FinishReason.TOOL_CALL),
        ("max_tokens", FinishReason.LENGTH),
        ("pause_turn", FinishReason.LENGTH),
        ("model_context_window_exceeded", FinishReason.LENGTH),
        ("refusal", FinishReason.CONTENT_FILTER),
        ("something_new", FinishReason.STOP),
    ],
)
def test_why_it_stopped(said: str, reason: FinishReason) -> None:
    message = read_whole(body(text("So."), stop_reason=said)).message
    assert message.finish_reason is reason
    ordinary = said in ("end_turn", "tool_use", "max_tokens")
    assert message.extra == (None if ordinary else {"stop_reason": said})


def test_a_refusal_says_why() -> None:
    details = {"type": "refusal", "category": "bio", "explanation": "No."}
    whole = body(stop_reason="refusal", stop_details=details)
    result = read_whole(whole)
    assert result.message.parts == ()
    assert result.message.extra == {"stop_reason": "refusal", "stop_details": details}
    assert read_stream([framed(events(whole))]) == result


def test_arguments_that_are_cut_stay_as_the_model_wrote_them() -> None:
    told = events(body(tool_use("look", at=1), stop_reason="max_tokens"))
    cut = [event for event in told if not event.get("delta", {}).get("partial_json", "").endswith("}")]
    assert read_stream([framed(cut)]).tool_calls[0].args_json == '{"at'


def test_a_server_that_gives_arguments_at_once() -> None:
    start = {"type": "content_block_start", "index": 0, "content_block": tool_use("look", at=1)}
    told = [event for event in events(body(tool_use("look", at=1))) if event["type"] != "content_block_delta"]
    told[2] = start
    assert read_stream([framed(told)]).tool_calls == (ToolCall("toolu_1", "look", '{"at":1}'),)


def test_events_blocks_and_pieces_that_are_not_known() -> None:
    told = events(body({"type": "hologram", "light": 1}, text("So.")))
    told.insert(2, {"type": "weather", "index": 7})
    known = read_stream([framed(told)]).message.parts
    assert known == (
        Thinking("", provider_data={"anthropic": {"type": "hologram", "light": 1}}),
        Text("So."),
    )
    # A block of which a piece was not understood is not kept: half of it must not go back.
    for delta in ({"type": "beam_delta", "beam": "x"}, {"type": "text_delta", "text": "x"}):
        odd = list(told)
        odd.insert(4, {"type": "content_block_delta", "index": 0, "delta": delta})
        assert read_stream([framed(odd)]).message.parts == (Text("So."),)


def test_a_servers_own_call_whose_arguments_are_cut_is_not_kept() -> None:
    block = {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {"query": "x"}}
    told = events(body(block, text("So.")))
    cut = [event for event in told if not event.get("delta", {}).get("partial_json", "").endswith("}")]
    assert read_stream([framed(cut)]).message.parts == (Text("So."),)


def test_pieces_come_as_they_are_and_are_not_said_twice() -> None:
    reader = CODEC.reader(ASKED, HEADERS)
    made = [event for told in events(body(text("So."))) for event in reader.feed(msgspec.json.encode(told))]
    assert made == [TextDelta(0, "S"), TextDelta(0, "o."), PartEnd(0)]


@pytest.mark.parametrize("left", range(1, 8))
def test_a_stream_that_is_not_ended_is_an_error(left: int) -> None:
    told = events(body(text("So.")))
    assert len(told) == 8
    with pytest.raises(UnexpectedModelBehavior, match="ended the stream before the answer was over"):
        read_stream([framed(told[:left])])


@pytest.mark.parametrize(
    ("kind", "error", "status"),
    [
        ("overloaded_error", ModelHTTPError, 529),
        ("rate_limit_error", ModelHTTPError, 429),
        ("api_error", ModelHTTPError, 500),
        ("invalid_request_error", ModelHTTPError, 0),
    ],
)
def test_errors_in_the_middle_of_a_stream(kind: str, error: type[EngineError], status: int) -> None:
    told = events(body(text("So.")))[:4]
    told.append({"type": "error", "error": {"type": kind, "message": "It went wrong."}})
    with pytest.raises(error, match=r"broke off its answer.*It went wrong") as caught:
        read_stream([framed(told)])
    assert caught.value.retryable
    assert caught.value.details["status_code"] == status
    assert caught.value.details["request_id"] == "req_1"


def test_an_error_in_place_of_an_answer() -> None:
    told = {"type": "error", "error": {"type": "api_error", "message": "prompt is too long: 9 > 8"}}
    with pytest.raises(ContextExceeded):
        read_whole(told)
    with pytest.raises(ContextExceeded):
        read_stream([framed([told])])


@pytest.mark.parametrize(
    "data", [b"", b"{", b"[]", b'"x"', b"\xff", b'{"content": 1}', b'{"content": []}', b"{}"]
)
def test_what_is_no_answer(data: bytes) -> None:
    with pytest.raises(UnexpectedModelBehavior):
        CODEC.result(ASKED, data, HEADERS)


@pytest.mark.parametrize("data", [b"{", b"[]", b"\xff", b'{"type": "message_start", "message": 1}'])
def test_what_is_no_event(data: bytes) -> None:
    with pytest.raises(UnexpectedModelBehavior, match="cannot be read"):
        CODEC.reader(ASKED, HEADERS).feed(data)


def test_chunks_of_one_byte() -> None:
    whole = body(text("漢字 🙂"), tool_use("look", was="é"))
    assert read_stream(pieces(framed(events(whole, in_half)), 1)) == read_whole(whole)
