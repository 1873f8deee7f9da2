"""Ids and names of calls go back to any vendor, and stay what they were where they can."""

from __future__ import annotations

import re

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flyball.core.messages import Message, Role, ToolCall, ToolResult, user
from flyball.engines.anthropic.encode import messages_body
from flyball.engines.google.contents import history_of
from flyball.engines.google.generations import generation_of
from flyball.engines.openai.chat.encode import chat_messages
from flyball.engines.openai.dialect import OPENAI
from flyball.engines.openai.responses.encode import input_items
from flyball.engines.wire.calls import INVALID, arguments_of, fitting_id, fitting_name
from flyball.inference.request import Request

_ID = re.compile(r"[A-Za-z0-9_-]{1,40}")
_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")


@given(one=st.text(), other=st.text())
def test_ids_fit_and_differ_as_before(one: str, other: str) -> None:
    assert _ID.fullmatch(fitting_id(one))
    assert (fitting_id(one) == fitting_id(other)) == (one == other)
    assert fitting_id(fitting_id(one)) == fitting_id(one)


@given(name=st.text())
def test_names_fit(name: str) -> None:
    told = fitting_name(name)
    assert _NAME.fullmatch(told)
    assert told == name or not _NAME.fullmatch(name)


@pytest.mark.parametrize(("args", "told"), [("", {}), ('{"a": 1}', {"a": 1}), ("[1]", {INVALID: "[1]"})])
def test_arguments_are_an_object(args: str, told: object) -> None:
    assert arguments_of(ToolCall("a", "f", args)) == told


@pytest.mark.parametrize("name", ["", "functions.look up", "n" * 100])
def test_what_is_no_tool_goes_back_under_a_name_that_is_taken(name: str) -> None:
    call, result = ToolCall("a", name), ToolResult("a", name, None, "there is no such tool")
    messages = [user("hi"), Message(Role.ASSISTANT, (call,)), Message(Role.TOOL, (result,))]
    told = [
        chat_messages(messages, OPENAI),
        list(input_items(messages)),
        messages_body(Request(tuple(messages)), "claude-sonnet-4-5", stream=False),
        history_of(messages, generation_of("gemini-2.5-pro")).contents,
    ]
    for body in told:
        names = re.findall(r'"name":"([^"]*)"', msgspec.json.encode(body).decode())
        assert names
        assert all(_NAME.fullmatch(one) for one in names), names
