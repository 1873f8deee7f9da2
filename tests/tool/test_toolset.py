from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flyball.core.context import RunContext
from flyball.core.errors import UserError
from flyball.core.feature import Feature
from flyball.core.tools import ToolDefinition
from flyball.tool import Registry, Tool, Toolset, execute, tool
from flyball.tool.toolset import brought_by
from tests.tool.contexts import a_call, a_context


@tool(timeout=7)
async def weather(city: str) -> str:
    return f"sun in {city}"


@tool(available=lambda: "no key")
async def search(query: str) -> str: ...


@tool
async def who(ctx: RunContext[str]) -> str:
    return ctx.deps


def plain(a: int) -> int: ...


SET = Toolset("web", [weather, search, who, plain])


def of_set(*names: str) -> list[Tool]:
    return [one for one in SET if one.spec.definition.name in names]


def test_it_holds_tools_and_functions():
    assert (SET.name, SET.names, len(SET)) == ("web", ("weather", "search", "who", "plain"), 4)
    assert all(isinstance(one, Tool) for one in SET)
    assert repr(Toolset("one", [weather])) == "<Toolset one: weather>"


async def test_prefixed():
    made = SET.prefixed("net")
    assert made.names == ("net_weather", "net_search", "net_who", "net_plain")
    assert all(isinstance(one, Tool) for one in made)
    first = made.tools[0]
    assert (first.spec.timeout, first.wants_context) == (7, False)
    result = await execute(first, a_call('{"city": "Rome"}', "net_weather"), None)
    assert (result.name, result.content) == ("net_weather", "sun in Rome")
    assert await made.tools[1].available(a_context()) == "no key"
    assert await execute(made.tools[2], a_call(), a_context("me")) == await execute(
        who, a_call(), a_context("me")
    )
    assert SET.names[0] == "weather"


def test_renamed():
    assert SET.renamed({"sky": "weather"}).names == ("sky", "search", "who", "plain")
    assert SET.renamed({}).names == SET.names
    assert SET.renamed({"weather": "search", "search": "weather"}).names == (
        "search",
        "weather",
        "who",
        "plain",
    )


@pytest.mark.parametrize(
    ("names", "message"),
    [
        ({"sky": "wether"}, "no tool 'wether' to rename.*from the new name to the old"),
        ({"search": "weather"}, "two tools named 'search'"),
        ({"two words": "weather"}, "cannot be a tool's name"),
    ],
)
def test_renaming_that_cannot_be_is_refused(names: dict[str, str], message: str):
    with pytest.raises(UserError, match=message):
        SET.renamed(names)


def test_a_prefix_that_makes_bad_names_is_refused():
    with pytest.raises(UserError, match="cannot be a tool's name"):
        SET.prefixed("x" * 60)


async def test_filtered_asks_the_predicate_and_then_the_tool():
    async def only_w(ctx: RunContext[Any], definition: ToolDefinition) -> bool:
        return definition.name.startswith("w") and ctx.deps == "on"

    made = SET.filtered(only_w)
    assert all(one.spec.checks_availability for one in made)
    assert [d.name for d in await Registry(*made).definitions(a_context("on"))] == ["weather", "who"]
    assert await Registry(*made).definitions(a_context("off")) == []
    everything = SET.filtered(lambda ctx, definition: True)
    assert await everything.tools[1].available(a_context()) == "no key"
    assert not weather.spec.checks_availability


def test_adding():
    both = Toolset("a", [weather]) + Toolset("b", [search])
    assert (both.name, both.names) == ("a+b", ("weather", "search"))
    with pytest.raises(UserError, match="two tools named 'weather'"):
        _ = Toolset("a", [weather]) + Toolset("b", [weather])
    assert (SET.prefixed("x") + SET).names == (*SET.prefixed("x").names, *SET.names)


prefixes = st.from_regex(r"[a-z]{1,4}", fullmatch=True)
parts = st.lists(st.sampled_from(SET.names), unique=True).map(lambda names: Toolset("web", of_set(*names)))


@given(parts, prefixes, prefixes)
def test_prefixes_add_up(some: Toolset, one: str, two: str):
    assert some.prefixed(one).prefixed(two).names == tuple([f"{two}_{one}_{name}" for name in some.names])


@given(parts, prefixes)
def test_a_prefix_can_be_taken_back(some: Toolset, prefix: str):
    back = some.prefixed(prefix).renamed({name: f"{prefix}_{name}" for name in some.names})
    assert [one.spec for one in back] == [one.spec for one in some]


@given(parts, parts, parts, prefixes)
def test_adding_is_associative_and_prefixing_distributes(a: Toolset, b: Toolset, c: Toolset, prefix: str):
    b, c = b.prefixed("b"), c.prefixed("c")
    assert ((a + b) + c).names == (a + (b + c)).names
    assert (a + b).prefixed(prefix).names == (a.prefixed(prefix) + b.prefixed(prefix)).names


# What it brings


def a_prompt(ctx: RunContext[Any]) -> str: ...


FEATURE = Feature()
BRINGS = Toolset("web", [weather, who], instructions=["Look twice.", a_prompt], features=[FEATURE])


async def test_what_a_toolset_brings_goes_with_each_of_its_tools():
    (brings,) = brought_by(BRINGS)
    assert (brings.toolset, brings.instructions, brings.features) == (
        "web",
        ("Look twice.", a_prompt),
        (FEATURE,),
    )
    filtered = BRINGS.filtered(lambda ctx, definition: True)
    for some in (BRINGS.prefixed("x"), filtered, BRINGS.renamed({"me": "who"})):
        assert brought_by(some) == (brings,)
    assert brought_by(BRINGS.tools[1:]) == (brings,)
    assert brought_by(Toolset("all", [*BRINGS, search])) == (brings,)
    assert brought_by(SET) == ()
    result = await execute(BRINGS.tools[0], a_call('{"city": "Rome"}', "weather"), None)
    assert result.content == "sun in Rome"


def test_toolsets_bring_things_side_by_side():
    one = Toolset("one", [weather], instructions="One.")
    two = Toolset("two", [search], instructions=a_prompt)
    assert [brings.instructions for brings in brought_by(two + one)] == [(a_prompt,), ("One.",)]
    inside = Toolset("outer", one, instructions="Outer.")
    assert [brings.instructions for brings in brought_by(inside)] == [("One.",), ("Outer.",)]
    assert brought_by(Toolset("plain", [weather], instructions="")) == ()


def test_a_toolset_brings_nothing_else():
    some: Any = [3]
    with pytest.raises(UserError, match="'web': instructions= takes text and functions, not 3"):
        Toolset("web", [weather], instructions=some)
    with pytest.raises(UserError, match=r"'web': features= takes features.*not 3"):
        Toolset("web", [weather], features=some)
