"""What a Chat Completions server says is read as the vendor's own client reads it, whole and in pieces."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from openai.lib.streaming.chat._completions import ChatCompletionStreamState
from openai.types.chat import ChatCompletion, ChatCompletionChunk

from flyball.core.errors import ContextExceeded, ModelHTTPError, UnexpectedModelBehavior
from flyball.core.messages import FinishReason, Message, Text, Thinking, ToolCall
from flyball.engines.openai.chat.decode import ChatReader, chat_result, merged
from flyball.engines.openai.chat.encode import chat_messages
from flyball.engines.openai.dialect import OPENROUTER
from flyball.inference.request import Result
from flyball.inference.stream import Assembler
from tests.engines.openai.answers import chunks_of, completion, messages, usage

HEADERS = {"x-request-id": "req_1"}


def read(chunks: list[Any], ended: bool = True) -> Result:
    reader, joined = ChatReader(HEADERS, "openai", "gpt-4o"), Assembler()
    for chunk in chunks:
        for event in reader.feed(chunk if isinstance(chunk, bytes) else msgspec.json.encode(chunk)):
            joined.feed(event)
    if ended:
        assert list(reader.feed(b"[DONE]")) == []
    for event in reader.close():
        joined.feed(event)
    return joined.result()


def whole(body: Any) -> Result:
    return chat_result(msgspec.json.encode(body), HEADERS, "openai", "gpt-4o")


@given(data=st.data(), message=messages(), reason=st.sampled_from(["stop", "length", "tool_calls"]))
def test_a_stream_is_the_same_answer(data: st.DataObject, message: dict[str, Any], reason: str) -> None:
    chunks = data.draw(chunks_of(message, reason))
    assert read(chunks) == whole(completion(message, reason))


@given(data=st.data(), message=messages())
def test_the_vendors_client_reads_the_same(data: st.DataObject, message: dict[str, Any]) -> None:
    chunks = data.draw(chunks_of(message))
    state: Any = ChatCompletionStreamState()
    for chunk in chunks:
        state.handle_chunk(ChatCompletionChunk.model_validate(chunk))
    streamed: Any = state.get_final_completion()
    theirs: Any = ChatCompletion.model_validate(completion(message)).choices[0].message
    for said in (theirs, streamed.choices[0].message):
        ours = read(chunks).message
        refused = said.refusal or ""
        assert ours.text == (said.content or "") + refused
        assert [(call.id, call.name, call.args_json) for call in ours.tool_calls] == [
            (call.id, call.function.name, call.function.arguments or "{}") for call in said.tool_calls or ()
        ]


def test_all_that_is_known_of_an_answer() -> None:
    message = {
        "content": "Hello",
        "reasoning_content": "Hm.",
        "tool_calls": [{"id": "a", "function": {"name": "look", "arguments": '{"at": 1}'}}],
    }
    result = whole(completion(message))
    assert result.message.parts == (
        Thinking("Hm."),
        Text("Hello"),
        ToolCall("a", "look", '{"at": 1}'),
    )
    assert result.request_id == "req_1"
    assert result.message.model == "gpt-4o-2024"
    assert result.finish_reason is FinishReason.TOOL_CALL
    used = result.usage
    assert (used.input_tokens, used.output_tokens, used.reasoning_tokens, used.cache_read_tokens) == (
        12,
        7,
        3,
        4,
    )


def test_a_refusal_is_a_filtered_answer() -> None:
    result = whole(completion({"content": None, "refusal": "I cannot."}))
    assert result.finish_reason is FinishReason.CONTENT_FILTER
    assert result.message.parts == (Text("I cannot.", {"refusal": True}),)


def test_pieces_of_several_calls_may_come_in_turns() -> None:
    def piece(index: int, args: str, **more: Any) -> dict[str, Any]:
        call = {"index": index, "function": {"arguments": args, **more.pop("function", {})}, **more}
        return {"choices": [{"delta": {"tool_calls": [call]}}]}

    chunks = [
        piece(0, "", id="a", function={"name": "one"}),
        piece(1, "", id="b", function={"name": "two"}),
        piece(0, '{"x"'),
        piece(1, "{"),
        piece(0, ":1}"),
        piece(1, "}"),
    ]
    assert [(call.id, call.args_json) for call in read(chunks).tool_calls] == [("a", '{"x":1}'), ("b", "{}")]


@pytest.mark.parametrize("index", [0, None])
def test_servers_that_do_not_number_calls(index: int | None) -> None:
    chunks = [
        {"id": "c", "choices": [{"delta": {"tool_calls": [
            {"index": index, "id": name, "function": {"name": name, "arguments": {"x": 1}}}
        ]}}]}
        for name in ("one", "two")
    ]  # fmt: skip
    assert [(call.id, call.args_json) for call in read(chunks).tool_calls] == [
        ("one", '{"x":1}'),
        ("two", '{"x":1}'),
    ]


def test_calls_without_an_id_get_one() -> None:
    message = {"tool_calls": [{"function": {"name": "a"}}, {"function": {"name": "b", "arguments": None}}]}
    assert [call.id for call in whole(completion(message)).tool_calls] == ["chatcmpl-1-0", "chatcmpl-1-1"]


def test_a_call_keeps_what_must_go_back() -> None:
    more = {"google": {"thought_signature": "c2ln"}}
    call = {"id": "a", "function": {"name": "f", "arguments": "{}"}, "extra_content": more}
    assert whole(completion({"tool_calls": [call]})).tool_calls[0].provider_data == {"extra_content": more}


def test_details_of_thoughts_are_whole_again() -> None:
    pieces: list[dict[str, Any]] = [
        {"type": "reasoning.text", "index": 0, "text": "Let "},
        {"type": "reasoning.text", "index": 0, "text": "me", "signature": "s"},
        {"type": "reasoning.encrypted", "index": 1, "data": "x"},
    ]
    chunks = [{"choices": [{"delta": {"reasoning": "t", "reasoning_details": [piece]}}]} for piece in pieces]
    thought = read(chunks).message.parts[0]
    expected = [{"type": "reasoning.text", "index": 0, "text": "Let me", "signature": "s"}, pieces[2]]
    assert thought == Thinking("ttt", provider_data={"reasoning_details": expected})
    assert merged(expected) == expected


def test_a_stream_that_ends_too_early() -> None:
    chunks = [{"choices": [{"delta": {"content": "Hel"}}]}]
    with pytest.raises(UnexpectedModelBehavior, match="before the answer was over"):
        read(chunks, ended=False)


def test_errors_in_the_middle() -> None:
    overloaded = {"error": {"message": "The server is overloaded", "code": 529}}
    with pytest.raises(ModelHTTPError, match="overloaded") as caught:
        read([overloaded])
    assert caught.value.retryable
    long = {"error": {"message": "This model's maximum context length is 10 tokens", "code": 400}}
    with pytest.raises(ContextExceeded):
        whole(long)


@pytest.mark.parametrize("body", [b"", b"nothing", b"[]", b'{"choices": []}', b'{"choices": [{}]}', b"\xff"])
def test_what_is_no_answer(body: bytes) -> None:
    with pytest.raises(UnexpectedModelBehavior):
        chat_result(body, HEADERS, "openai", "gpt-4o")


def test_usage_may_be_missing_or_odd() -> None:
    body = completion({"content": "x"})
    assert whole(body | {"usage": None}).message.usage is None
    assert whole(body | {"usage": {"prompt_tokens": None}}).usage.input_tokens == 0
    assert whole(body | {"usage": usage() | {"cost": 0.1}}).usage.extra == {"cost": 0.1}
    assert isinstance(whole(body).message, Message)


def test_of_several_answers_the_first() -> None:
    other = {"index": 1, "delta": {"content": "TWO"}, "finish_reason": "length"}
    last = {"index": 0, "delta": {"content": "!"}, "finish_reason": "stop"}
    chunks: list[Any] = [[{"index": 0, "delta": {"content": "One"}}], [other], [other, last]]
    result = read([{"choices": choices} for choices in chunks])
    assert (result.content, result.message.finish_reason) == ("One!", FinishReason.STOP)
    several = [{"index": 1, "message": {"content": "TWO"}}, {"index": 0, "message": {"content": "One"}}]
    assert whole({"choices": several}).content == "One"


def test_calls_without_a_number_or_an_id() -> None:
    calls = [{"function": {"name": name, "arguments": '{"n":1}'}} for name in ("look", "find")]
    chunks = [{"id": "c", "choices": [{"delta": {"tool_calls": [call]}}]} for call in calls]
    found = read(chunks).tool_calls
    assert [(call.id, call.name, call.arguments) for call in found] == [
        ("c-0", "look", {"n": 1}),
        ("c-1", "find", {"n": 1}),
    ]


def test_what_is_wanted_back_goes_back_also_without_words() -> None:
    """OpenRouter's signatures of Gemini's calls: encrypted, and in a stream after the call."""
    kept = {"type": "reasoning.encrypted", "data": "e", "id": "a", "index": 0}
    call = {"index": 0, "id": "a", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    late = read(
        [
            {"choices": [{"delta": {"tool_calls": [call]}}]},
            {
                "choices": [
                    {"delta": {"content": "", "reasoning_details": [kept]}, "finish_reason": "tool_calls"}
                ]
            },
        ]
    )
    early = whole(completion({"content": None, "reasoning_details": [kept], "tool_calls": [call]}))
    for result in (late, early):
        assert result.message.finish_reason is FinishReason.TOOL_CALL
        [told] = chat_messages([result.message], OPENROUTER)
        assert told["reasoning_details"] == [kept]
        assert "reasoning" not in told


def test_content_in_pieces() -> None:
    """As Mistral's thinking models give it."""
    thought = {"type": "thinking", "thinking": [{"type": "text", "text": "Hm."}]}
    said = {"type": "text", "text": "Yes"}
    expected = (Thinking("Hm."), Text("Yes!"))
    assert (
        whole(completion({"content": [thought, {"type": "text", "text": "Yes!"}]})).message.parts == expected
    )
    chunks: list[Any] = [[thought], [said], "!"]
    told = read([{"choices": [{"delta": {"content": content}}]} for content in chunks])
    assert told.message.parts == expected
