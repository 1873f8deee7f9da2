"""Services over HTTP: headers, refusals, sessions that are forgotten, connections that break."""

from __future__ import annotations

import asyncio
import json
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from flyball import Agent, RunContext
from flyball.core.errors import ToolExecutionFailed, ToolUnavailable, UserError
from flyball.core.messages import ToolResult
from flyball.testing import ScriptedEngine, tool_call
from flyball.tool import execute
from flyball.tool.mcp import MCPServer
from flyball.tool.toolset import Toolset
from tests.engines.loopback import Answer, Loopback, Received
from tests.tool.contexts import a_call, a_context
from tests.tool.mcp.conftest import by_name
from tests.tool.mcp.served import Served, until

JSON = {"content-type": "application/json"}
EVENTS = {"content-type": "text/event-stream"}


async def said(tools: Toolset, name: str, args: str = "{}", context: Any = None) -> ToolResult:
    return await execute(by_name(tools)[name], a_call(args, name), context)


@pytest.mark.parametrize("older", [False, True], ids=["newer", "older"])
async def test_headers_of_all_requests_and_of_each_call(older: bool) -> None:
    async def of_the_user(ctx: RunContext[Any]) -> dict[str, str]:
        return {"Authorization": f"Bearer {ctx.deps}"}

    kept = {"X-Api-Key": "first"}
    with Served(older=older) as served:
        server = MCPServer.http(served.url, headers=kept, call_headers=of_the_user)
        async with server as tools:
            assert all(headers["x-api-key"] == "first" for headers in served.seen)
            assert not any("authorization" in headers for headers in served.seen)
            kept["X-Api-Key"] = "second"
            args = '{"name": "authorization"}'
            results = await asyncio.gather(
                *[said(tools, "header", args, a_context(f"user-{n}")) for n in range(8)]
            )
            assert [result.text for result in results] == [f"Bearer user-{n}" for n in range(8)]
            assert (await said(tools, "header", '{"name": "x-api-key"}', a_context("u"))).text == "second"


async def test_headers_come_from_the_deps_of_a_run(service: Served) -> None:
    server = MCPServer.http(service.url, call_headers=lambda ctx: {"Authorization": ctx.deps["token"]})
    async with server as tools:
        engine = ScriptedEngine(tool_call("header", {"name": "authorization"}), "Done.")
        agent = Agent(engine, tools=[tools])
        result = await agent.run("Who am I?", deps={"token": "Bearer abc-123"})
        assert result.messages[2].tool_results[0].text == "Bearer abc-123"
        assert "abc-123" not in repr((server, tools, tools.tools, agent.spec))


@pytest.mark.parametrize(
    ("status", "told"),
    [
        (401, "answered 401 Unauthorized: give the headers that it asks for"),
        (403, "answered 403 Forbidden"),
        (404, "answered 404 Not Found: look at the path"),
        (500, "answered 500 Internal Server Error"),
    ],
)
async def test_a_service_that_refuses(status: int, told: str) -> None:
    with Served() as served:
        server = MCPServer.http(served.url, headers={"Authorization": "Bearer s3cret-token"}, name="shop")
        async with server as tools:
            served.refuse = status
            result = await said(tools, "pid")
            assert result.error is not None
            assert f"MCP server 'shop' {told}" in result.error
            assert result.metadata == {"code": "TOOL_UNAVAILABLE"}
            await server.aclose()
            with pytest.raises(ToolUnavailable, match=told) as raised:
                await server.toolset_async()
            assert raised.value.retryable is (status == 500)
            assert "s3cret" not in str(raised.value) + repr(server) + str(raised.value.record())


async def test_headers_that_become_wrong_are_told_and_never_quoted() -> None:
    kept = {"X-Api-Key": "good"}
    with Served() as served:
        async with MCPServer.http(served.url, headers=kept, name="shop") as tools:
            kept["X-Api-Key"] = "s3cret\u2603"
            result = await said(tools, "pid")
            assert result.error is not None
            assert "value of header 'X-Api-Key' is no text that HTTP can carry" in result.error
            assert "s3cret" not in result.error
            kept["X-Api-Key"] = "good"
            assert (await said(tools, "pid")).error is None


