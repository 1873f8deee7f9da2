"""Any valid history is sent as one that the API takes."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flyball.core.errors import UserError
from flyball.core.messages import (
    Audio,
    Document,
    Image,
    Message,
    ResultKind,
    Role,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    assistant,
    data_url,
    system,
    tool_results,
    user,
)
from flyball.core.settings import ModelSettings
from flyball.core.tools import ToolChoice, ToolDefinition
from flyball.engines.anthropic.encode import messages_body
from flyball.inference.request import Request
from tests.engines.anthropic.oracle import check_params, check_rules
from tests.engines.anthropic.strategies import rich_histories
from tests.engines.anthropic.wire import MODEL

_TOOL = ToolDefinition("look", {"type": "object", "properties": {"at": {"type": "integer"}}}, "Look.")
_ALONE = ToolDefinition("write", {"type": "object"}, sequential=True, strict=True)
_MODELS = st.sampled_from([
    MODEL, "claude-sonnet-5-5", "claude-opus-5", "claude-opus-4-6", "claude-sonnet-4-5", "claude-3-5-haiku",
    "kimi",
])  # fmt: skip
_SETTINGS = st.builds(
    ModelSettings,
    max_tokens=st.sampled_from([None, 100, 3_000, 50_000]),
    thinking=st.sampled_from([None, True, False]),
    thinking_budget=st.sampled_from([None, None, 1, 5_000, 200_000]),
    reasoning_effort=st.sampled_from([None, "low", "minimal", "max"]),
    seed=st.sampled_from([None, 1]),
    stop=st.sampled_from([(), ("END",)]),
)
_CHOICES = st.sampled_from([
    None, ToolChoice("required"), ToolChoice("none"), ToolChoice("function", "look"), ToolChoice("auto")
])  # fmt: skip


def _request(
    history: list[Message],
    settings: ModelSettings,
    tools: tuple[ToolDefinition, ...],
    choice: ToolChoice | None,
) -> Request:
    return Request(tuple(history), tools, settings, choice if tools else None)


_REQUESTS = st.builds(
    _request,
    rich_histories(),
    _SETTINGS,
    st.sampled_from([(), (_TOOL,), (_TOOL, _ALONE)]),
    _CHOICES,
)


@given(_REQUESTS, _MODELS, st.sampled_from([False, True, "1h"]))
def test_any_history_is_one_that_the_api_takes(request: Request, model: str, cache: Any) -> None:
    before = msgspec.json.encode(request)
    body = messages_body(request, model, stream=True, cache=cache)
    sent = msgspec.json.decode(msgspec.json.encode(body))
    check_params(sent)
    check_rules(sent)
    assert msgspec.json.encode(request) == before


def told(*messages: Message, model: str = MODEL) -> list[dict[str, Any]]:
    return messages_body(Request(messages), model, stream=False)["messages"]


def test_leading_system_messages_are_the_parameter_and_later_ones_stand_in_the_turn() -> None:
    request = Request((system("Be brief."), system("Be kind."), user("Hi"), system("In verse.")))
    body = messages_body(request, MODEL, stream=False)
    assert body["system"] == "Be brief.\n\nBe kind."
    said = [{"type": "text", "text": "Hi"}, {"type": "text", "text": "<system>\nIn verse.\n</system>"}]
    assert body["messages"] == [{"role": "user", "content": said}]


def test_results_open_the_turn_and_failures_say_so() -> None:
    _, called, answered = told(
        user("Go"),
        assistant("", ToolCall("a", "look"), ToolCall("b|", "look", "{broken"), ToolCall("c", "look")),
        tool_results([
            ToolResult("b|", "look", error="it broke"),
            ToolResult("a", "look", {"x": 1}, images=(Image("https://x/y.png"),)),
            ToolResult("c", "look", "once more", status=ResultKind.RETRY),
        ]),
        user("And?"),
    )  # fmt: skip
    ids = [block["id"] for block in called["content"]]
    assert ids[0] == "a"
    assert ids[1] != "b|"
    assert called["content"][1]["input"] == {"invalid_json": "{broken"}
    assert answered["content"] == [
        {"type": "tool_result", "tool_use_id": ids[1], "content": "it broke", "is_error": True},
        {
            "type": "tool_result",
            "tool_use_id": "a",
            "content": [
                {"type": "text", "text": '{"x":1}'},
                {"type": "image", "source": {"type": "url", "url": "https://x/y.png"}},
            ],
        },
        {"type": "tool_result", "tool_use_id": "c", "content": "once more", "is_error": True},
        {"type": "text", "text": "And?"},
    ]


def test_results_open_the_turn_also_where_something_came_in_between() -> None:
    call, result = ToolCall("a", "look"), ToolResult("a", "look", "x")
    turns = told(user("Go"), assistant("", call), system("In verse."), tool_results([result]))
    assert [block["type"] for block in turns[2]["content"]] == ["tool_result", "text"]


def test_an_id_that_comes_again_is_another() -> None:
    call, result = ToolCall("call_0", "look"), ToolResult("call_0", "look", "x")
    turns = told(
        user("Go"), assistant("", call), tool_results([result]), assistant("", call), tool_results([result])
    )
    first, second = turns[1]["content"][0]["id"], turns[3]["content"][0]["id"]
    assert first == "call_0" != second
    assert [turns[2]["content"][0]["tool_use_id"], turns[4]["content"][0]["tool_use_id"]] == [first, second]


_SIGNED = Thinking("Hm.", "c2ln")
_ENCRYPTED = Thinking("", provider_data={"anthropic": {"type": "redacted_thinking", "data": "ZW5j"}})


@pytest.mark.parametrize(
    ("asked", "answered", "kept"),
    [
        (MODEL, MODEL, True),
        (MODEL, None, True),
        ("claude-sonnet-4-5", "claude-sonnet-4-5-20250929", True),
        ("claude-sonnet-4-5@20250929", "claude-sonnet-4-5-20250929", True),
        (MODEL, "claude-opus-5", False),
        (MODEL, "gemini-3-pro", False),
        ("claude-next", "claude-next-1", True),
        ("kimi-k3", "kimi-k3-turbo", True),
    ],
)
def test_thoughts_go_back_unchanged_to_the_model_that_had_them(
    asked: str, answered: str | None, kept: bool
) -> None:
    said = Message(Role.ASSISTANT, (_SIGNED, _ENCRYPTED, Text("So.")), model=answered)
    content = told(user("Hi"), said, user("And?"), model=asked)[1]["content"]
    thoughts = [
        {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"},
        {"type": "redacted_thinking", "data": "ZW5j"},
    ]
    assert content == ([*thoughts, {"type": "text", "text": "So."}] if kept else "So.")


def test_thoughts_without_a_signature_are_for_servers_that_give_none() -> None:
    said = Message(Role.ASSISTANT, (Thinking("Hm."), Text("So.")))
    assert told(user("Hi"), said, user("And?"))[1]["content"] == "So."
    compatible = told(user("Hi"), said, user("And?"), model="kimi-k3")[1]["content"]
    assert compatible[0] == {"type": "thinking", "thinking": "Hm.", "signature": ""}


def test_an_answer_of_nothing_but_thoughts_is_left_out_and_the_users_turns_are_one() -> None:
    assert told(user("Hi"), Message(Role.ASSISTANT, (_SIGNED,)), user("And?")) == [
        {"role": "user", "content": [{"type": "text", "text": "Hi"}, {"type": "text", "text": "And?"}]}
    ]


def test_blocks_that_only_the_server_knows_go_back_as_they_came() -> None:
    block: dict[str, Any] = {"type": "web_search_tool_result", "tool_use_id": "s1", "content": [], "new": 1}
    said = Message(Role.ASSISTANT, (Thinking("", provider_data={"anthropic": block}), Text("So.")))
    assert told(user("Hi"), said, user("And?"))[1]["content"][0] == block


def test_a_call_carries_what_is_the_servers_own_and_its_result_the_toolset() -> None:
    own = {"caller": {"type": "direct"}, "toolset_name": "browser"}
    call = ToolCall("a", "click", provider_data=own)
    _, called, answered = told(
        user("Go"), assistant("", call), tool_results([ToolResult("a", "click", "ok")])
    )
    assert called["content"][0].items() >= own.items()
    assert answered["content"][0]["toolset_name"] == "browser"


def test_what_the_model_showed_is_shown_in_the_users_next_turn() -> None:
    drawn = Message(Role.ASSISTANT, (Text("Look:"), Image("https://x/y.png")))
    turns = told(user("Draw"), drawn, user("Nice"))
    assert [block["type"] for block in turns[2]["content"]] == ["text", "image", "text"]
    assert told(user("Draw"), drawn)[2]["content"][1]["type"] == "image"


def test_citations_go_back_with_their_text() -> None:
    said = Message(Role.ASSISTANT, (Text("So.", {"citations": [{"type": "char_location"}]}),))
    cited = told(user("Hi"), said, user("And?"))[1]["content"][0]
    assert cited == {"type": "text", "text": "So.", "citations": [{"type": "char_location"}]}


def test_what_the_model_goes_on_from_ends_without_white_space() -> None:
    assert told(user("Sun?"), assistant("The best is (  \n"))[-1]["content"] == "The best is ("


def test_where_nothing_was_said_that_is_said() -> None:
    assert told() == [{"role": "user", "content": "(nothing)"}]
    assert [turn["role"] for turn in told(assistant("Hello"), user(" "))] == ["user", "assistant", "user"]


@pytest.mark.parametrize(
    ("part", "why"),
    [
        (Audio("https://x/y.mp3"), "Audio at all"),
        (Image(data_url(b"x", "image/bmp")), "give JPEG, PNG, GIF or WebP"),
        (Document(data_url(b"x", "application/zip")), "as data: give a PDF"),
        (Document("https://x/y.csv"), "by an address: give a PDF"),
        (Document("data:nothing"), "a data: address has a comma"),
    ],
)
def test_what_cannot_be_told_is_refused_with_what_to_do(part: Any, why: str) -> None:
    with pytest.raises(UserError, match=why):
        told(user([part]))


def test_audio_of_another_model_is_refused_too() -> None:
    with pytest.raises(UserError, match="Audio at all"):
        told(user("Hi"), Message(Role.ASSISTANT, (Audio("https://x/y.mp3"),)), user("And?"))
