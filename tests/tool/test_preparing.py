"""What a preparation of tools may give, and what it may not."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flyball.core.errors import UserError
from flyball.core.tools import ToolDefinition
from flyball.tool import Toolset, ToolsPrepare, tool
from flyball.tool.preparing import check_all_prepared, check_prepared, to_change
from tests.strategies import definitions

SCHEMA = {"type": "object", "properties": {"x": {"type": "integer"}}}
OFFERED = {name: ToolDefinition(name, SCHEMA) for name in ("look", "send")}


@given(definitions)
def test_a_copy_is_equal_and_may_be_changed(definition: ToolDefinition) -> None:
    copy = to_change(definition)
    assert copy == definition
    before = to_change(definition)
    copy.parameters["new"] = 1
    assert definition == before


@given(st.permutations(list(OFFERED.values())), st.integers(0, 2))
def test_what_is_left_may_be_any_of_them_in_any_order(order: list[ToolDefinition], left: int) -> None:
    given = order[:left]
    assert list(check_all_prepared(iter(given), "it", OFFERED).values()) == given


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (None, "it gave None: it must give the definitions"),
        ("look", "it gave 'look': it must give the definitions"),
        (OFFERED, "it must give the definitions"),
        (["look"], "it gave a str, not a ToolDefinition"),
        ([ToolDefinition("other", SCHEMA)], "the tool 'other', which is not on offer.*look, send"),
        ([OFFERED["look"]] * 2, "it gave the tool 'look' twice"),
        ([ToolDefinition("look", {})], "needs parameters"),
    ],
    ids=["nothing", "text", "a mapping", "names", "an unknown one", "one twice", "no schema"],
)
def test_what_cannot_be_told_the_model_is_refused(given: Any, told: str) -> None:
    with pytest.raises(UserError, match=told):
        check_all_prepared(given, "it", OFFERED)


def test_a_tool_cannot_become_another() -> None:
    with pytest.raises(UserError, match="a name cannot be changed"):
        check_prepared(OFFERED["send"], "it", {"look": OFFERED["look"]})


def test_what_is_no_function_is_refused() -> None:
    nothing: Any = 3
    with pytest.raises(UserError, match="prepare=3 cannot be; it must be a function"):
        tool(name="it", prepare=nothing)(lambda: 1)
    with pytest.raises(UserError, match="ToolsPrepare takes a function, not 3"):
        ToolsPrepare(nothing)


def test_wrapped_tools_are_prepared_as_those_inside() -> None:
    def prepare(_: Any, definition: ToolDefinition) -> ToolDefinition:
        return definition

    @tool(prepare=prepare, validators=[prepare])
    async def look() -> str: ...

    wrapped = Toolset("t", [look]).prefixed("my").filtered(lambda _, __: True).tools[0]
    assert getattr(wrapped, "prepare", None) is prepare
    assert getattr(wrapped, "validators", None) == (prepare,)