async def test_call_headers_that_are_none_fail_the_call_alone(service: Served) -> None:
    given: list[Any] = [["X"], {"Host": "x"}, {"X": "fine"}]
    async with MCPServer.http(service.url, call_headers=lambda ctx: given.pop(0)) as tools:
        results = [await said(tools, "header", '{"name": "x"}', a_context()) for _ in range(3)]
        assert ["headers of an MCP server are a mapping" in (results[0].error or ""), results[2].text] == [
            True,
            "fine",
        ]
        assert "the protocol's own" in (results[1].error or "")
        assert "run without one" in ((await said(tools, "header", '{"name": "x"}')).error or "")


async def test_a_call_that_is_refused_does_not_disturb_another(tmp_path: Path) -> None:
    file = tmp_path / "go"
    with Served() as served:
        async with MCPServer.http(served.url) as tools:
            other = asyncio.create_task(said(tools, "wait", f'{{"file": "{file}"}}'))
            await until(file.with_suffix(".began").exists)
            served.refuse = 503
            assert "answered 503 Service Unavailable; whether the call" in (
                (await said(tools, "pid")).error or ""
            )
            file.write_text("undisturbed")
            assert (await other).text == "undisturbed"


async def test_nobody_is_there() -> None:
    with Served() as served:
        url = served.url
    with pytest.raises(ToolUnavailable, match=r"cannot be reached: ConnectError.*whether it runs"):
        await MCPServer.http(url).toolset_async()


async def test_what_is_no_mcp_server_is_told() -> None:
    page = Answer(b"<html>", headers={"content-type": "text/html"})
    async with Loopback(lambda got: page) as web:
        with pytest.raises(ToolExecutionFailed, match="cannot be used: MCPError: Unexpected content type"):
            await MCPServer.http(f"{web.url}/mcp").toolset_async()


def odd_service(last: Answer) -> Callable[[Received], Answer]:
    """A service of one tool, whose calls are answered with this."""
    results: dict[str, Any] = {
        "initialize": {
            "protocolVersion": "2025-06-18",
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "odd", "version": "1"},
        },
        "tools/list": {"tools": [{"name": "go", "inputSchema": {"type": "object"}}]},
    }

    def answer(got: Received) -> Answer:
        asked: dict[str, Any] = got.json if got.method == "POST" else {}
        if asked.get("method") == "tools/call":
            return last
        if "id" not in asked:
            return Answer(b"", status=202 if got.method == "POST" else 405)
        reply: dict[str, Any] = {"jsonrpc": "2.0", "id": asked["id"]}
        if asked["method"] in results:
            reply["result"] = results[asked["method"]]
        else:
            reply["error"] = {"code": -32601, "message": "Method not found"}
        return Answer(json.dumps(reply).encode(), headers={"content-type": "application/json"})

    return answer


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (
            Answer(b"{", headers=JSON),
            "answered 'go' with what cannot be taken: MCPError: Failed to parse JSON",
        ),
        (Answer(b'"' + b"x" * 17_000_000, headers=JSON), "the answer has more than 16,777,216 bytes"),
        (
            Answer([b"{", b'"a'], headers=JSON, end="reset"),
            "was lost while 'go' was called: the answer broke",
        ),
        (
            Answer([b"data: {"], headers=EVENTS, end="reset"),
            "was lost while 'go' was called: the answer broke",
        ),
        (
            Answer([b"data: x\n\n"], headers=EVENTS),
            "answered 'go' with what cannot be taken: MCPError: Failed to parse SSE",
        ),
        (Answer(b"", status=418, headers=JSON), "answered 418"),
        (
            Answer(b"", status=299, headers={"content-type": "x/y"}),
            "cannot be taken: MCPError: Unexpected content type: x/y",
        ),
        (Answer(b"", status=202), "cannot be taken: MCPError: server answered a request with 202"),
    ],
    ids=["half", "huge", "reset", "stream reset", "no event", "teapot", "kind", "202"],
)
async def test_answers_that_are_none(answer: Answer, told: str) -> None:
    async with (
        Loopback(odd_service(answer)) as odd,
        MCPServer.http(f"{odd.url}/mcp", name="odd") as tools,
    ):
        result = await said(tools, "go")
        assert result.error is not None
        assert f"MCP server 'odd' {told}" in result.error or told in result.error


