"""gollem's form: its envelopes, how requests are split and grouped, and our messages in it."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from msgspec.structs import replace

from flyball.core.errors import InvalidMessage
from flyball.core.forms import gollem
from flyball.core.messages import (
    Audio,
    Document,
    FinishReason,
    Image,
    Message,
    ResultKind,
    Retry,
    Role,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    assistant,
    system,
    tool_results,
    user,
)
from flyball.core.usage import Usage
from tests.core.forms.ours import gollem_histories

NOW = "2025-01-15T10:30:00Z"
MOMENT = 1736937000.0
ZERO = "0001-01-01T00:00:00Z"


def part(kind: str, **data: Any) -> dict[str, Any]:
    return {"type": kind, "data": data}


def request(*parts: dict[str, Any], at: str = NOW) -> dict[str, Any]:
    return {"kind": "request", "data": {"parts": list(parts), "timestamp": at}}


def response(*parts: dict[str, Any], **changes: Any) -> dict[str, Any]:
    data: dict[str, Any] = {
        "parts": list(parts),
        "usage": {},
        "model_name": "",
        "finish_reason": "",
        "timestamp": NOW,
    }
    return {"kind": "response", "data": data | changes}


def said(text: str, at: str = NOW) -> dict[str, Any]:
    return part("user-prompt", content=text, timestamp=at)


def told(text: str, at: str = NOW) -> dict[str, Any]:
    return part("system-prompt", content=text, timestamp=at)


@given(gollem_histories)
def test_our_messages_come_back(history: list[Message]) -> None:
    assert gollem.decode_messages(gollem.encode_messages(history)) == tuple(history)
    assert gollem.unmarshal_messages(gollem.marshal_messages(history)) == tuple(history)


CONVERSATION: list[dict[str, Any]] = [
    request(told("You are a helpful assistant."), said("Hello!", "2025-01-15T10:30:01Z")),
    response(
        part("text", content="Hi there!"),
        usage={"input_tokens": 10, "output_tokens": 20},
        model_name="test-model",
        finish_reason="stop",
        timestamp="2025-01-15T10:30:02Z",
    ),
    request(said("What is 2+2?")),
    response(
        part("thinking", content="Sum.", signature="sig-abc"),
        part("tool-call", tool_name="calculator", args_json='{"expr": "2+2"}', tool_call_id="call-1"),
        finish_reason="tool_call",
    ),
    request(
        part("tool-return", tool_name="calculator", content={"n": 4}, tool_call_id="call-1", timestamp=NOW),
        part("retry-prompt", content="again", tool_name="search", tool_call_id="tc-1", timestamp=NOW),
    ),
]


def test_a_conversation() -> None:
    messages = gollem.decode_messages(CONVERSATION)
    call = ToolCall("call-1", "calculator", '{"expr": "2+2"}')
    assert messages == (
        replace(system("You are a helpful assistant."), timestamp=MOMENT),
        replace(user("Hello!"), timestamp=MOMENT + 1),
        replace(
            assistant("Hi there!"),
            timestamp=MOMENT + 2,
            usage=Usage(10, 20),
            model="test-model",
            finish_reason=FinishReason.STOP,
        ),
        replace(user("What is 2+2?"), timestamp=MOMENT),
        Message(
            Role.ASSISTANT,
            (Thinking("Sum.", "sig-abc"), call),
            timestamp=MOMENT,
            finish_reason=FinishReason.TOOL_CALL,
        ),
        replace(
            tool_results(
                [
                    ToolResult("call-1", "calculator", {"n": 4}),
                    ToolResult("tc-1", "search", "again", status=ResultKind.RETRY),
                ]
            ),
            timestamp=MOMENT,
        ),
    )
    assert gollem.encode_messages(messages) == CONVERSATION
    assert msgspec.json.decode(gollem.marshal_messages(messages)) == CONVERSATION


def test_all_parts_of_a_request() -> None:
    image = {"URL": "https://x/y.png", "MIMEType": "image/png", "Detail": "low", "Timestamp": ZERO}
    parts = [
        said("look"),
        part("image", url="https://x/y.png", mime_type="image/png", detail="high", timestamp=NOW),
        part("audio", url="data:,", mime_type="audio/wav", timestamp=NOW),
        part("document", url="data:,", mime_type="application/pdf", title="Paper", timestamp=NOW),
        part("retry-prompt", content="no", timestamp=NOW),
        part("tool-return", tool_name="f", content=None, tool_call_id="c", timestamp=NOW, images=[image]),
        told("end"),
    ]
    first, second, third = gollem.decode_request_parts(parts)
    assert first.parts == (
        Text("look"),
        Image("https://x/y.png", "image/png", "high"),
        Audio("data:,", "audio/wav"),
        Document("data:,", "application/pdf", "Paper"),
        Retry("no"),
    )
    assert second.parts == (
        ToolResult("c", "f", None, images=(Image("https://x/y.png", "image/png", "low"),)),
    )
    assert third.text == "end"
    assert gollem.encode_request_parts([first, second, third]) == parts


def test_metadata_of_a_call_is_the_provider_s() -> None:
    document = response(
        part("tool-call", tool_name="f", args_json="", tool_call_id="c", metadata={"thought_signature": "s"})
    )
    message = gollem.decode_model_response(document)
    assert message.tool_calls == (ToolCall("c", "f", "", provider_data={"thought_signature": "s"}),)
    assert gollem.encode_model_response(message) == document
    wild = assistant("", ToolCall("c", "f", provider_data={"k": {"n": 1}}))
    written = gollem.encode_model_response(wild)["data"]["parts"][0]["data"]
    assert written["metadata"] == {"k": '{"n":1}'}


KEPT: list[list[dict[str, Any]]] = [
    [request(told("a")), request(said("b"))],  # apart, though one request could hold both
    [request(said("a")), request(said("b"))],
    [request(said("a")), request(told("b")), request(said("c"), told("d"))],
    [response(part("text", content="x")), request(said("a")), response()],
    [request(said("a", "2025-01-15T10:30:05Z"))],  # the part has another time than its request
    [request(said("a", ZERO), told("b", NOW), at=ZERO)],
    [request(said("a"), said("b", "2025-01-15T10:30:05.123456789+02:00"))],
    [response(timestamp="2025-01-15T12:30:00.000000001+02:00")],
    [response(finish_reason="tired")],
    [request(part("image", url="u", mime_type="", detail="8k", timestamp=NOW))],
    [request(part("retry-prompt", content="no", tool_name="final_result", timestamp=NOW))],
    [request(said("a")) | {"x": 1}, request(said("b") | {"y": 2})],
    [request(said("a") | {"gollem": 3}) | {"gollem": 4}],
    [response() | {"gollem": {"envelope": {}}}],
]


@pytest.mark.parametrize("documents", KEPT, ids=range(len(KEPT)))
def test_what_our_types_have_no_place_for_is_kept(documents: list[dict[str, Any]]) -> None:
    messages = gollem.decode_messages(documents)
    assert gollem.encode_messages(messages) == documents


def test_a_request_that_began_apart_is_noted() -> None:
    first, second = gollem.decode_messages([request(told("a")), request(said("b"))])
    assert (first.extra, second.extra) == (None, {"gollem": {"apart": True}})
    joined = gollem.encode_messages([first, replace(second, extra=None)])
    assert joined == [request(told("a"), said("b"))]


def test_a_request_for_each_message_that_would_melt_into_the_one_before() -> None:
    kinds = [envelope["kind"] for envelope in gollem.encode_messages([user("a"), user("b"), system("c")])]
    assert kinds == ["request", "request"]


def test_unknown_keys_stay_at_their_level() -> None:
    inner = part("text", content="hi", x=1) | {"y": 2}
    document = response(inner, z=3) | {"w": 4}
    message = gollem.decode_model_response(document)
    assert message.parts[0].extra == {"x": 1, "gollem": {"envelope": {"y": 2}}}
    assert message.extra == {"z": 3, "gollem": {"envelope": {"w": 4}}}
    assert gollem.encode_model_response(message) == document


@pytest.mark.parametrize("garbage", [3, "x", None, [], {"timestamp": 3}, {"envelope": 3, "data": "x"}])
def test_notes_that_are_none_do_no_harm(garbage: Any) -> None:
    message = Message(Role.USER, (Text("hi", {"gollem": garbage}),), extra={"gollem": garbage})
    back = gollem.decode_messages(gollem.encode_messages([message]))
    assert [one.text for one in back] == ["hi"]


def test_a_changed_time_is_written_and_not_the_noted_one() -> None:
    message = gollem.decode_model_response(response(timestamp="2025-01-15T12:30:00+02:00"))
    assert message.timestamp == MOMENT
    assert gollem.encode_model_response(message)["data"]["timestamp"] == "2025-01-15T12:30:00+02:00"
    later = replace(message, timestamp=MOMENT + 1)
    assert gollem.encode_model_response(later)["data"]["timestamp"] == "2025-01-15T10:30:01Z"


def test_the_model_reads_what_failed() -> None:
    results = tool_results(
        [
            ToolResult("c", "f", error="broke"),
            ToolResult("d", "f", "no", status=ResultKind.DENIED),
            ToolResult("e", "f", error="wrong", status=ResultKind.RETRY),
        ]
    )
    written = gollem.encode_request_parts([results])
    assert [(one["type"], one["data"]["content"]) for one in written] == [
        ("tool-return", "broke"),
        ("tool-return", "no"),
        ("retry-prompt", "wrong"),
    ]


def test_what_is_missing_is_go_s_zero() -> None:
    documents: Any = [{"kind": "request", "data": {"parts": [{"type": "user-prompt", "data": {}}]}}]
    assert gollem.decode_messages(documents) == (user(""),)
    assert gollem.encode_messages([user("")]) == [request(said("", ZERO), at=ZERO)]
    empty = gollem.decode_model_response({"kind": "response", "data": {}})
    assert empty == Message(Role.ASSISTANT)
    assert gollem.encode_model_response(empty) == response(timestamp=ZERO)


def test_a_request_without_parts_is_dropped() -> None:
    assert gollem.decode_messages([request()]) == ()
    assert gollem.encode_messages([Message(Role.USER)]) == []
    assert gollem.encode_messages([]) == []
    assert gollem.marshal_messages([]) == b"[]"


MALFORMED: list[tuple[Any, str]] = [
    ({}, "messages"),
    ([3], "messages[0]"),
    ([{}], "messages[0].kind"),
    ([{"kind": "unknown", "data": {}}], "messages[0].kind"),
    ([{"kind": "request", "data": "not raw json"}], "messages[0].data"),
    ([{"kind": "request"}], "messages[0].data"),
    ([request(part("unknown"))], "messages[0].data.parts[0].type"),
    ([request(part("text", content="x"))], "messages[0].data.parts[0].type"),
    ([response(said("x"))], "messages[0].data.parts[0].type"),
    ([request({"type": "system-prompt", "data": "bad"})], "messages[0].data.parts[0].data"),
    ([request(said("x", "yesterday"))], "messages[0].data.parts[0].data.timestamp"),
    ([request(said("x"), at="soon")], "messages[0].data.timestamp"),
    ([response(timestamp=3)], "messages[0].data.timestamp"),
    ([response(usage={"input_tokens": "many"})], "messages[0].data.usage.input_tokens"),
    (
        [response(part("tool-call", metadata={"k": 1}))],
        "messages[0].data.parts[0].data.metadata.k",
    ),
    (
        [request(part("tool-return", images=[{"Timestamp": "x"}]))],
        "messages[0].data.parts[0].data.images[0].Timestamp",
    ),
]


@pytest.mark.parametrize(("documents", "where"), MALFORMED)
def test_what_is_malformed_is_placed(documents: Any, where: str) -> None:
    with pytest.raises(InvalidMessage) as caught:
        gollem.decode_messages(documents)
    assert caught.value.details["where"] == where


def test_a_response_is_a_response() -> None:
    with pytest.raises(InvalidMessage, match="response"):
        gollem.decode_model_response(request(said("x")))
    with pytest.raises(InvalidMessage, match="assistant"):
        gollem.encode_model_response(user("x"))
    with pytest.raises(InvalidMessage, match="no part of a request"):
        gollem.encode_request_parts([assistant("x")])


@pytest.mark.parametrize(
    "message",
    [
        Message(Role.ASSISTANT, (Image("https://x/y.png"),)),
        Message(Role.SYSTEM, (Image("https://x/y.png"),)),
        Message(Role.USER, (Thinking("hm"),)),
        Message(Role.TOOL, (Text("x"),)),
        tool_results([ToolResult("c", "f", "x", status=ResultKind.RETRY, images=(Image("u"),))]),
        replace(user("x"), timestamp=1e300),
    ],
)
def test_what_has_no_place_is_refused(message: Message) -> None:
    with pytest.raises(InvalidMessage):
        gollem.encode_messages([message])
