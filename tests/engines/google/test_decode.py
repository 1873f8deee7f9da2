"""What we read: the same however it is cut, and what Google's own SDK reads of it."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from google.genai import types
from hypothesis import given
from hypothesis import strategies as st

from flyball.core.errors import (
    ContentFilterError,
    FlyballError,
    IncompleteToolCall,
    ModelHTTPError,
    UnexpectedModelBehavior,
)
from flyball.core.messages import (
    Audio,
    FinishReason,
    Image,
    Message,
    Role,
    Text,
    Thinking,
    ToolCall,
    assistant,
    tool_result,
    user,
)
from flyball.core.usage import Usage
from flyball.engines.google.contents import history_of
from flyball.engines.google.decode import GoogleReader, generated
from flyball.engines.google.endings import BROKEN, REASONS
from flyball.engines.google.generations import generation_of
from flyball.engines.google.marks import mark
from flyball.engines.wire.sse import EventReader
from flyball.inference.request import Request, Result
from flyball.inference.stream import Assembler, Finish, TextDelta
from tests.effort import examples
from tests.engines.google.answers import answers, cut
from tests.engines.google.sdk import SDK_WARNS, asked, plain
from tests.engines.loopback import Answer, Loopback

ASKED = Request((user("hi"),))


def read(whole: Any, request: Request = ASKED) -> Result:
    body = whole if isinstance(whole, bytes) else msgspec.json.encode(whole)
    return generated(request, body, {}, "google", "gemini-3.8-flash")


def said(*parts: Any, reason: str | None = "STOP", **more: Any) -> dict[str, Any]:
    candidate: dict[str, Any] = {"content": {"parts": list(parts)}, "index": 0}
    if reason is not None:
        candidate["finishReason"] = reason
    return {"candidates": [candidate], **more}


def streamed(pieces: list[bytes], request: Request = ASKED) -> Result:
    reader, framed, assembler = (
        GoogleReader(request, {}, "google", "gemini-3.8-flash"),
        EventReader(),
        Assembler(),
    )
    for piece in pieces:
        for data in framed.feed(piece):
            for event in reader.feed(data):
                assembler.feed(event)
    for event in reader.close():
        assembler.feed(event)
    return assembler.result()


def as_bytes(chunks: list[dict[str, Any]], end: bytes = b"\n\n") -> bytes:
    return b"".join(b"data: " + msgspec.json.encode(chunk) + end for chunk in chunks)


@given(st.data())
def test_however_it_is_cut_it_is_the_same_answer(data: st.DataObject) -> None:
    whole = data.draw(answers())
    chunks = data.draw(cut(whole))
    flat = as_bytes(chunks, data.draw(st.sampled_from([b"\n\n", b"\r\n\r\n"])))
    size = data.draw(st.integers(1, len(flat)))
    result = streamed([flat[at : at + size] for at in range(0, len(flat), size)])
    assert result == read(whole)
    assert result == read(msgspec.json.encode(chunks)), "without alt=sse all chunks come in one list"
    assert result == read(msgspec.json.format(msgspec.json.encode(whole), indent=2))


@given(st.data())
def test_what_came_goes_back(data: st.DataObject) -> None:
    """Each part with what was said in it, but that words which were cut are one part again."""
    whole = data.draw(answers())
    message = read(whole).message
    sent = history_of([user("a"), message], generation_of("gemini-2.5-pro")).contents[1:]
    parts: list[Any] = []
    for part in whole["candidates"][0]["content"]["parts"]:
        signed = "thoughtSignature" in part
        before: dict[str, Any] = parts[-1] if parts else {}
        if part.get("text") == "" and not signed:
            continue
        joins = "text" in part and "text" in before and part.get("thought") == before.get("thought")
        if joins and not signed and "thoughtSignature" not in before:
            parts[-1] = {**before, "text": before["text"] + part["text"]}
        else:
            parts.append(part)
    assert [part for turn in sent for part in turn["parts"]] == parts


@pytest.mark.filterwarnings(SDK_WARNS)
@examples(25)
@given(st.data())
async def test_the_sdk_reads_the_same(data: st.DataObject) -> None:
    whole = data.draw(answers())
    flat = as_bytes(data.draw(cut(whole)))
    size = data.draw(st.integers(1, len(flat)))
    pieces = [flat[at : at + size] for at in range(0, len(flat), size)]
    async with Loopback(lambda _: Answer(pieces, headers={"Content-Type": "text/event-stream"})) as server:
        chunks = await asked(server, "hi", streamed=True)
    parts: list[Any] = []
    for chunk in chunks:
        assert chunk.candidates
        assert chunk.candidates[0].content
        parts += chunk.candidates[0].content.parts or ()
    mine = streamed(pieces).message
    assert mine.text == "".join([part.text for part in parts if part.text and not part.thought])
    assert mine.thinking == "".join([part.text for part in parts if part.text and part.thought])
    calls = [part.function_call for part in parts if part.function_call]
    assert [(call.name, call.arguments) for call in mine.tool_calls] == [
        (call.name, call.args) for call in calls
    ]
    last = chunks[-1]
    assert last.usage_metadata is not None
    assert mine.model == last.model_version
    assert mine.usage is not None
    assert mine.usage.input_tokens == last.usage_metadata.prompt_token_count
    assert mine.usage.reasoning_tokens == last.usage_metadata.thoughts_token_count
    theirs = [part.model_dump(mode="json", exclude_none=True) for part in parts if part.thought_signature]
    back = history_of([user("a"), mine], generation_of("gemini-2.5-pro")).contents[1:]
    ours = [part for turn in back for part in turn["parts"] if "thoughtSignature" in part]
    assert [part["thoughtSignature"] for part in plain(ours)] == [
        part["thoughtSignature"] for part in plain(theirs)
    ]


@given(st.text(min_size=1, max_size=20), st.integers(0, 20))
def test_a_signature_that_comes_after_its_text_stays_after_it(text: str, at: int) -> None:
    chunks = [said({"text": text[:at]}, reason=None), said({"text": text[at:]}, reason=None)]
    end = said({"text": "", "thoughtSignature": "c2ln"})
    message = streamed([as_bytes([*chunks, end])]).message
    assert message.parts == (Text(text), Thinking("", "c2ln", mark(thought=False)))
    assert message.text == text


def test_parts() -> None:
    message = read(
        said(
            {"text": "hm", "thought": True, "thoughtSignature": "c2ln"},
            {"text": "Look: ", "thoughtSignature": "dGV4"},
            {"functionCall": {"name": "look", "args": {"a": 1}, "id": "g1"}, "thoughtSignature": "Y2Fs"},
            {"inlineData": {"mimeType": "image/png", "data": "AAAA"}, "thoughtSignature": "aW1n"},
            {"inlineData": {"mimeType": "audio/wav", "data": "AAAA"}},
            {"inlineData": {"mimeType": "application/pdf", "data": "AAAA"}},
        )
    ).message
    kept = {"inlineData": {"mimeType": "application/pdf", "data": "AAAA"}}
    assert message.check().parts == (
        Thinking("hm", "c2ln", mark(thought=True)),
        Text("Look: ", mark(thoughtSignature="dGV4")),
        ToolCall("g1", "look", '{"a":1}', provider_data=mark(id="g1", thoughtSignature="Y2Fs")),
        Image("data:image/png;base64,AAAA", "image/png", extra=mark(thoughtSignature="aW1n")),
        Audio("data:audio/wav;base64,AAAA", "audio/wav"),
        Thinking("", provider_data=mark(part=kept)),
    )
    assert message.finish_reason is FinishReason.TOOL_CALL


def test_calls_without_ids_get_their_own() -> None:
    call: dict[str, Any] = {"functionCall": {"name": "look", "args": {}}}
    assert [call.id for call in read(said(call, call, responseId="r")).tool_calls] == ["r-0", "r-1"]
    assert [call.id for call in read(said(call, call)).tool_calls] == ["call_0", "call_1"]
    before = (user("a"), assistant("", ToolCall("call_1", "look")), tool_result("call_1", "look", "x"))
    again = read(said(call, call), Request(before)).tool_calls
    assert [call.id for call in again] == ["call_2", "call_3"]
    assert all(call.provider_data is None for call in again)


def test_an_id_that_is_given_twice_is_one_call_s() -> None:
    call = {"functionCall": {"name": "look", "id": "0"}}
    first, second = read(said(call, call)).tool_calls
    assert first.id == "0" != second.id
    assert second.provider_data == mark(id="0")
    assert first.args_json == "{}"
    assert read(said({"functionCall": {"name": "f", "args": None}})).tool_calls[0].args_json == "{}"


def test_usage() -> None:
    counts = {
        "promptTokenCount": 100, "cachedContentTokenCount": 40, "candidatesTokenCount": 20,
        "thoughtsTokenCount": 30, "toolUsePromptTokenCount": 5, "totalTokenCount": 155,
        "promptTokensDetails": [
            {"modality": "TEXT", "tokenCount": 9}, {"modality": "AUDIO", "tokenCount": 8}
        ],
        "candidatesTokensDetails": [{"modality": "IMAGE", "tokenCount": 20}],
    }  # fmt: skip
    assert read(said({"text": "a"}, usageMetadata=counts)).usage == Usage(
        input_tokens=105,
        output_tokens=50,
        reasoning_tokens=30,
        cache_read_tokens=40,
        details={"input_audio_tokens": 8, "output_image_tokens": 20, "tool_use_prompt_tokens": 5},
    )
    assert read(said({"text": "a"})).message.usage is None


@pytest.mark.parametrize(
    ("reason", "meant"),
    [
        ("STOP", FinishReason.STOP),
        ("MAX_TOKENS", FinishReason.LENGTH),
        ("SAFETY", FinishReason.CONTENT_FILTER),
        ("RECITATION", FinishReason.CONTENT_FILTER),
        ("PROHIBITED_CONTENT", FinishReason.CONTENT_FILTER),
        ("OTHER", FinishReason.ERROR),
        ("SOMETHING_NEW", FinishReason.ERROR),
    ],
)
def test_why_it_stopped(reason: str, meant: FinishReason) -> None:
    assert read(said({"text": "a"}, reason=reason)).finish_reason is meant


@pytest.mark.parametrize("reason", [reason.value for reason in types.FinishReason])
def test_every_reason_that_the_sdk_knows_is_known(reason: str) -> None:
    assert reason in REASONS or reason in BROKEN or reason in ("OTHER", "FINISH_REASON_UNSPECIFIED")


def test_a_blocked_answer_says_so_without_parts() -> None:
    result = read({"candidates": [{"finishReason": "SAFETY"}]})
    assert result.message.parts == ()
    assert result.finish_reason is FinishReason.CONTENT_FILTER


@pytest.mark.parametrize(
    ("body", "kind", "words", "retryable"),
    [
        (
            {"promptFeedback": {"blockReason": "SAFETY"}},
            ContentFilterError,
            "blocked the prompt: SAFETY",
            False,
        ),
        (
            {"candidates": [{"finishReason": "MALFORMED_FUNCTION_CALL", "finishMessage": "print(x"}]},
            IncompleteToolCall,
            "print(x",
            True,
        ),
        ({"candidates": [{"finishReason": "OTHER"}]}, UnexpectedModelBehavior, "OTHER", True),
        (said(reason="MISSING_THOUGHT_SIGNATURE"), UnexpectedModelBehavior, "MISSING", False),
        (said({"text": "cut"}, reason=None), UnexpectedModelBehavior, "before it was over", True),
        ({}, UnexpectedModelBehavior, "before it was over", True),
        ([], UnexpectedModelBehavior, "before it was over", True),
        ("what", UnexpectedModelBehavior, "cannot be read", True),
        (said(5), UnexpectedModelBehavior, "cannot be read", True),
        (
            said({"functionCall": {"name": "f", "willContinue": True}}),
            UnexpectedModelBehavior,
            "in pieces",
            False,
        ),
        ({"error": {"code": 503, "message": "overloaded"}}, ModelHTTPError, "overloaded", True),
        ([{"error": {"code": 400, "message": "wrong"}}], ModelHTTPError, "wrong", False),
        ({"error": "odd"}, ModelHTTPError, "odd", True),
    ],
)
def test_what_is_no_answer(body: Any, kind: type[FlyballError], words: str, retryable: bool) -> None:
    with pytest.raises(kind) as caught:
        read(body)
    assert words in str(caught.value)
    assert caught.value.retryable is retryable


@pytest.mark.parametrize("body", [b"", b"{", b"\xff", b"[" * 10_000, b'{"candidates": [{"content": 5}]}'])
def test_bytes_that_are_no_answer(body: bytes) -> None:
    with pytest.raises(UnexpectedModelBehavior):
        read(body)


def test_an_error_in_the_middle_of_a_stream() -> None:
    reader = GoogleReader(ASKED, {"x-request-id": "q"}, "google", "m")
    first = reader.feed(msgspec.json.encode(said({"text": "a"}, reason=None)))
    assert TextDelta(0, "a") in first
    wrong = {"error": {"code": 429, "status": "RESOURCE_EXHAUSTED", "details": [{"retryDelay": "7s"}]}}
    with pytest.raises(ModelHTTPError) as caught:
        reader.feed(msgspec.json.encode(wrong))
    assert caught.value.details["retry_after"] == 7.0
    assert caught.value.details["request_id"] == "q"
    assert caught.value.status_code == 429


def test_of_several_answers_the_first_is_read() -> None:
    both = said({"text": "a"})
    both["candidates"].append(
        {"content": {"parts": [{"text": "b"}]}, "index": 1, "finishReason": "MAX_TOKENS"}
    )
    result = read(both)
    assert (result.content, result.finish_reason) == ("a", FinishReason.STOP)


def test_what_is_said_besides_is_kept() -> None:
    whole = said({"text": "a"}, responseId="r", modelVersion="gemini-9")
    whole["candidates"][0]["groundingMetadata"] = {"webSearchQueries": ["q"]}
    result = read(whole)
    assert result.message == Message(
        Role.ASSISTANT,
        (Text("a"),),
        model="gemini-9",
        finish_reason=FinishReason.STOP,
        extra={"google": {"groundingMetadata": {"webSearchQueries": ["q"]}}},
    )
    assert result.request_id == "r"


def test_done_is_passed_over() -> None:
    reader = GoogleReader(ASKED, {}, "google", "m")
    assert reader.feed(b"[DONE]") == ()
    reader.feed(msgspec.json.encode(said({"text": "a"})))
    assert isinstance(reader.close()[-1], Finish)
