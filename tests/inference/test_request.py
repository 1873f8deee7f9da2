from __future__ import annotations

import msgspec
import pytest
from msgspec.structs import replace

from flyball.core.messages import FinishReason, ToolCall, assistant, user
from flyball.core.tools import ToolChoice, ToolDefinition
from flyball.core.usage import Usage
from flyball.inference.request import OutputObject, Request, Result


def test_a_request_survives_being_written_down() -> None:
    request = Request(
        (user("hello"),),
        tools=(ToolDefinition("add", {"type": "object"}),),
        tool_choice=ToolChoice("required"),
        output=OutputObject({"type": "object"}),
        grammar="root ::= [a-z]",
        allows_text=False,
        id="loop/1/1/infer/0",
    )
    assert msgspec.json.decode(msgspec.json.encode(request), type=Request) == request


@pytest.mark.parametrize(
    ("name", "run_id"),
    [("trip/7/1/2/infer/0", "trip/7"), ("trip/1/1/infer/0", "trip"), ("mine", ""), ("", "")],
)
def test_a_request_says_which_run_asks(name: str, run_id: str) -> None:
    assert Request((user("hello"),), id=name).run_id == run_id


def test_a_result_shows_its_message() -> None:
    call = ToolCall("1", "add")
    result = Result(replace(assistant("hi", call), usage=Usage(1, 2)))
    assert result.content == "hi"
    assert result.tool_calls == (call,)
    assert result.messages == (result.message,)
    assert result.usage == Usage(1, 2)
    assert Result(assistant("hi")).usage == Usage()


@pytest.mark.parametrize(
    ("result", "reason"),
    [
        (Result(assistant("hi")), FinishReason.STOP),
        (Result(assistant("", ToolCall("1", "add"))), FinishReason.TOOL_CALL),
        (Result(replace(assistant("hi"), finish_reason=FinishReason.LENGTH)), FinishReason.LENGTH),
    ],
)
def test_why_it_stopped_is_told_from_the_message_where_nobody_said(
    result: Result, reason: FinishReason
) -> None:
    assert result.finish_reason is reason
