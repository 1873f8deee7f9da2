"""What is recorded, as resources."""

from __future__ import annotations

import json
from typing import Any

import pytest
from mcp import MCPError
from mcp_types import ReadResourceResult, TextResourceContents

from tests.adapters.mcp.agents import service_of
from tests.adapters.mcp.clients import ERAS, loop_of, served


def document(result: ReadResourceResult) -> Any:
    [content] = result.contents
    assert isinstance(content, TextResourceContents)
    assert content.mime_type == "application/json"
    return json.loads(content.text)


@pytest.mark.parametrize("era", ERAS)
async def test_runs_are_resources(era: str) -> None:
    async with served(service_of(), era) as server:
        client = server.client
        first = loop_of(await client.call_tool("count", {"prompt": "How many?"}))
        second = loop_of(await client.call_tool("broken", {"prompt": "Hello"}))
        listed = (await client.list_resources()).resources
        newest = document(await client.read_resource("flyball://loops"))
        run = document(await client.read_resource(f"flyball://loops/{first}"))
        failed = document(await client.read_resource(f"flyball://loops/{second}"))
        steps = document(await client.read_resource(f"flyball://loops/{first}/trajectory"))
        templates = (await client.list_resource_templates()).resource_templates
    assert [one.uri for one in listed] == [
        "flyball://loops",
        f"flyball://loops/{second}",
        f"flyball://loops/{first}",
    ]
    assert [one.name for one in listed] == ["runs", "broken: Hello", "count: How many?"]
    assert [one["loop_id"] for one in newest] == [second, first]
    assert (run["stage"], run["answer"], run["prompt"]) == ("complete", "It is 3.", "How many?")
    assert failed["error"] == "INFERENCE_ENGINE_ERROR"
    assert [step["step_type"] for step in steps["steps"]] == ["model_call", "tool_call", "model_call"]
    assert [one.uri_template for one in templates] == [
        "flyball://loops/{loop_id}",
        "flyball://loops/{loop_id}/trajectory",
    ]


@pytest.mark.parametrize(
    "uri", ["flyball://loops/nobody", "flyball://loops/", "flyball://loops/a/b", "file:///etc/passwd"]
)
async def test_what_is_not_there_is_an_error(uri: str) -> None:
    async with served(service_of(), "legacy") as server:
        with pytest.raises(MCPError, match="there is no resource"):
            await server.client.read_resource(uri)


async def test_tools_that_ran_by_themselves_have_their_steps() -> None:
    async with served(service_of(), "legacy", tools=True) as server:
        run = loop_of(await server.client.call_tool("add", {"a": 1, "b": 2}))
        told = document(await server.client.read_resource(f"flyball://loops/{run}"))
    assert (told["kind"], told["stage"]) == ("flow", "complete")
