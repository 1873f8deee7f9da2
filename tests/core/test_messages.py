"""Messages: the constructors make valid ones only, and a role carries what it may."""

from __future__ import annotations

from typing import Any, cast

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flyball.core.errors import IncompleteToolCall, InvalidMessage
from flyball.core.messages import (
    FinishReason,
    Image,
    Message,
    Part,
    Role,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    assistant,
    data_url,
    system,
    tool_result,
    tool_results,
    user,
)
from tests.strategies import PARTS, json_objects, messages, names


@given(messages)
def test_a_valid_message_passes_its_own_check_and_comes_back_from_json(message: Message) -> None:
    assert message.check() is message
    assert msgspec.json.decode(msgspec.json.encode(message), type=Message) == message


@given(st.sampled_from(Role), st.data())
def test_a_role_refuses_what_only_others_carry(role: Role, data: st.DataObject) -> None:
    other = data.draw(st.sampled_from([one for one in Role if one is not role]))
    part = data.draw(PARTS[other])
    message = Message(role, (part,))
    may = isinstance(part, Text) and role is not Role.TOOL
    if may or {role, other} == {Role.USER, Role.ASSISTANT}:
        return  # text, images and sound are said by several
    with pytest.raises(InvalidMessage) as caught:
        message.check()
    assert str(role) in str(caught.value)
    assert type(part).__name__ in str(caught.value)


@pytest.mark.parametrize(
    ("role", "part"),
    [
        (Role.USER, Thinking("hm")),
        (Role.USER, ToolCall("c", "f")),
        (Role.ASSISTANT, ToolResult("c", "f")),
        (Role.SYSTEM, Image("https://x/y.png")),
        (Role.TOOL, Text("hi")),
    ],
)
def test_wrong_combinations_are_named(role: Role, part: Part) -> None:
    with pytest.raises(InvalidMessage, match=type(part).__name__):
        Message(role, (part,)).check()


@pytest.mark.parametrize("role", Role)
def test_an_empty_message_is_refused(role: Role) -> None:
    with pytest.raises(InvalidMessage, match="at least one part"):
        Message(role).check()


def test_an_unknown_role_is_refused() -> None:
    with pytest.raises(InvalidMessage, match="no role 'oracle'"):
        Message(cast("Role", "oracle"), (Text("x"),)).check()


def test_the_constructors() -> None:
    call = ToolCall("c1", "search")
    assert system("a", "b").parts == (Text("a"), Text("b"))
    assert user("hi") == Message(Role.USER, (Text("hi"),))
    assert user(["look", Image("https://x/y.png")]).parts == (Text("look"), Image("https://x/y.png"))
    assert user(Text("hi")).text == "hi"
    assert assistant("on it", call).parts == (Text("on it"), call)
    assert assistant("", call).parts == (call,)
    assert tool_result("c1", "search", {"n": 1}) == tool_results([ToolResult("c1", "search", {"n": 1})])


@pytest.mark.parametrize(
    "make",
    [
        system,
        assistant,
        lambda: assistant([]),
        lambda: user([]),
        lambda: tool_results([]),
        lambda: user(cast("Any", None)),
        lambda: user(cast("Any", {"a": "dict"})),
        lambda: user(cast("Any", b"bytes")),
        lambda: user(cast("Any", [3])),
        lambda: user(Thinking("hm")),
        lambda: assistant(ToolResult("c", "f")),
    ],
)
def test_the_constructors_refuse_what_makes_no_message(make: Any) -> None:
    with pytest.raises(InvalidMessage):
        make()


def test_the_views() -> None:
    call = ToolCall("c", "f")
    message = Message(Role.ASSISTANT, (Thinking("h"), Thinking("m"), Text("a"), call, Text("b")))
    assert (message.text, message.thinking, message.tool_calls) == ("ab", "hm", (call,))
    results = (ToolResult("c", "f", 1), ToolResult("d", "f", "x"))
    assert tool_results(results).tool_results == results


@given(json_objects)
def test_arguments_are_what_the_text_says(arguments: dict[str, Any]) -> None:
    call = ToolCall("c", "f", msgspec.json.encode(arguments).decode())
    assert call.arguments == arguments


@given(names, st.text())
def test_arguments_are_an_object_or_an_incomplete_call(name: str, text: str) -> None:
    broken: IncompleteToolCall | None = None
    try:
        assert isinstance(ToolCall("c", name, text).arguments, dict)
    except IncompleteToolCall as error:
        broken = error
    if broken is not None:
        assert name in str(broken)
        assert broken.details == {"tool": name, "body": text}


@pytest.mark.parametrize("text", ["", "  ", "{}"])
def test_no_arguments(text: str) -> None:
    assert ToolCall("c", "f", text).arguments == {}


@pytest.mark.parametrize(
    "text", ['{"a":', "[]", "null", "\ud800", '{"a":"\ud800"}', "[" * 100_000, '{"a":1e999}']
)
def test_broken_arguments(text: str) -> None:
    with pytest.raises(IncompleteToolCall):
        _ = ToolCall("c", "f", text).arguments


@pytest.mark.parametrize(
    ("result", "text", "is_error"),
    [
        (ToolResult("c", "f", "plain"), "plain", False),
        (ToolResult("c", "f", {"a": [1, None]}), '{"a":[1,null]}', False),
        (ToolResult("c", "f"), "null", False),
        (ToolResult("c", "f", "part", error="broke"), "broke", True),
        (ToolResult("c", "f", error=""), "", True),
    ],
)
def test_what_the_model_reads_of_a_result(result: ToolResult, text: str, is_error: bool) -> None:
    assert (result.text, result.is_error) == (text, is_error)


@pytest.mark.parametrize(
    ("reason", "status", "event_value", "cut_short"),
    [
        (FinishReason.STOP, "complete", "stop", False),
        (FinishReason.LENGTH, "complete", "stop", True),
        (FinishReason.CONTENT_FILTER, "complete", "stop", True),
        (FinishReason.TOOL_CALL, "tool_call", "tool", False),
        (FinishReason.ERROR, "error", "error", False),
    ],
)
def test_the_three_words_for_why_the_model_stopped(
    reason: FinishReason, status: str, event_value: str, cut_short: bool
) -> None:
    assert (reason.status, reason.event_value, reason.cut_short) == (status, event_value, cut_short)


def test_a_data_address() -> None:
    assert data_url(b"\x00\x01", "image/png") == "data:image/png;base64,AAE="
