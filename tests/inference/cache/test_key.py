"""Keys: equal content has equal keys, and different content different ones."""

from __future__ import annotations

from typing import Any

import msgspec
from hypothesis import assume, given
from hypothesis import strategies as st
from msgspec.structs import replace

from flyball.core.messages import Message, Role, ToolCall, ToolResult, assistant, user
from flyball.core.settings import ModelSettings
from flyball.core.usage import Usage
from flyball.inference.cache.key import request_key
from flyball.inference.request import ModelInfo, OutputObject, Request
from tests.strategies import choices, definitions, json_objects, maybe, messages, names, settings, texts

MODEL = ModelInfo("gpt-9", 1000, "openai")
requests = st.builds(
    Request,
    messages=st.lists(messages, min_size=1, max_size=3).map(tuple),
    tools=st.lists(definitions, max_size=2, unique_by=lambda tool: tool.name).map(tuple),
    settings=settings,
    tool_choice=maybe(choices),
    output=maybe(st.builds(OutputObject, schema=json_objects, name=names)),
    grammar=maybe(texts),
    allows_text=st.booleans(),
)


def reversed_keys(value: Any) -> Any:
    """The same JSON, its objects' keys the other way round."""
    if isinstance(value, dict):
        return {name: reversed_keys(inner) for name, inner in reversed(value.items())}  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    return [reversed_keys(inner) for inner in value] if isinstance(value, list) else value  # pyright: ignore[reportUnknownVariableType]


@given(requests, texts, maybe(st.floats(0, 4e9)), maybe(st.floats(0, 4e9)))
def test_equal_content_has_equal_keys(
    request: Request, effect: str, deadline: float | None, timestamp: float | None
) -> None:
    key = request_key(request, MODEL)
    assert key is not None
    assert len(key) == 64
    again = msgspec.convert(reversed_keys(msgspec.to_builtins(request)), Request)
    said = [replace(one, timestamp=timestamp, usage=Usage(9)) for one in again.messages]
    other = replace(again, id=effect, deadline=deadline, messages=tuple(said))
    assert request_key(other, replace(MODEL, context_window=7)) == key


def content(request: Request) -> bytes:
    """All that is asked, as bytes that are the same for equal requests."""
    said = [_said(one) for one in request.messages]
    return msgspec.json.encode(replace(request, messages=tuple(said)), order="deterministic")


def _said(message: Message) -> Message:
    parts = [
        replace(part, loop_id=None, trace_id=None) if isinstance(part, ToolCall | ToolResult) else part
        for part in message.parts
    ]
    return replace(message, usage=None, timestamp=None, parts=tuple(parts))


@given(requests, requests, st.sets(st.sampled_from(Request.__struct_fields__[:7]), min_size=1))
def test_different_content_has_different_keys(one: Request, other: Request, fields: set[str]) -> None:
    mixed = replace(one, **{name: getattr(other, name) for name in fields})
    assume(content(one) != content(mixed))
    assert request_key(one, MODEL) != request_key(mixed, MODEL)


@given(requests, st.tuples(texts, texts), st.tuples(texts, texts))
def test_another_model_has_another_key(
    request: Request, one: tuple[str, str], other: tuple[str, str]
) -> None:
    assume(one != other)
    keys = [request_key(request, ModelInfo(name, 0, provider)) for name, provider in (one, other)]
    assert keys[0] != keys[1]


def test_how_an_answer_came_about_is_nothing() -> None:
    plain = replace(assistant("hi"), extra={"sent": "abc"})
    noted = replace(assistant("hi"), extra={"sent": "abc", "attempts": [{}], "cached": {"usage": {}}})
    bare = replace(assistant("hi"), extra={"attempts": [{}]})
    keys = [
        request_key(Request((user("a"), said, user("b"))), MODEL)
        for said in (plain, noted, bare, assistant("hi"))
    ]
    assert keys[0] == keys[1]
    assert keys[2] == keys[3]
    assert keys[0] != keys[2]


def test_whose_a_call_is_is_nothing() -> None:
    def asked(loop: str | None) -> Request:
        call = ToolCall("c1", "add", loop_id=loop, trace_id=loop)
        back = ToolResult("c1", "add", 3, loop_id=loop, trace_id=loop)
        return Request((user("a"), Message(Role.ASSISTANT, (call,)), Message(Role.TOOL, (back,))))

    assert (
        request_key(asked("one"), MODEL)
        == request_key(asked("two"), MODEL)
        == request_key(asked(None), MODEL)
    )


def test_what_has_no_json_form_has_no_key() -> None:
    assert request_key(Request((user("a"),), settings=ModelSettings(options={"x": object()})), MODEL) is None
    assert request_key(Request((user("\ud800"),)), MODEL) is None


def test_keys_stay_what_they_are() -> None:
    """Files that were kept are to be found again: another key is another `_FORMAT`."""
    key = request_key(Request((user("hello"),), settings=ModelSettings(temperature=0.0)), MODEL)
    assert key == "25225888f9cfc77edc0437e2a539479af6543cdb1c715b967f7ec36d7496e040"
