"""SemStreams' form: its keys, what Go leaves out, and our messages in it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flyball.core.errors import InvalidMessage, InvalidRequest
from flyball.core.forms import semstreams
from flyball.core.messages import (
    Image,
    Message,
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
from flyball.core.tools import ToolChoice, ToolDefinition
from flyball.core.usage import Usage
from tests.core.forms.documents import filled_objects, filled_texts, texts
from tests.core.forms.ours import calls, extras, flat_histories
from tests.strategies import maybe

sem_calls = calls(metadata=maybe(filled_objects), loop_id=maybe(filled_texts), trace_id=maybe(filled_texts))
sem_results = st.builds(
    ToolResult,
    call_id=texts,
    name=texts,
    content=filled_texts,
    error=maybe(filled_texts),
    metadata=maybe(filled_objects),
    stop_loop=st.booleans(),
    loop_id=maybe(filled_texts),
    trace_id=maybe(filled_texts),
    extra=extras,
)


@given(flat_histories(sem_calls, thinks=True))
def test_our_messages_come_back(history: list[Message]) -> None:
    assert semstreams.read_messages(semstreams.write_messages(history)) == tuple(history)


@given(sem_calls)
def test_our_calls_come_back(call: ToolCall) -> None:
    assert semstreams.read_tool_call(semstreams.write_tool_call(call)) == call


@given(sem_results)
def test_our_results_come_back(result: ToolResult) -> None:
    assert semstreams.read_tool_result(semstreams.write_tool_result(result)) == result


@pytest.mark.parametrize("result", [ToolResult("c", "f", ""), ToolResult("c", "f", None, error="broke")])
def test_results_without_content_come_back(result: ToolResult) -> None:
    document = semstreams.write_tool_result(result)
    assert "content" not in document
    assert semstreams.read_tool_result(document) == result


def test_the_assistant_of_the_document() -> None:
    document = {
        "role": "assistant",
        "tool_calls": [{"id": "call_001", "name": "read_file", "arguments": {"path": "main.go"}}],
    }
    message = semstreams.read_message(document)
    assert message == assistant("", ToolCall("call_001", "read_file", '{"path":"main.go"}'))
    assert semstreams.write_messages([message]) == [document]


@pytest.mark.parametrize(
    ("keys", "reasoning"),
    [
        ({"reasoning_content": "thinking..."}, "thinking..."),
        ({"reasoning": "thinking via ollama"}, "thinking via ollama"),
        ({"reasoning_content": "canonical", "reasoning": "alias"}, "canonical"),
        ({"reasoning_content": "", "reasoning": "alias"}, "alias"),
        ({"reasoning_content": None, "reasoning": "alias"}, "alias"),
        ({}, ""),
    ],
)
def test_both_words_for_reasoning_are_read_and_one_is_written(keys: dict[str, Any], reasoning: str) -> None:
    message = semstreams.read_message({"role": "assistant", "content": "answer"} | keys)
    assert (message.thinking, message.text, message.extra) == (reasoning, "answer", None)
    (document,) = semstreams.write_messages([message])
    assert "reasoning" not in document
    assert document.get("reasoning_content", "") == reasoning


def test_thinking_comes_first_and_is_one() -> None:
    message = Message(Role.ASSISTANT, (Text("a"), Thinking("x", "sig"), ToolCall("c", "f"), Thinking("y")))
    (document,) = semstreams.write_messages([message])
    assert document == {
        "role": "assistant",
        "content": "a",
        "reasoning_content": "xy",
        "tool_calls": [{"id": "c", "name": "f"}],
    }
    assert [type(part) for part in semstreams.read_message(document).parts] == [Thinking, Text, ToolCall]


def test_what_is_empty_is_left_out() -> None:
    assert semstreams.write_messages([user("")]) == [{"role": "user"}]
    assert semstreams.write_tool_call(ToolCall("c", "f", "{}", metadata={})) == {"id": "c", "name": "f"}
    assert semstreams.write_tool_result(ToolResult("c", "", "")) == {"call_id": "c"}
    assert semstreams.write_tool_definition(ToolDefinition("f", {})) == {
        "name": "f",
        "description": "",
        "parameters": {},
    }
    assert semstreams.write_usage(Usage()) == {"prompt_tokens": 0, "completion_tokens": 0}


def test_all_keys_of_a_result() -> None:
    document = {
        "call_id": "c",
        "name": "f",
        "content": "done",
        "error": "but",
        "metadata": {"k": 1},
        "loop_id": "l",
        "trace_id": "t",
        "stop_loop": True,
    }
    result = ToolResult("c", "f", "done", "but", metadata={"k": 1}, stop_loop=True, loop_id="l", trace_id="t")
    assert semstreams.read_tool_result(document) == result
    assert semstreams.write_tool_result(result) == document
    assert semstreams.write_tool_result(ToolResult("c", "f", [1]))["content"] == "[1]"


@pytest.mark.parametrize(
    ("document", "choice", "written"),
    [
        ({"mode": "auto"}, ToolChoice(), None),
        ({}, ToolChoice(), {"mode": "auto"}),
        ({"mode": "required"}, ToolChoice("required"), None),
        ({"mode": "none"}, ToolChoice("none"), None),
        ({"mode": "function", "function_name": "f"}, ToolChoice("function", "f"), None),
        ({"mode": "auto", "function_name": "f"}, ToolChoice(), {"mode": "auto"}),
    ],
)
def test_tool_choices(document: dict[str, Any], choice: ToolChoice, written: dict[str, Any] | None) -> None:
    assert semstreams.read_tool_choice(document) == choice
    assert semstreams.write_tool_choice(choice) == (written or document)


def test_gollem_s_way_to_force_a_tool_is_written_as_a_function() -> None:
    assert semstreams.write_tool_choice(ToolChoice("auto", "f")) == {"mode": "function", "function_name": "f"}


@pytest.mark.parametrize(
    ("document", "where"),
    [
        ({"mode": "maybe"}, "tool_choice.mode"),
        ({"mode": "function"}, "tool_choice.function_name"),
        ({"mode": 3}, "tool_choice.mode"),
    ],
)
def test_wrong_tool_choices_are_placed(document: dict[str, Any], where: str) -> None:
    with pytest.raises(InvalidMessage) as caught:
        semstreams.read_tool_choice(document)
    assert caught.value.details["where"] == where


MALFORMED: list[tuple[Any, str]] = [
    ({"role": "User"}, "message.role"),
    ({"role": "user", "reasoning_content": "hm"}, "message.reasoning_content"),
    ({"role": "tool", "reasoning": "hm"}, "message.reasoning"),
    ({"role": "system", "tool_calls": [{}]}, "message.tool_calls"),
    ({"role": "assistant", "tool_call_id": "c"}, "message.tool_call_id"),
    ({"role": "assistant", "tool_calls": [{"metadata": []}]}, "message.tool_calls[0].metadata"),
]


@pytest.mark.parametrize(("document", "where"), MALFORMED)
def test_what_is_malformed_is_placed(document: dict[str, Any], where: str) -> None:
    with pytest.raises(InvalidMessage) as caught:
        semstreams.read_message(document)
    assert caught.value.details["where"] == where


@pytest.mark.parametrize(
    "message",
    [
        system("x"),
        user("x"),
        assistant("x"),
        assistant("", ToolCall("c", "f")),
        Message(Role.ASSISTANT, (Thinking("hm"),)),
        tool_results([ToolResult("c", "f", "r")]),
    ],
)
def test_valid_messages(message: Message) -> None:
    semstreams.validate_message(message)


@pytest.mark.parametrize(
    "message",
    [
        user(""),
        Message(Role.ASSISTANT),
        Message(Role.TOOL),
        Message(Role.ASSISTANT, (Text(""), Thinking(""))),
        tool_results([ToolResult("c", "f", "r"), ToolResult("d", "f", "")]),
    ],
)
def test_a_message_that_says_nothing_is_invalid(message: Message) -> None:
    with pytest.raises(InvalidMessage, match="content, reasoning_content, or tool_calls") as caught:
        semstreams.validate_message(message)
    assert caught.value.details["field"] == "content"


@pytest.mark.parametrize(
    ("check", "field", "error"),
    [
        (lambda: semstreams.validate_tool_call(ToolCall("", "f")), "id", InvalidMessage),
        (lambda: semstreams.validate_tool_call(ToolCall("c", "")), "name", InvalidMessage),
        (lambda: semstreams.validate_tool_result(ToolResult("", "f")), "call_id", InvalidMessage),
        (lambda: semstreams.validate_tool_definition(ToolDefinition("", {"a": 1})), "name", InvalidRequest),
        (lambda: semstreams.validate_tool_definition(ToolDefinition("f", {})), "parameters", InvalidRequest),
    ],
)
def test_what_is_missing_is_named(check: Any, field: str, error: type[Exception]) -> None:
    with pytest.raises(error) as caught:
        check()
    assert caught.value.details["field"] == field  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]


def test_what_is_complete_is_valid() -> None:
    semstreams.validate_tool_call(ToolCall("c", "f"))
    semstreams.validate_tool_result(ToolResult("c", ""))
    semstreams.validate_tool_definition(ToolDefinition("f", {"type": "object"}))
    for choice in (ToolChoice(), ToolChoice("required"), ToolChoice("function", "f")):
        semstreams.validate_tool_choice(choice)


def test_images_have_no_place() -> None:
    with pytest.raises(InvalidMessage, match="SemStreams form has no place"):
        semstreams.write_messages([user(Image("https://x/y.png"))])
    with pytest.raises(InvalidMessage):
        semstreams.write_tool_result(ToolResult("c", "f", images=(Image("https://x/y.png"),)))
