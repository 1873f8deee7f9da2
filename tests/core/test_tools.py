"""Tools as data: definitions that are complete, choices that make sense, calls that are allowed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flyball.core.errors import ToolNotFound, UserError
from flyball.core.messages import ToolCall
from flyball.core.tools import ToolChoice, ToolDefinition, validate_tools_allowed
from tests.strategies import names


def test_a_definition_is_complete_with_a_name_and_parameters() -> None:
    tool = ToolDefinition("f", {"type": "object"})
    assert tool.check() is tool
    with pytest.raises(UserError, match="name"):
        ToolDefinition("", {"type": "object"}).check()
    with pytest.raises(UserError, match="'f' needs parameters"):
        ToolDefinition("f", {}).check()


@pytest.mark.parametrize(
    ("choice", "forced"),
    [
        (ToolChoice(), None),
        (ToolChoice("auto", "f"), "f"),
        (ToolChoice("function", "f"), "f"),
        (ToolChoice("required"), None),
        (ToolChoice("required", "f"), None),
        (ToolChoice("none", "f"), None),
    ],
)
def test_which_tool_is_forced(choice: ToolChoice, forced: str | None) -> None:
    assert choice.forced == forced


@pytest.mark.parametrize("name", [None, ""])
def test_a_function_needs_a_name(name: str | None) -> None:
    with pytest.raises(UserError, match="tool_name"):
        ToolChoice("function", name)


@given(st.lists(names), st.lists(names, min_size=1))
def test_calls_outside_the_list_are_named(called: list[str], allowed: list[str]) -> None:
    calls = [ToolCall("c", name) for name in called]
    outside = sorted(set(called) - set(allowed))
    if not outside:
        validate_tools_allowed(calls, allowed)
        return
    with pytest.raises(ToolNotFound) as caught:
        validate_tools_allowed(calls, allowed)
    assert str(caught.value) == f"disallowed tools: {', '.join(outside)}"
    assert caught.value.details == {"tools": outside}


@given(st.lists(names))
def test_no_names_allow_all(called: list[str]) -> None:
    validate_tools_allowed([ToolCall("c", name) for name in called], [])
