from __future__ import annotations

import pytest

from flyball.core.errors import ToolNotFound, UserError
from flyball.tool import Registry, ToolAvailability, tool
from tests.tool.contexts import a_context


@tool
async def weather(city: str) -> str: ...


@tool(available=lambda: "no key")
async def search(query: str) -> str: ...


@tool(available=lambda ctx: ctx.deps == "on")  # pyright: ignore[reportUnknownLambdaType, reportUnknownMemberType]
async def browse(url: str) -> str: ...


@tool(available=lambda: 1 / 0 == 1)
async def broken() -> str: ...


def plain(a: int) -> int: ...


def test_tools_are_kept_in_order_and_found_by_name():
    registry = Registry(weather, search, plain)
    assert registry.names == ("weather", "search", "plain")
    assert registry.get("weather") is weather
    assert (len(registry), "plain" in registry, "other" in registry) == (3, True, False)
    assert [definition.name for definition in registry.all_definitions()] == ["weather", "search", "plain"]
    assert list(registry)[:2] == [weather, search]


def test_a_name_is_registered_once():
    registry = Registry(weather)
    with pytest.raises(UserError, match="two tools named 'weather'"):
        registry.register(weather)
    assert registry.names == ("weather",)


@pytest.mark.parametrize(
    ("name", "message"),
    [("wether", r"no tool 'wether'; did you mean 'weather'\?"), ("zzz", "there are: weather, search")],
)
def test_an_unknown_name_is_answered_with_the_nearest(name: str, message: str):
    with pytest.raises(ToolNotFound, match=message) as caught:
        Registry(weather, search).get(name)
    assert (caught.value.code, caught.value.details) == ("TOOL_NOT_FOUND", {"tool": name})


def test_an_empty_registry_says_so():
    with pytest.raises(ToolNotFound, match="none are registered"):
        Registry().get("x")


async def test_definitions_are_those_of_available_tools_and_asked_each_time():
    registry = Registry(weather, search, browse, broken)
    assert [d.name for d in await registry.definitions(a_context("off"))] == ["weather"]
    assert [d.name for d in await registry.definitions(a_context("on"))] == ["weather", "browse"]


async def test_availability_is_sorted_by_name_and_says_why_not():
    assert await Registry(weather, search, browse, broken).check_availability(a_context()) == [
        ToolAvailability("broken", available=False, reason="ZeroDivisionError: division by zero"),
        ToolAvailability("browse", available=False),
        ToolAvailability("search", available=False, reason="no key"),
        ToolAvailability("weather", available=True),
    ]
