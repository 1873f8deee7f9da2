"""Thoughts and calls in a text are read, however it is cut; what is neither stays as it was."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flyball.core.messages import FinishReason, Message, Role, Text, Thinking, ToolCall, user
from flyball.core.tools import ToolDefinition
from flyball.engines.openai.written import read_written
from flyball.engines.openai.written.calls import calls_in
from flyball.engines.openai.written.splitting import Kind, Splitter
from flyball.inference.request import Request, Result

LOOK = {"type": "object", "properties": {"city": {"type": "string"}, "days": {"type": "integer"}}}
TOOLS: dict[str, dict[str, Any]] = {"look": LOOK, "go": {"type": "object"}}
REQUEST = Request((user("hi"),), tuple([ToolDefinition(name, schema) for name, schema in TOOLS.items()]))

PARIS = ("look", '{"city":"Paris"}')
FORMS = {
    "hermes": ('<tool_call>\n{"name": "look", "arguments": {"city": "Paris"}}\n</tool_call>', [PARIS]),
    "hermes, two": (
        '<tool_call>{"name": "look", "arguments": {"city": "Paris"}}</tool_call>\n'
        '<tool_call>{"name": "go", "arguments": {}}</tool_call>',
        [PARIS, ("go", "{}")],
    ),
    "hermes, not closed": ('<tool_call>{"name": "look", "arguments": {"city": "Paris"}}', [PARIS]),
    "qwen coder": (
        "<tool_call>\n<function=look>\n<parameter=city>\nParis\n</parameter>\n<parameter=days>\n3\n</parameter>\n"
        "</function>\n</tool_call>",
        [("look", '{"city":"Paris","days":3}')],
    ),
    "qwen coder, a number that is text": (
        "<function=look>\n<parameter=city>\n12\n</parameter>\n</function>",
        [("look", '{"city":"12"}')],
    ),
    "llama 3.1": ('<function=look>{"city": "Paris"}</function>', [PARIS]),
    "llama 3": ('<|python_tag|>{"name": "look", "parameters": {"city": "Paris"}}', [PARIS]),
    "llama 3, two": (
        '<|python_tag|>{"name": "look", "parameters": {"city": "Paris"}}; {"name": "go", "parameters": {}}',
        [PARIS, ("go", "{}")],
    ),
    "mistral": ('[TOOL_CALLS][{"name": "look", "arguments": {"city": "Paris"}}]', [PARIS]),
    "mistral, newer": ('[TOOL_CALLS]look[ARGS]{"city": "Paris"}[TOOL_CALLS]go{}', [PARIS, ("go", "{}")]),
    "deepseek": (
        "<\uff5ctool\u2581calls\u2581begin\uff5c><\uff5ctool\u2581call\u2581begin\uff5c>function"
        '<\uff5ctool\u2581sep\uff5c>look\n```json\n{"city": "Paris"}\n```'
        "<\uff5ctool\u2581call\u2581end\uff5c><\uff5ctool\u2581calls\u2581end\uff5c>",
        [PARIS],
    ),
    "json": ('{"name": "look", "arguments": {"city": "Paris"}}', [PARIS]),
    "json in a fence": ('```json\n{"name": "look", "arguments": {"city": "Paris"}}\n```', [PARIS]),
    "json, half a fence": ('{"name": "look", "arguments": {"city": "Paris"}}\n```', [PARIS]),
    "json, a bracket forgotten": ('{"name": "look", "arguments": {"city": "Paris"}', [PARIS]),
    "json, arguments as text": (r'{"name": "look", "arguments": "{\"city\": \"Paris\"}"}', [PARIS]),
    "json, as a function": (
        '{"type": "function", "function": {"name": "go", "parameters": {}}}',
        [("go", "{}")],
    ),
    "json, a list": ('[{"name": "go", "arguments": {}}]', [("go", "{}")]),
}

PLAIN = [
    "Hello.",
    '{"city": "Paris"}',
    '{"name": "Paris", "arguments": {}}',
    '{"name": "look", "arguments": 3}',
    '{"name": "look", "arguments": {"city": "Par',
    '<tool_call>{"name": "nobody", "arguments": {}}</tool_call>',
    "<tool_call>not json</tool_call>",
    '<tool_call>{"name": "go", "arguments": {}}</tool_call> and more',
    "a < b and [TOOL] and `<|` and ```code```",
    '[{"name": "go", "arguments": {}}, 3]',
]


@pytest.mark.parametrize("form", FORMS)
def test_forms(form: str) -> None:
    text, calls = FORMS[form]
    assert calls_in(text, TOOLS) == calls


@pytest.mark.parametrize("text", PLAIN)
def test_what_is_no_call(text: str) -> None:
    assert calls_in(text, TOOLS) is None


def split(pieces: list[str]) -> list[Any]:
    splitter = Splitter(TOOLS)
    found: list[Any] = [one for piece in pieces for one in splitter.feed(piece)]
    return _joined([*found, *splitter.end()])


def _joined(found: list[Any]) -> list[Any]:
    joined: list[Any] = []
    for kind, text in found:
        if isinstance(kind, Kind) and joined and joined[-1][0] is kind:
            joined[-1] = (kind, joined[-1][1] + text)
        else:
            joined.append((kind, text))
    return joined


_texts = st.sampled_from([*(text for text, _ in FORMS.values()), *PLAIN, "", " ", "\n"])
_thoughts = st.sampled_from(
    ["", "<think>Hm.</think>\n\n", "<think></think>", "  <think>never closed", "<thin"]
)
_before = st.sampled_from(["", "I will look.\n", "{", "<", "```"])


@given(data=st.data(), thought=_thoughts, before=_before, text=_texts)
def test_cuts_change_nothing(data: st.DataObject, thought: str, before: str, text: str) -> None:
    whole = thought + before + text
    places = data.draw(st.lists(st.integers(0, len(whole)), max_size=6))
    at = sorted({0, len(whole), *places})
    pieces = [whole[one:other] for one, other in pairwise(at)]
    assert split(pieces) == split([whole]) == split(list(whole))


@given(thought=_thoughts, before=_before, text=_texts)
def test_nothing_is_lost(thought: str, before: str, text: str) -> None:
    whole = thought + before + text
    found = split([whole])
    if all(isinstance(kind, Kind) for kind, _ in found):
        told = "".join(text for _, text in found)
        bare = whole.replace("<think>", "").replace("</think>", "")
        assert "".join(told.split()) == "".join(bare.split())


def test_thoughts_text_and_calls_become_parts() -> None:
    text = f"<think>Hm.</think>\n\nI will look.\n{FORMS['hermes, two'][0]}"
    message = Message(Role.ASSISTANT, (Text(text),), finish_reason=FinishReason.STOP, model="m")
    result = read_written(Result(message, "r"), REQUEST)
    thought, said, *calls = result.message.parts
    assert (thought, said) == (Thinking("Hm."), Text("I will look.\n"))
    assert [(call.name, call.args_json) for call in calls if isinstance(call, ToolCall)] == [
        PARIS,
        ("go", "{}"),
    ]
    assert len({call.id for call in result.tool_calls}) == 2
    assert (result.finish_reason, result.request_id) == (FinishReason.TOOL_CALL, "r")
    assert read_written(Result(message, "r"), REQUEST) == result


def test_what_came_as_parts_is_left_alone() -> None:
    parts = (Thinking("Hm."), Text("Hello"), ToolCall("a", "look", "{}"))
    message = Message(Role.ASSISTANT, parts, finish_reason=FinishReason.TOOL_CALL)
    assert read_written(Result(message), REQUEST).message == message


def test_without_tools_a_text_is_no_call() -> None:
    text = FORMS["hermes"][0]
    message = Message(Role.ASSISTANT, (Text(text),), finish_reason=FinishReason.STOP)
    assert read_written(Result(message), Request((user("hi"),))).message == message
