"""The Responses API, both ways: what we send its types take, and what it says is read whole and in pieces."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy
from openai.types.responses import Response, ResponseInputItemParam, ResponseStreamEvent, ToolParam
from openai.types.responses.response_create_params import (
    ResponseCreateParamsNonStreaming,
    ResponseCreateParamsStreaming,
)
from pydantic import TypeAdapter

from flyball.core.errors import ContentFilterError, ModelHTTPError, UnexpectedModelBehavior, UserError
from flyball.core.messages import FinishReason, Message, Role, Text, Thinking, ToolCall, system, user
from flyball.core.settings import ModelSettings
from flyball.core.tools import ToolChoice
from flyball.engines.openai.responses.decode import ResponsesReader, responses_result
from flyball.engines.openai.responses.encode import input_items, item_key, responses_body
from flyball.inference.request import Request, Result
from flyball.inference.stream import Assembler
from tests.engines.openai.test_chat_encode import CITY, DONE, LOOK
from tests.engines.rich_histories import NOTE, PDF, PNG, WEB, rich_histories
from tests.engines.sdk import accepted

Item = dict[str, Any]
HEADERS = {"x-request-id": "req_1"}
EVENTS: TypeAdapter[Any] = TypeAdapter(ResponseStreamEvent)


def sent(request: Request, *, thinks: bool = True, stream: bool = False) -> dict[str, Any]:
    return responses_body(request, "gpt-5", thinks=thinks, stream=stream)


# What is sent


@given(messages=rich_histories(media=(PNG, WEB, PDF, NOTE)), stream=st.booleans(), thinks=st.booleans())
def test_any_history_is_taken(messages: list[Message], stream: bool, thinks: bool) -> None:
    settings = ModelSettings(5, 0.5, 0.9, thinking=True, reasoning_effort="low")
    request = Request(tuple(messages), (LOOK, DONE), settings, output=CITY)
    body = sent(request, thinks=thinks, stream=stream)
    accepted(ResponseCreateParamsStreaming if stream else ResponseCreateParamsNonStreaming, body)
    for item in body["input"]:
        accepted(ResponseInputItemParam, item)
    for tool in body["tools"]:
        accepted(ToolParam, tool)


@given(messages=rich_histories(media=(PNG, WEB, PDF, NOTE)))
def test_each_call_is_answered(messages: list[Message]) -> None:
    items = list(input_items(messages))
    asked = [item["call_id"] for item in items if item.get("type") == "function_call"]
    answered = [item["call_id"] for item in items if item.get("type") == "function_call_output"]
    assert sorted(asked) == sorted(answered)


def test_thoughts_go_back_as_they_came_and_those_of_others_do_not() -> None:
    item: Item = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "x"}
    own, other = Thinking("Hm.", provider_data={item_key("openai"): item}), Thinking("I", "sig")
    call = ToolCall("a", "look", "{}")
    assert list(input_items([Message(Role.ASSISTANT, (other, own, call))])) == [
        item,
        {"type": "function_call", "call_id": "a", "name": "look", "arguments": "{}"},
    ]


def test_the_body() -> None:
    settings = ModelSettings(max_tokens=9, thinking=False, seed=4, options={"service_tier": "flex"})
    request = Request((system("Be brief."), user("hi")), (LOOK,), settings, ToolChoice("function", "look"))
    assert sent(request) == {
        "model": "gpt-5",
        "input": [{"role": "developer", "content": "Be brief."}, {"role": "user", "content": "hi"}],
        "store": False,
        "max_output_tokens": 9,
        "include": ["reasoning.encrypted_content"],
        "reasoning": {"effort": "minimal"},
        "tools": [
            {
                "type": "function",
                "name": "look",
                "strict": True,
                "parameters": {**LOOK.parameters, "additionalProperties": False},
            }
        ],
        "tool_choice": {"type": "function", "name": "look"},
        "service_tier": "flex",
    }


def test_what_it_does_not_know_is_refused() -> None:
    for request in (
        Request((user("hi"),), settings=ModelSettings(stop=("x",))),
        Request((user("hi"),), grammar='root ::= "a"'),
    ):
        with pytest.raises(UserError):
            sent(request)


# What comes back

_words = st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), min_size=1, max_size=12)


def _message(texts: list[str], phase: str | None) -> Item:
    content: list[Item] = [
        {"type": "output_text", "text": text, "annotations": [], "logprobs": []} for text in texts
    ]
    item: Item = {
        "type": "message",
        "id": "msg_1",
        "role": "assistant",
        "status": "completed",
        "content": content,
    }
    return {**item, "phase": phase} if phase else item


def _reasoning(texts: list[str], secret: str | None) -> Item:
    summary = [{"type": "summary_text", "text": text} for text in texts]
    return {"type": "reasoning", "id": "rs_1", "summary": summary, "encrypted_content": secret}


def _call(name: str, args: str) -> Item:
    call = {"type": "function_call", "id": "fc_1", "call_id": f"call_{name}", "name": name, "arguments": args}
    return {**call, "status": "completed"}


_SEARCH: Item = {
    "type": "web_search_call",
    "id": "ws_1",
    "status": "completed",
    "action": {"type": "search", "query": "q"},
}
_phases = st.sampled_from([None, "commentary", "final_answer"])
_outputs: SearchStrategy[list[Item]] = st.lists(
    st.builds(_message, st.lists(_words, min_size=1, max_size=2), _phases)
    | st.builds(_reasoning, st.lists(_words, max_size=3), st.sampled_from(["gAAA", None]))
    | st.builds(_call, st.sampled_from(["look", "find"]), st.sampled_from(["{}", '{"city": "Paris"}']))
    | st.just(_SEARCH),
    min_size=1,
    max_size=4,
)


def response(output: list[Any], **more: Any) -> dict[str, Any]:
    return {
        "id": "resp_1",
        "object": "response",
        "created_at": 1,
        "model": "gpt-5-2025",
        "status": "completed",
        "output": output,
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "usage": {
            "input_tokens": 9,
            "input_tokens_details": {"cached_tokens": 2, "cache_write_tokens": 1},
            "output_tokens": 5,
            "output_tokens_details": {"reasoning_tokens": 3},
            "total_tokens": 14,
        },
        **more,
    }


def stream_of(data: st.DataObject, output: list[Any]) -> list[dict[str, Any]]:
    def cut(text: str) -> list[str]:
        places = sorted({0, len(text), *data.draw(st.lists(st.integers(0, len(text)), max_size=3))})
        return [text[one:other] for one, other in pairwise(places)]

    events: list[dict[str, Any]] = [
        {"type": "response.created", "response": response([], status="in_progress")}
    ]
    for number, item in enumerate(output):
        at = {"output_index": number, "item_id": item["id"]}
        begun: Item = {"content": [], "summary": [], "arguments": ""}
        empty: Item = {key: begun.get(key, value) for key, value in item.items()}
        events.append({"type": "response.output_item.added", "output_index": number, "item": empty})
        for place, content in enumerate(item.get("content", ())):
            events += [
                {
                    "type": "response.output_text.delta",
                    "content_index": place,
                    "delta": piece,
                    "logprobs": [],
                    **at,
                }
                for piece in cut(content["text"])
            ]
        for place, summary in enumerate(item.get("summary", ())):
            events += [
                {
                    "type": "response.reasoning_summary_text.delta",
                    "summary_index": place,
                    "delta": piece,
                    **at,
                }
                for piece in cut(summary["text"])
            ]
        events += [
            {"type": "response.function_call_arguments.delta", "delta": piece, **at}
            for piece in (cut(item["arguments"]) if "arguments" in item else ())
        ]
        events.append({"type": "response.output_item.done", "output_index": number, "item": item})
    events.append({"type": "response.completed", "response": response(output)})
    return [{**event, "sequence_number": number} for number, event in enumerate(events)]


def read(events: list[dict[str, Any]]) -> Result:
    reader, joined = ResponsesReader(HEADERS, "openai", "gpt-5"), Assembler()
    for event in events:
        for ours in reader.feed(msgspec.json.encode(event)):
            joined.feed(ours)
    for ours in reader.close():
        joined.feed(ours)
    return joined.result()


def whole(body: dict[str, Any]) -> Result:
    return responses_result(msgspec.json.encode(body), HEADERS, "openai", "gpt-5")


@given(data=st.data(), output=_outputs)
def test_a_stream_is_the_same_answer(data: st.DataObject, output: list[Any]) -> None:
    events = stream_of(data, output)
    for event in events:
        EVENTS.validate_python(event)
    assert read(events) == whole(response(output))


@given(output=_outputs)
def test_the_vendors_client_reads_the_same(output: list[Any]) -> None:
    theirs = Response.model_validate(response(output))
    ours = whole(response(output)).message
    assert ours.text == theirs.output_text
    assert [call.args_json for call in ours.tool_calls] == [
        item.arguments for item in theirs.output if item.type == "function_call"
    ]


@given(output=_outputs)
def test_what_it_thought_and_did_goes_back_unchanged(output: list[Any]) -> None:
    said = whole(response(output)).message
    # Azure has other keys: what it cannot open it would refuse, and a fallback with it.
    assert not [item for item in input_items([said], "azure") if "encrypted_content" in item]
    back = list(input_items([said]))
    kept = [item for item in output if item["type"] in ("reasoning", "web_search_call")]
    again = [item for item in back if item.get("type") in ("reasoning", "web_search_call")]
    assert again == [
        {key: value for key, value in item.items() if key != "status" and value is not None} for item in kept
    ]
    phases = [item.get("phase") for item in output if item["type"] == "message" for _ in item["content"]]
    assert [item.get("phase") for item in back if item.get("role") == "assistant"] == phases


def test_how_it_ended() -> None:
    said = [{"type": "message", "content": [{"type": "output_text", "text": "x"}]}]
    call = [{"type": "function_call", "call_id": "a", "name": "f", "arguments": "{}"}]
    refused = [{"type": "message", "content": [{"type": "refusal", "refusal": "no"}]}]
    cut = {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}
    filtered = {"status": "incomplete", "incomplete_details": {"reason": "content_filter"}}
    assert [
        whole(response(output, **more)).finish_reason
        for output, more in ((said, {}), (call, {}), (refused, {}), (said, cut), (said, filtered))
    ] == [
        FinishReason.STOP,
        FinishReason.TOOL_CALL,
        FinishReason.CONTENT_FILTER,
        FinishReason.LENGTH,
        FinishReason.CONTENT_FILTER,
    ]
    assert whole(response(refused)).message.parts == (Text("no", {"refusal": True}),)


def test_failures() -> None:
    failed = response([], status="failed", error={"code": "server_error", "message": "Oh no"})
    with pytest.raises(ModelHTTPError, match="Oh no") as caught:
        whole(failed)
    assert caught.value.retryable
    with pytest.raises(ModelHTTPError, match="Oh no"):
        read([{"type": "response.failed", "response": failed}])
    with pytest.raises(ContentFilterError):
        read([{"type": "error", "code": "content_filter", "message": "filtered"}])
    with pytest.raises(UnexpectedModelBehavior, match="before the answer was over"):
        read([{"type": "response.created"}])
    with pytest.raises(UnexpectedModelBehavior):
        whole({})


def test_usage() -> None:
    usage = whole(response([])).usage
    assert (usage.input_tokens, usage.output_tokens, usage.reasoning_tokens) == (9, 5, 3)
    assert (usage.cache_read_tokens, usage.cache_write_tokens) == (2, 1)
