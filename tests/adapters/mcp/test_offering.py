"""What a client finds: tools with names, descriptions, schemas and hints that fit."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp.shared.tool_name_validation import validate_tool_name

from flyball import Agent, tool
from flyball.adapters.mcp.naming import fitting
from flyball.adapters.mcp.offering import Offer
from tests.adapters.mcp.agents import add, agent, agents, divide, launch, pay, service_of
from tests.adapters.mcp.clients import ERAS, served


@pytest.mark.parametrize("era", ERAS)
async def test_each_agent_is_a_tool(era: str) -> None:
    async with served(service_of(), era) as server:
        found = {tool.name: tool for tool in (await server.client.list_tools()).tools}
        info, told = server.client.server_info, server.client.instructions
    assert list(found) == ["echo", "count", "city", "numbers", "broken", "shop", "boss"]
    assert info is not None
    assert (info.name, bool(info.version)) == ("flyball", True)
    assert "agent" in (told or "")
    echo, count = found["echo"], found["count"]
    assert echo.description == "Says what it was told."
    assert (
        count.description
        == "Asks the agent 'count', and gives its answer.\n\nIt can use: add, divide, sleep."
    )
    assert echo.input_schema["required"] == ["prompt"]
    assert list(echo.input_schema["properties"]) == ["prompt", "continue_from", "session_id", "loop_id"]
    assert echo.annotations is not None
    assert count.annotations is not None
    assert (echo.annotations.read_only_hint, count.annotations.read_only_hint) == (True, False)
    assert echo.output_schema is None
    assert (found["city"].output_schema or {})["required"] == ["name", "people"]
    assert (found["numbers"].output_schema or {})["properties"]["result"]["type"] == "array"


async def test_instructions_do_not_leak() -> None:
    async with served(service_of(), "legacy") as server:
        found = await server.client.list_tools()
        told = server.client.instructions
    assert "swordfish" not in f"{found.model_dump_json()} {told}"


async def test_tools_are_offered_if_that_is_wanted() -> None:
    async with served(service_of(), "legacy", tools=True) as server:
        found = {tool.name: tool for tool in (await server.client.list_tools()).tools}
    assert list(found)[7:] == ["add", "divide", "sleep"]
    assert found["add"].description == "Add two numbers."
    assert found["add"].input_schema["required"] == ["a", "b"]
    hints = [found[name].annotations for name in ("add", "divide")]
    assert [hint and (hint.idempotent_hint, hint.destructive_hint) for hint in hints] == [
        (True, False),
        (False, None),
    ]
    assert server.notes == [
        "the tool 'pay' of 'shop' is not offered: it needs approval, for which its agent asks "
        "(--yes approves all calls)",
        "the tool 'shop' of 'boss' is not offered: it is an agent",
    ]


def test_names_of_tools_are_plain_where_they_mean_one() -> None:
    @tool(name="add")
    async def other(a: str) -> str:
        """Another one."""
        return a

    @tool(name="one")
    async def like_an_agent() -> str:
        """Called as an agent is."""
        return ""

    def made(name: str, *tools: object) -> Agent[object, str]:
        return Agent("test", name=name, tools=tools)

    offer = Offer(
        [made("one", add, divide), made("two", other, divide, like_an_agent), made("three", launch, pay)],
        tools=True,
    )
    assert [tool.name for tool in offer.tools()] == [
        "one", "two", "three", "one__add", "divide", "two__add", "two__one",
    ]  # fmt: skip
    assert offer.schema("divide") is not None
    assert offer.schema("launch") is None
    assert ["launch" in note for note in offer.notes] == [True, False]


def test_a_name_that_had_to_be_changed_is_told() -> None:
    offer = Offer([agent("my agent: v2", None), agent("my agent! v2", None), agent("fine-1", None)])
    assert [tool.name for tool in offer.tools()] == ["my_agent_v2", "my_agent_v2_2", "fine-1"]
    assert [tool.title for tool in offer.tools()] == ["my agent: v2", "my agent! v2", "fine-1"]
    assert offer.notes == [
        "the agent 'my agent: v2' is offered as 'my_agent_v2'",
        "the agent 'my agent! v2' is offered as 'my_agent_v2_2'",
    ]


@given(st.lists(st.text(min_size=1, max_size=80), max_size=8))
def test_names_fit_and_are_no_two_alike(names: list[str]) -> None:
    taken: list[str] = []
    for name in names:
        taken.append(fitting(name, taken))
    assert len(set(taken)) == len(taken)
    assert all(validate_tool_name(name).is_valid and len(name) <= 48 for name in taken)


def test_an_agent_whose_model_cannot_be_had_is_offered_all_the_same() -> None:
    offer = Offer([Agent("nobody:knows", name="lost", output=int), *agents()])
    assert offer.tools()[0].output_schema is None
