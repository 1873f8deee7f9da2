"""The page about the wire lists all there is: every category, every payload, every key, every refusal."""

from __future__ import annotations

import re
from typing import Any

import pytest

from flyball.core.errors import InvalidMessage, InvalidRequest
from flyball.core.forms import semstreams
from flyball.core.forms.semstreams import (
    AgentRequest,
    AgentResponse,
    Category,
    ModelConfig,
    Refusal,
    read_envelope,
    read_message,
    write_envelope,
    write_messages,
    write_tool_call,
    write_tool_choice,
    write_tool_definition,
    write_tool_result,
    write_usage,
)
from flyball.core.forms.semstreams.keyed import Keyed, columns
from flyball.core.messages import ToolCall, ToolResult, assistant, tool_result, user
from flyball.core.tools import ToolChoice, ToolDefinition
from flyball.core.usage import Usage
from tests.core.forms.test_semstreams_wire import enveloped, payload_of
from tests.docs.tables import column, table

KEYED = {
    kind.__name__: kind
    for kind in vars(semstreams).values()
    if isinstance(kind, type) and issubclass(kind, Keyed)
}
CALL = ToolCall("c", "f", '{"x": 1}', {"k": 1}, None, "l", "t")
THOUGHT = read_message({"role": "assistant", "reasoning": "hm", "name": "n"})
MESSAGES = write_messages([assistant("x", CALL), tool_result("c", "f", "x"), THOUGHT])
TOOL = ToolDefinition("f", {"type": "object"}, "x")
CHOICE = ToolChoice("function", "f")
OTHERS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "AgentRequest": (
        AgentRequest("", ()).write(),
        AgentRequest(
            "r", (user("x"),), max_tokens=1, temperature=1.0, tools=(TOOL,), tool_choice=CHOICE
        ).write(),
    ),
    "AgentResponse": (
        AgentResponse("", "").write(),
        AgentResponse("r", "error", user("x"), "e", Usage(1, 1)).write(),
    ),
    "ChatMessage": (
        write_messages([user("")])[0],
        {key: value for document in MESSAGES for key, value in document.items()},
    ),
    "ToolCall": (write_tool_call(ToolCall("", "")), write_tool_call(CALL)),
    "ToolResult": (
        write_tool_result(ToolResult("", "", "")),
        write_tool_result(
            ToolResult("c", "f", "x", "e", metadata={"k": 1}, stop_loop=True, loop_id="l", trace_id="t")
        ),
    ),
    "ToolDefinition": (write_tool_definition(ToolDefinition("", {})), write_tool_definition(TOOL)),
    "ToolChoice": (write_tool_choice(ToolChoice()), write_tool_choice(CHOICE)),
    "TokenUsage": (write_usage(Usage()), write_usage(Usage(1, 1))),
    "ModelConfig": (ModelConfig().write(), ModelConfig(1.0, 1).write()),
}
"""What flyball has words of its own for: written when empty, and when full."""


def names(cell: str) -> list[str]:
    return [name for name in cell.split(", ") if name]


def test_every_object_is_there() -> None:
    assert sorted(column("wire.md", "object")) == sorted([*KEYED, *OTHERS])


@pytest.mark.parametrize("row", table("wire.md", "object"), ids=lambda row: row[0])
def test_an_object_has_these_keys(row: tuple[str, str, str]) -> None:
    name, always, sometimes = row
    if name in KEYED:
        expected = columns(KEYED[name])
        assert names(always) == [key.key for key in expected if key.always]
        assert names(sometimes) == [key.key for key in expected if not key.always]
        assert list(KEYED[name]().write()) == names(always), "what an empty one is written as"
    else:
        empty, full = OTHERS[name]
        assert set(names(always)) == set(empty)
        assert {*names(always), *names(sometimes)} == set(full)


def test_every_refusal_is_explained() -> None:
    assert column("wire.md", "reason") == list(Refusal)


def test_every_category_has_its_payload() -> None:
    rows = table("wire.md", "category")
    assert [row[0] for row in rows] == list(Category)
    for category, name, _, _ in rows:
        read = read_envelope(enveloped(category, payload_of(Category(category))))
        assert type(read.payload).__name__ == name


@pytest.mark.parametrize("row", table("wire.md", "category"), ids=lambda row: row[0])
def test_what_is_required_is_required(row: tuple[str, str, str, str]) -> None:
    category, _, _, required = row
    for field in re.findall(r"[a-z_]+", required.partition(", and ")[0]):
        without = {key: value for key, value in payload_of(Category(category)).items() if key != field}
        envelope = read_envelope(enveloped(category, without))
        with pytest.raises((InvalidMessage, InvalidRequest)) as caught:
            envelope.validate()
        assert caught.value.details["field"] == field
        assert write_envelope(envelope.payload, id="x", at=0.0), "it can be written all the same"
