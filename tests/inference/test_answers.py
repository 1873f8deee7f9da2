from __future__ import annotations

from typing import Any, cast

import pytest

from flyball.core.errors import InvalidMessage, UserError
from flyball.core.messages import (
    FinishReason,
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
from flyball.inference.answers import (
    Answer,
    multi_tool_call_answer,
    result_of,
    text_answer,
    tool_call,
    tool_call_answer,
)
from flyball.inference.request import Request, Result

REQUEST = Request((user("hello"),))


def parts_of(answer: Answer, request: Request = REQUEST) -> tuple[object, ...]:
    return result_of(answer, request, "m").message.parts


def test_text_becomes_a_message_of_the_model() -> None:
    assert result_of("hi", REQUEST, "m") == Result(
        Message(Role.ASSISTANT, (Text("hi"),), model="m", finish_reason=FinishReason.STOP)
    )


def test_calls_become_a_message_that_asks_for_them() -> None:
    answer = result_of([ToolCall("a", "add"), ToolCall("b", "add")], REQUEST, "m")
    assert answer.tool_calls == (ToolCall("a", "add"), ToolCall("b", "add"))
    assert answer.message.finish_reason is FinishReason.TOOL_CALL
    assert parts_of(ToolCall("a", "add")) == (ToolCall("a", "add"),)


def test_what_an_answer_says_is_kept() -> None:
    message = Message(
        Role.ASSISTANT,
        (Thinking("hm"), Text("hi")),
        usage=Usage(1, 2),
        model="other",
        finish_reason=FinishReason.LENGTH,
        extra={"a": 1},
    )
    assert result_of(Result(message, "r"), REQUEST, "m") == Result(message, "r")


def test_what_no_stream_carries_is_left_out() -> None:
    message = Message(Role.ASSISTANT, (Text("hi"),), name="bot", timestamp=1.0)
    settled = result_of(message, REQUEST, "m").message
    assert (settled.name, settled.timestamp) == (None, None)


def test_functions_are_asked_with_the_request() -> None:
    assert parts_of(lambda request: lambda again: f"{request is again} {request.messages[0].text}") == (
        Text("True hello"),
    )


def test_exceptions_are_raised() -> None:
    with pytest.raises(ZeroDivisionError, match="as given"):
        result_of(ZeroDivisionError("as given"), REQUEST, "m")
    with pytest.raises(ZeroDivisionError, match="asked"):
        result_of(lambda _: ZeroDivisionError("asked"), REQUEST, "m")


@pytest.mark.parametrize("nonsense", [None, 3, [], {}, [ToolCall("a", "add"), "text"], object()])
def test_what_is_no_answer_is_refused_with_the_forms_that_are(nonsense: object) -> None:
    with pytest.raises(UserError, match="give text, a Message"):
        result_of(cast("Any", nonsense), REQUEST, "m")


def test_only_an_assistant_answers() -> None:
    with pytest.raises(InvalidMessage, match="user message"):
        result_of(user("hi"), REQUEST, "m")


def test_helpers_write_arguments_as_json_or_as_they_are() -> None:
    assert tool_call("add", {"a": [1, None]}).args_json == '{"a":[1,null]}'
    assert tool_call("add").args_json == "{}"
    assert tool_call("add", '{"a": ').args_json == '{"a": '
    assert tool_call_answer("add", {"a": 1}, id="x", usage=Usage(1)) == Message(
        Role.ASSISTANT,
        (ToolCall("x", "add", '{"a":1}'),),
        usage=Usage(1),
        finish_reason=FinishReason.TOOL_CALL,
    )
    assert text_answer("hi", Usage(2)).usage == Usage(2)


def test_several_calls_need_at_least_one() -> None:
    with pytest.raises(InvalidMessage):
        multi_tool_call_answer()


def test_ids_are_given_where_there_are_none_and_are_the_same_each_time() -> None:
    answer = multi_tool_call_answer(tool_call("a"), tool_call("b", id="call_2"), tool_call("c"))
    ids = [call.id for call in result_of(answer, REQUEST, "m").tool_calls]
    assert ids == ["call_1", "call_2", "call_3"]
    assert [call.id for call in result_of(answer, REQUEST, "m").tool_calls] == ids


def test_ids_go_on_from_the_history() -> None:
    history = Request(
        (
            user("hello"),
            assistant("", ToolCall("call_1", "a"), ToolCall("call_4", "a")),
            tool_result("call_1", "a", 1),
        )
    )
    answer = multi_tool_call_answer(tool_call("a"), tool_call("b"))
    assert [call.id for call in result_of(answer, history, "m").tool_calls] == ["call_3", "call_5"]
