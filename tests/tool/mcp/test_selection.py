"""Which tools are taken: an algebra of names and patterns."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flyball.core.errors import UserError
from flyball.core.tools import ToolDefinition
from flyball.tool.mcp import MCPServer, unless_read_only
from flyball.tool.mcp.selection import fits, needs_approval, selected

NAMES = st.lists(st.text("abc_./", min_size=1, max_size=6), unique=True, min_size=1, max_size=8)
PATTERNS = st.lists(st.sampled_from(["*", "a*", "*b", "?", "??", "[ab]*", "c_*"]), max_size=3)


@st.composite
def named(draw: st.DrawFn) -> tuple[list[str], list[str]]:
    names = draw(NAMES)
    return names, draw(st.lists(st.sampled_from(names), max_size=4))


@given(named(), PATTERNS)
def test_what_is_denied_is_never_taken_and_all_else_is_in_its_order(
    given_: tuple[list[str], list[str]], patterns: list[str]
) -> None:
    names, some = given_
    deny = [*some, *patterns]
    taken = selected("s", names, {"deny": deny})
    assert [name for name in names if name in taken] == list(taken)
    assert set(taken) == {name for name in names if not fits(name, deny)}
    assert not set(taken) & set(some)


@given(named(), named())
def test_allow_takes_no_more_than_it_names_and_deny_wins(
    given_: tuple[list[str], list[str]], other: tuple[list[str], list[str]]
) -> None:
    names, some = given_
    deny = [name for name in other[1] if name in names]
    taken = selected("s", names, {"allow": some, "deny": deny})
    assert set(taken) == set(some) - set(deny)
    everything = selected("s", names, {"allow": ["*"], "deny": deny})
    assert everything == selected("s", names, {"deny": deny})


@given(NAMES)
def test_a_name_is_itself_whatever_signs_it_has(names: list[str]) -> None:
    odd = [f"{name}[x]*?" for name in names]
    assert selected("s", odd, {"allow": [odd[0]]})[0] == odd[0]


@pytest.mark.parametrize("option", ["allow", "deny"])
def test_a_name_that_fits_nothing_is_told_with_what_is_near(option: str) -> None:
    with pytest.raises(
        UserError, match=rf"{option}=\['read_fil'\].*'files' has no such tool; did you mean 'read_file'"
    ):
        selected("files", ["read_file", "write"], {option: ["read_fil"]})  # pyright: ignore[reportArgumentType]
    with pytest.raises(UserError, match="it has read_file, write"):
        selected("files", ["read_file", "write"], {option: ["zzz"]})  # pyright: ignore[reportArgumentType]


def test_a_pattern_must_fit_something_only_where_it_is_to_allow() -> None:
    assert selected("s", ["a"], {"deny": ["drop_*"]}) == ("a",)
    with pytest.raises(UserError, match="has no such tool"):
        selected("s", ["a"], {"allow": ["drop_*"]})


def test_approval_takes_the_servers_word_only_where_it_is_given() -> None:
    def definition(**annotations: object) -> ToolDefinition:
        return ToolDefinition("t", {"type": "object"}, extra={"annotations": annotations})

    assert not unless_read_only(definition(readOnlyHint=True))
    assert unless_read_only(definition(readOnlyHint="yes"))
    assert unless_read_only(ToolDefinition("t", {"type": "object"}))
    assert needs_approval(("a*",), "ab", definition())
    assert not needs_approval((), "ab", definition())


@pytest.mark.parametrize(
    "options",
    [
        {"allow": "read"},
        {"deny": [1]},
        {"approval": "read"},
        {"safety": "sometimes"},
        {"safety": {"a": "sometimes"}},
        {"timeout": 0},
        {"timeout": True},
        {"connect_timeout": None},
        {"prefix": 1},
        {"instructions": "yes"},
        {"aprroval": True},
    ],
    ids=str,
)
def test_options_that_cannot_be_are_refused_when_the_server_is_named(options: dict[str, object]) -> None:
    with pytest.raises(UserError):
        MCPServer.stdio("x", **options)  # pyright: ignore[reportArgumentType]
