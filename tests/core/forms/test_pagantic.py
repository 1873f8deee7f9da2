"""pagantic's form: its keys, its roles, and our messages in it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given

from flyball.core.errors import InvalidMessage
from flyball.core.forms import pagantic
from flyball.core.messages import (
    Image,
    Message,
    Retry,
    Role,
    Text,
    ToolCall,
    ToolResult,
    assistant,
    system,
    tool_results,
    user,
)
from flyball.core.tools import ToolDefinition
from flyball.core.usage import Usage
from tests.core.forms.ours import calls, flat_histories


@given(flat_histories(calls(), thinks=False))
def test_our_messages_come_back(history: list[Message]) -> None:
    assert pagantic.read_messages(pagantic.write_messages(history)) == tuple(history)


CONVERSATION: list[dict[str, Any]] = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "Weather?"},
    {
        "role": "assistant",
        "content": "",
        "tool_calls": [
            {"id": "c1", "name": "weather", "arguments": {"city": "Paris"}},
            {"id": "c2", "name": "weather", "arguments": {}},
        ],
    },
    {"role": "tool", "content": "sun", "tool_call_id": "c1", "name": "weather"},
    {"role": "tool", "content": "rain", "tool_call_id": "c2", "name": "weather"},
    {"role": "assistant", "content": "Mixed."},
]


def test_a_conversation() -> None:
    messages = pagantic.read_messages(CONVERSATION)
    assert messages == (
        system("Be brief."),
        user("Weather?"),
        assistant("", ToolCall("c1", "weather", '{"city":"Paris"}'), ToolCall("c2", "weather")),
        tool_results([ToolResult("c1", "weather", "sun"), ToolResult("c2", "weather", "rain")]),
        assistant("Mixed."),
    )
    assert pagantic.write_messages(messages) == CONVERSATION


@pytest.mark.parametrize(
    ("answers", "groups"),
    [
        ("ab", ["ab"]),
        ("ba", ["ba"]),
        ("a", ["a"]),
        ("aab", ["a", "a", "b"]),  # the second answer to a call answers none that is open
        ("axb", ["a", "x", "b"]),
        ("x", ["x"]),
        ("xy", ["x", "y"]),
    ],
)
def test_which_tool_messages_are_joined(answers: str, groups: list[str]) -> None:
    call: dict[str, Any] = {"role": "assistant", "content": ""}
    call["tool_calls"] = [{"id": one, "name": "f", "arguments": {}} for one in "ab"]
    documents = [call, *[{"role": "tool", "content": one, "tool_call_id": one} for one in answers]]
    _, *results = pagantic.read_messages(documents)
    # A doubled answer closes the group; what follows it and is still open begins another.
    assert ["".join(result.call_id for result in message.tool_results) for message in results] == groups
    assert pagantic.write_messages(pagantic.read_messages(documents)) == documents


def test_calls_are_forgotten_when_somebody_else_speaks() -> None:
    documents = [CONVERSATION[2], CONVERSATION[3], CONVERSATION[1], CONVERSATION[4]]
    assert [len(message.parts) for message in pagantic.read_messages(documents)] == [2, 1, 1, 1]


def test_unknown_keys_stay_at_their_level() -> None:
    document: dict[str, Any] = {
        "role": "assistant",
        "content": "hi",
        "tool_calls": [{"id": "c", "name": "f", "arguments": {}, "x": 1}],
        "x": 2,
    }
    message = pagantic.read_message(document)
    assert message.extra == {"x": 2}
    assert message.tool_calls[0].extra == {"x": 1}
    result = pagantic.read_message({"role": "tool", "content": "r", "tool_call_id": "c", "x": 3})
    assert result.tool_results[0].extra == {"x": 3}


def test_an_extra_never_poses_as_a_key_of_the_form() -> None:
    message = Message(Role.USER, (Text("hi"),), extra={"tool_call_id": "c", "role": "system", "x": 1})
    assert pagantic.write_messages([message]) == [{"role": "user", "content": "hi", "x": 1}]


def test_several_texts_become_one() -> None:
    spoken = Message(Role.ASSISTANT, (Text("a"), ToolCall("c", "f"), Text("b")))
    documents = pagantic.write_messages([system("a", "b"), user([Text("a"), Retry("b")]), spoken])
    assert [document["content"] for document in documents] == ["a\n\nb", "a\n\nb", "ab"]


def test_a_failed_result_is_what_the_model_reads() -> None:
    (document,) = pagantic.write_messages([tool_results([ToolResult("c", "f", error="broke")])])
    assert document == {"role": "tool", "content": "broke", "tool_call_id": "c", "name": "f"}
    (structured,) = pagantic.write_messages([tool_results([ToolResult("c", "f", {"n": 1})])])
    assert structured["content"] == '{"n":1}'


@pytest.mark.parametrize(
    "message",
    [
        user(["look", Image("https://x/y.png")]),
        Message(Role.ASSISTANT, (Image("https://x/y.png"),)),
        tool_results([ToolResult("c", "f", "r", images=(Image("https://x/y.png"),))]),
        Message(Role.TOOL, (Text("x"),)),
    ],
)
def test_content_that_has_no_place_is_refused(message: Message) -> None:
    with pytest.raises(InvalidMessage, match="pagantic form has no place"):
        pagantic.write_messages([message])


def test_a_call_that_was_broken_off_can_still_be_written() -> None:
    broken = assistant("", ToolCall("c", "f", '{"city": "Par'))
    (document,) = pagantic.write_messages([broken])
    assert document["tool_calls"] == [{"id": "c", "name": "f", "arguments": {}, "args_json": '{"city": "Par'}]
    assert pagantic.read_message(document) == broken


MALFORMED: list[tuple[Any, str]] = [
    ({}, "message.role"),
    ({"role": "oracle"}, "message.role"),
    ({"role": "user", "content": ["parts"]}, "message.content"),
    ({"role": "user", "content": "x", "tool_calls": [{}]}, "message.tool_calls"),
    ({"role": "user", "content": "x", "tool_call_id": "c"}, "message.tool_call_id"),
    ({"role": "assistant", "content": "x", "tool_call_id": "c"}, "message.tool_call_id"),
    ({"role": "tool", "content": "x", "tool_calls": [{}]}, "message.tool_calls"),
    ({"role": "assistant", "tool_calls": {}}, "message.tool_calls"),
    ({"role": "assistant", "tool_calls": [{"id": "a"}, {"id": 3}]}, "message.tool_calls[1].id"),
    ({"role": "assistant", "tool_calls": [{"arguments": "{}"}]}, "message.tool_calls[0].arguments"),
    ([], "message"),
]


@pytest.mark.parametrize(("document", "where"), MALFORMED)
def test_what_is_malformed_is_placed(document: Any, where: str) -> None:
    with pytest.raises(InvalidMessage) as caught:
        pagantic.read_message(document)
    assert caught.value.details["where"] == where
    assert where in str(caught.value)


@pytest.mark.parametrize(
    ("document", "result"),
    [
        ({"call_id": "c", "name": "f", "content": "ok", "is_error": False}, ToolResult("c", "f", "ok")),
        ({"call_id": "c", "name": "f", "content": "no", "is_error": True}, ToolResult("c", "f", error="no")),
    ],
)
def test_tool_results(document: dict[str, Any], result: ToolResult) -> None:
    assert pagantic.read_tool_result(document) == result
    assert pagantic.write_tool_result(result) == document


def test_a_result_with_images_is_refused() -> None:
    with pytest.raises(InvalidMessage):
        pagantic.write_tool_result(ToolResult("c", "f", "r", images=(Image("https://x/y.png"),)))


def test_tool_definitions() -> None:
    document = {"name": "f", "description": "Does it.", "parameters": {"type": "object"}}
    assert pagantic.read_tool_definition(document) == ToolDefinition("f", {"type": "object"}, "Does it.")


def test_usage() -> None:
    document = {
        "prompt_tokens": 1,
        "reasoning_tokens": 2,
        "output_tokens": 3,
        "context_tokens": 4,
        "context_window": 5,
        "tokens_per_second": 6.5,
    }
    usage = Usage(1, 3, 2, context_tokens=4, context_window=5, tokens_per_second=6.5)
    assert pagantic.read_usage(document) == usage
    assert pagantic.write_usage(usage) == document
    assert pagantic.read_usage({}) == Usage()
    for wrong in ({"prompt_tokens": 1.5}, {"prompt_tokens": True}, {"tokens_per_second": 10**400}):
        with pytest.raises(InvalidMessage):
            pagantic.read_usage(wrong)
