"""A server's tools are tools, whichever way it is spoken to: listing, calling, results, cancelling."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from typing import Any

import pytest

from flyball import Agent, Image, Safety, ToolDefinition, ToolResult
from flyball.core.messages import ResultKind
from flyball.testing import ScriptedEngine, tool_call
from flyball.tool import Tool, execute
from flyball.tool.mcp import MCPServer, MCPTool, unless_read_only
from tests.tool.contexts import a_call
from tests.tool.mcp.conftest import by_name, odd
from tests.tool.mcp.served import Served, until
from tests.tool.mcp.toolbox import PIXEL


@pytest.fixture(params=["stdio", "http"])
def server(request: pytest.FixtureRequest) -> MCPServer:
    return request.getfixturevalue(f"{request.param}_server")


async def called(server: MCPServer, name: str, args_json: str = "{}") -> ToolResult:
    return await execute(by_name(await server.toolset_async())[name], a_call(args_json, name), None)


async def test_a_listing_is_a_toolset_of_specs(server: MCPServer) -> None:
    tools = by_name(await server.toolset_async())
    add, forecast = tools["add"], tools["forecast"]
    assert isinstance(add, Tool)
    assert isinstance(add, MCPTool)
    assert add.spec.definition.description == "Add two numbers."
    assert add.spec.definition.parameters["required"] == ["a", "b"]
    assert add.spec.definition.extra == {"title": "Sum", "annotations": {"readOnlyHint": True}}
    assert add.spec.safety is Safety.IDEMPOTENT
    assert tools["echo"].spec.safety is Safety.IDEMPOTENT
    assert forecast.spec.safety is Safety.AT_LEAST_ONCE
    assert add.spec.timeout == 300
    assert not any(tool.spec.approval for tool in tools.values())


@pytest.mark.parametrize(
    ("name", "args", "content"),
    [
        ("add", '{"a": 1, "b": 2}', 3),
        ("echo", '{"text": "ä\\u0000"}', "ä�"),
        ("forecast", '{"city": "Rome"}', {"city": "Rome", "degrees": 18.5}),
        ("talk", "{}", "done"),
    ],
    ids=lambda value: str(value)[:8],
)
async def test_what_a_call_gives(server: MCPServer, name: str, args: str, content: Any) -> None:
    result = await called(server, name, args)
    assert (result.error, result.status) == (None, ResultKind.RETURN)
    assert result.content == content or name == "echo"


async def test_content_of_all_kinds(server: MCPServer) -> None:
    result = await called(server, "everything")
    assert result.images == (Image(f"data:image/png;base64,{PIXEL}", "image/png"),) * 2
    assert result.text == (
        "one\ntwo\n[audio: 3 bytes of audio/wav, which cannot be shown here]\nfile:///a.txt:\ninside\n"
        "c: file:///c.txt - see there"
    )
    picture = await called(server, "picture")
    assert (len(picture.images), picture.text) == (1, "1 image")


async def test_the_model_reads_why_a_call_failed(server: MCPServer) -> None:
    result = await called(server, "fail")
    assert result.error is not None
    assert "the shelf is empty" in result.error
    assert result.metadata == {"code": "TOOL_EXECUTION_FAILED"}
    wrong = await called(server, "add", '{"a": 1}')
    assert wrong.status is ResultKind.RETRY
    assert "b: Field required" in wrong.text
    other = await called(server, "add", '{"a": "x", "b": 2}')
    assert other.error is not None
    assert "integer" in other.error


async def test_many_calls_at_once_over_one_session(server: MCPServer) -> None:
    add = by_name(await server.toolset_async())["add"]
    results = await asyncio.gather(
        *[execute(add, a_call(f'{{"a": {n}, "b": 1}}', "add"), None) for n in range(40)]
    )
    assert [result.content for result in results] == list(range(1, 41))


async def test_a_cancelled_call_is_cancelled_at_the_server(server: MCPServer, tmp_path: Path) -> None:
    wait = by_name(await server.toolset_async())["wait"]
    file = tmp_path / "go"
    call = asyncio.create_task(execute(wait, a_call(f'{{"file": "{file}"}}', "wait"), None))
    await until(file.with_suffix(".began").exists)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    await until(file.with_suffix(".cancelled").exists)


async def test_a_call_that_takes_too_long_is_ended(service: Served, tmp_path: Path) -> None:
    async with MCPServer.http(service.url, timeout=0.05) as tools:
        call = a_call(f'{{"file": "{tmp_path / "go"}"}}', "wait")
        result = await execute(by_name(tools)["wait"], call, None)
        assert result.metadata == {"code": "TOOL_TIMEOUT"}


def test_one_toolset_serves_agents_on_several_loops_and_threads(server: MCPServer) -> None:
    tools = server.toolset()
    said: list[Any] = []

    def run(number: int) -> None:
        engine = ScriptedEngine(tool_call("add", {"a": number, "b": 1}), "Done.")
        result = Agent(engine, tools=[tools]).run_sync("Add.")
        said.append(result.messages[2].tool_results[0].content)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(said) == [1, 2, 3, 4]


async def test_only_what_is_given_of_the_environment(stdio_server: MCPServer) -> None:
    result = await called(stdio_server, "variables")
    assert "GIVEN" in result.content
    assert "FLYBALL_ALLOW_MODEL_REQUESTS" not in result.content


async def test_the_last_that_a_program_said_on_stderr(stdio_server: MCPServer) -> None:
    await called(stdio_server, "echo", '{"text": "x"}')
    await until(lambda: "toolbox: started" in stdio_server.stderr)


async def test_a_tool_that_vanished_is_unavailable() -> None:
    with Served() as served:
        server = MCPServer.http(served.url, name="shelf")
        async with server as tools:
            engine = ScriptedEngine(tool_call("lose", {"name": "pid"}), tool_call("pid", {}), "Done.")
            lose, pid = by_name(tools)["lose"], by_name(tools)["pid"]
            await execute(lose, a_call('{"name": "pid"}', "lose"), None)
            await until(lambda: server.offers("pid") is not True)
            assert await pid.available(None) == "MCP server 'shelf' does not offer 'pid' any more"
            result = await execute(pid, a_call("{}", "pid"), None)
            assert result.metadata == {"code": "TOOL_UNAVAILABLE"}
            assert "does not offer 'pid' any more; it has add, echo" in (result.error or "")
            await Agent(engine, tools=[tools]).run("Go.")
            assert "pid" not in [definition.name for definition in engine.calls[0].tools]


async def test_approval_by_name_by_function_and_for_all(service: Served) -> None:
    async def needing(**options: Any) -> list[str]:
        async with MCPServer.http(service.url, **options) as tools:
            return [tool.spec.definition.name for tool in tools if tool.spec.approval]

    def adds(definition: ToolDefinition) -> bool:
        return "Add" in definition.description

    assert await needing(approval=["ad*", "echo"]) == ["add", "echo"]
    assert "add" not in await needing(approval=unless_read_only)
    assert "echo" in await needing(approval=unless_read_only)
    assert len(await needing(approval=True, allow=["p*"])) == 2
    assert await needing(approval=adds, prefix="x") == ["x__add"]


async def test_what_a_server_says_of_itself_is_told_only_if_it_is_asked_for(service: Served) -> None:
    async with MCPServer.http(service.url) as plain, MCPServer.http(service.url, instructions=True) as told:
        assert Agent(ScriptedEngine("x"), tools=[plain]).spec.instructions == ""
        assert Agent(ScriptedEngine("x"), tools=[told]).spec.instructions == "Add before you {{echo}}."


def test_a_server_that_is_closed_says_so_and_can_be_used_again() -> None:
    server = odd()
    with server as tools:
        go = by_name(tools)["go"]
    closed = asyncio.run(execute(go, a_call(name="go"), None))
    assert "MCP server 'odd' was closed: ask it for its toolset again" in (closed.error or "")
    assert server.offers("go") == "MCP server 'odd' was closed"
    with server:
        assert asyncio.run(execute(go, a_call(name="go"), None)).error is None