async def test_a_session_that_was_forgotten_is_opened_again_for_any_tool() -> None:
    with Served(older=True) as served:
        server = MCPServer.http(served.url)
        tools = await server.toolset_async()
        sessions = {headers.get("mcp-session-id") for headers in served.seen} - {None}
        assert len(sessions) == 1
    with Served(older=True, port=served.port) as again:
        assert (await said(tools, "pid")).error is None
        ids = [headers.get("mcp-session-id") for headers in again.seen]
        assert ids[0] in sessions
        assert ids[-1] not in sessions
        await server.aclose()


async def test_a_stream_that_breaks_in_a_call(tmp_path: Path) -> None:
    file = tmp_path / "go"
    args = f'{{"file": "{file}"}}'
    with Served(older=True) as served:
        server = MCPServer.http(served.url, safety={"wait": "at_least_once"}, name="shop")
        tools = await server.toolset_async()
        call = asyncio.create_task(said(tools, "wait", args))
        await until(file.with_suffix(".began").exists)
    lost = await call
    assert lost.error is not None
    assert "MCP server 'shop' was lost while 'wait' was called: the answer broke off" in lost.error
    assert "whether the call had its effect is not known" in lost.error
    assert file.with_suffix(".began").read_text() == "x"
    file.write_text("went on")
    with Served(older=True, port=served.port):
        assert (await said(tools, "wait", args)).text == "went on"
        await server.aclose()


@pytest.mark.parametrize("safety", ["idempotent", "at_most_once"])
async def test_a_service_that_is_killed_in_a_call(safety: Any, tmp_path: Path) -> None:
    file = tmp_path / "go"
    args = f'{{"file": "{file}"}}'
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "tests.tool.mcp.toolbox", "http", str(port)]
    pipe = subprocess.PIPE
    with subprocess.Popen(  # noqa: ASYNC220 - it is there before anything runs
        command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL
    ) as process:
        assert process.stdout is not None
        await asyncio.to_thread(process.stdout.readline)
        server = MCPServer.http(f"http://127.0.0.1:{port}/mcp", safety={"wait": safety}, name="shop")
        tools = await server.toolset_async()
        call = asyncio.create_task(said(tools, "wait", args))
        await until(file.with_suffix(".began").exists)
        process.kill()
        process.wait()
        file.write_text("went on")
        with Served(port=port):
            result = await call
            if safety == "idempotent":
                assert result.text == "went on"
            else:
                assert result.error is not None
                assert "MCP server 'shop' was lost while 'wait' was called" in result.error
                assert (await said(tools, "wait", args)).text == "went on"
        await server.aclose()


@pytest.mark.parametrize(
    "url", ["ftp://host/mcp", "host/mcp", "https://", "http://host:0/", "http://ho st/", "", "http://[", None]
)
def test_addresses_that_are_none(url: Any) -> None:
    with pytest.raises(UserError, match="no address of an MCP server"):
        MCPServer.http(url)


def test_secrets_in_addresses_and_headers_are_refused_or_hidden() -> None:
    with pytest.raises(UserError, match="carries a user or a password") as raised:
        MCPServer.http("https://me:s3cret@host/mcp")
    assert "s3cret" not in str(raised.value)
    for headers in ({"X": "a\nb: s3cret"}, {"X": "s3cret\u2603"}, {"X\n": "s3cret"}, {"X": 1}):
        with pytest.raises(UserError) as raised:
            MCPServer.http("https://host/mcp", headers=headers)  # pyright: ignore[reportArgumentType]
        assert "s3cret" not in str(raised.value)
    for name in ("Mcp-Session-Id", "content-type", "Host"):
        with pytest.raises(UserError, match="the protocol's own"):
            MCPServer.http("https://host/mcp", headers={name: "x"})
    assert "s3cret" not in repr(MCPServer.http("https://host/mcp?key=s3cret", headers={"X": "s3cret"}))
