"""What we send by Chat Completions is what the vendor's own types take."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from openai.types.chat import ChatCompletionMessageParam, ChatCompletionToolUnionParam
from openai.types.chat.completion_create_params import (
    CompletionCreateParamsNonStreaming,
    CompletionCreateParamsStreaming,
)

from flyball.core.errors import ToolNotFound, UserError
from flyball.core.messages import Audio, Document, Image, Message, Role, ToolCall, ToolResult, system, user
from flyball.core.settings import ModelSettings
from flyball.core.tools import ToolChoice, ToolDefinition, ToolKind
from flyball.engines.openai.chat.encode import chat_body, chat_messages
from flyball.engines.openai.dialect import COMPATIBLE, LLAMA_CPP, OLLAMA, OPENAI, OPENROUTER, VLLM, Dialect
from flyball.inference.request import OutputObject, Request
from tests.engines.rich_histories import PNG, WEB, rich_histories
from tests.engines.sdk import accepted

DIALECTS = [OPENAI, OPENROUTER, OLLAMA, VLLM, LLAMA_CPP, COMPATIBLE]
LOOK = ToolDefinition(
    "look", {"type": "object", "properties": {"at": {"type": "integer"}}, "required": ["at"]}
)
DONE = ToolDefinition("done", {"type": "object", "properties": {}}, kind=ToolKind.OUTPUT, sequential=True)
CITY = OutputObject({"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]})


def body(request: Request, dialect: Dialect = OPENAI, stream: bool = False) -> dict[str, Any]:
    return chat_body(request, "gpt-4o", dialect, stream=stream)


@given(messages=rich_histories(), stream=st.booleans())
def test_any_history_is_taken(messages: list[Message], stream: bool) -> None:
    request = Request(
        tuple(messages),
        tools=(LOOK, DONE),
        settings=ModelSettings(5, 0.5, 0.9, 7, ("end",), reasoning_effort="low"),
        output=CITY,
    )
    kind = CompletionCreateParamsStreaming if stream else CompletionCreateParamsNonStreaming
    sent = body(request, stream=stream)
    accepted(kind, sent)
    for message in sent["messages"]:
        accepted(ChatCompletionMessageParam, message)
    for tool in sent["tools"]:
        accepted(ChatCompletionToolUnionParam, tool)


@given(messages=rich_histories(), dialect=st.sampled_from(DIALECTS))
def test_each_call_is_answered_before_anything_else_is_said(
    messages: list[Message], dialect: Dialect
) -> None:
    owed: list[str] = []
    for message in chat_messages(messages, dialect):
        if message["role"] == "tool":
            owed.remove(message["tool_call_id"])
        else:
            assert owed == [], message
            owed = [call["id"] for call in message.get("tool_calls", ())]
            assert all(len(call_id) <= 40 for call_id in owed)
    assert owed == []


@given(messages=rich_histories())
def test_nothing_that_was_said_is_lost(messages: list[Message]) -> None:
    told = str(chat_messages(messages, OPENAI))
    for message in messages:
        for part in message.parts:
            if isinstance(part, Image):
                assert told.count(part.url)
            if isinstance(part, ToolResult):
                assert all(image.url in told for image in part.images)


def test_images_of_tools_follow_as_soon_as_they_may() -> None:
    messages = [
        user("see"),
        Message(Role.ASSISTANT, (_call("a"), _call("b"))),
        Message(Role.TOOL, (ToolResult("a", "look", "one", images=(PNG,)), ToolResult("b", "look", "two"))),
        Message(Role.ASSISTANT, (_call("c"),)),
        Message(Role.TOOL, (ToolResult("c", "look", "three", images=(WEB,)),)),
        user("and?"),
    ]
    told = chat_messages(messages, OPENAI)
    roles = "user assistant tool tool user assistant tool user"
    assert [message["role"] for message in told] == roles.split()
    assert [part["type"] for part in told[-1]["content"]] == ["text", "image_url", "text"]


def _call(name: str) -> ToolCall:
    return ToolCall(name, "look", '{"at": 1}')


def test_system_messages_stand_where_they_were_said() -> None:
    messages = [system("one"), system("two"), user("hi"), system("three")]
    assert chat_messages(messages, OPENAI) == [
        {"role": "developer", "content": "one\n\ntwo"},
        {"role": "user", "content": "hi"},
        {"role": "developer", "content": "three"},
    ]
    assert chat_messages(messages, VLLM)[0]["role"] == "system"


@pytest.mark.parametrize(
    ("choice", "allows_text", "expected"),
    [
        (None, True, (["look", "done"], None)),
        (None, False, (["look", "done"], "required")),
        (ToolChoice("required"), True, (["look", "done"], "required")),
        (ToolChoice("auto", "look"), True, (["look"], {"type": "function", "function": {"name": "look"}})),
        (ToolChoice("none"), True, (["done"], None)),
        (ToolChoice("none"), False, (["done"], "required")),
    ],
)
def test_what_may_be_called(choice: ToolChoice | None, allows_text: bool, expected: Any) -> None:
    sent = body(Request((user("hi"),), (LOOK, DONE), tool_choice=choice, allows_text=allows_text))
    assert ([tool["function"]["name"] for tool in sent["tools"]], sent.get("tool_choice")) == expected


def test_a_tool_that_must_be_called_and_is_not_there() -> None:
    with pytest.raises(ToolNotFound):
        body(Request((user("hi"),), (LOOK,), tool_choice=ToolChoice("function", "other")))


def test_no_tools_that_may_be_called_are_no_tools() -> None:
    sent = body(Request((user("hi"),), (LOOK,), tool_choice=ToolChoice("none")))
    assert "tools" not in sent
    assert "tool_choice" not in sent


def test_schemas_by_dialect() -> None:
    request = Request((user("hi"),), output=CITY)
    strict = body(request)["response_format"]["json_schema"]
    assert strict["strict"] is True
    assert strict["schema"]["additionalProperties"] is False
    plain = body(request, VLLM)["response_format"]["json_schema"]
    assert "strict" not in plain
    assert plain["schema"] == CITY.schema


def test_grammars_by_dialect() -> None:
    request = Request((user("hi"),), grammar='root ::= "a"')
    assert body(request, LLAMA_CPP)["grammar"] == 'root ::= "a"'
    assert body(request, VLLM)["structured_outputs"] == {"grammar": 'root ::= "a"'}
    with pytest.raises(UserError, match="cannot hold a model to a grammar"):
        body(request)


def test_what_another_vendor_left_with_a_call_stays_here() -> None:
    data = {"extra_content": {"google": {"thought_signature": "s"}}, "google": {"id": "g1"}}
    called = Message(Role.ASSISTANT, (ToolCall("a", "look", provider_data=data),))
    (told,) = chat_messages([called], OPENAI)
    assert told["tool_calls"][0].keys() == {"id", "type", "function", "extra_content"}


def test_options_go_over_everything() -> None:
    settings = ModelSettings(temperature=0.1, options={"temperature": 0.9, "logit_bias": {"1": 2}})
    sent = body(Request((user("hi"),), settings=settings))
    assert (sent["temperature"], sent["logit_bias"]) == (0.9, {"1": 2})


def test_what_this_protocol_cannot_carry_is_refused() -> None:
    for part in (Audio("https://example.org/a.wav"), Document("https://example.org/a.pdf")):
        with pytest.raises(UserError, match="openai takes no"):
            body(Request((user(part),)))
    with pytest.raises(UserError, match="comma"):
        body(Request((user(Audio("data:audio/wav;base64")),)))
