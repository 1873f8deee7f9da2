"""Programs that misbehave: each is an error that says which server and what happened, and none hangs."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from flyball.core.errors import ToolExecutionFailed, ToolTimeout, ToolUnavailable, UserError
from flyball.core.messages import ToolResult
from flyball.tool import execute
from flyball.tool.mcp import MCPServer
from flyball.tool.toolset import Toolset
from tests.tool.contexts import a_call, a_context
from tests.tool.mcp.conftest import by_name, odd
from tests.tool.mcp.served import until


async def said(tools: Toolset, name: str) -> ToolResult:
    return await execute(by_name(tools)[name], a_call("{}", name), None)


async def test_one_that_exits_at_once_is_told_with_its_last_words() -> None:
    server = odd("exits", env={"TOKEN": "s3cret-token"})
    with pytest.raises(ToolUnavailable) as raised:
        await server.toolset_async()
    assert raised.value.message == (
        "MCP server 'odd' cannot be used: it ended with exit code 3; its stderr ends with: "
        "line one | no such database: token ***"
    )
    assert raised.value.details == {"server": "odd"}
    assert server.stderr[-1] == "no such database: token s3cret-token"


async def test_one_that_never_answers_is_given_up() -> None:
    with pytest.raises(
        ToolTimeout, match=r"does not answer within 0\.2 seconds; connect_timeout= gives more"
    ):
        await odd("silent", connect_timeout=0.2).toolset_async()


async def test_one_that_is_no_server_at_all_is_told_by_what_it_wrote() -> None:
    with pytest.raises(ToolTimeout, match="stdout what is no message: 'Welcome to my server!'"):
        await odd("garbage only", connect_timeout=0.5).toolset_async()


async def test_garbage_between_messages_is_passed_over() -> None:
    async with odd("garbage") as tools:
        assert (await said(tools, "go")).text.startswith("go: ")


async def test_a_program_that_is_not_there() -> None:
    server = MCPServer.stdio("no-such-program-x")
    with pytest.raises(UserError, match="'no-such-program-x' of an MCP server is not found: install it"):
        await server.toolset_async()
    folder = MCPServer.stdio("/")
    with pytest.raises(UserError, match="'/' of an MCP server is not found"):
        folder.toolset()


async def test_a_list_in_pages_is_read_to_its_end_and_an_endless_one_refused() -> None:
    async with odd("pages") as tools:
        assert tools.names == ("tool0", "tool1", "tool2", "tool3")
    with pytest.raises(ToolExecutionFailed, match="its list of tools does not end"):
        await odd("endless").toolset_async()


async def test_a_list_that_is_none() -> None:
    with pytest.raises(
        ToolExecutionFailed,
        match="MCP server 'odd' cannot be used: it is not as the protocol has it: - tools: Input",
    ):
        await odd("no list").toolset_async()
    async with odd("no tools") as tools:
        assert tools.names == ()


async def test_a_schema_that_is_none_is_told_with_its_place() -> None:
    with pytest.raises(ToolExecutionFailed, match=r"protocol has it: - tools.1.inputSchema.properties.a"):
        await odd("no schema").toolset_async()


async def test_an_answer_that_is_none() -> None:
    async with odd("no result") as tools:
        result = await said(tools, "go")
        assert (
            "MCP server 'odd' answered 'go' with what cannot be taken: it is not as the protocol has it"
            in (result.error or "")
        )


async def test_a_refusal_is_read_by_the_model() -> None:
    async with odd("refuses") as tools:
        result = await said(tools, "go")
        assert result.error == "MCP server 'odd' refused 'go': the moon is in the wrong phase"


async def test_what_a_server_asks_of_us_is_politely_refused() -> None:
    async with odd("asks") as tools:
        result = await said(tools, "go")
        assert result.text == (
            "Sampling not supported, Elicitation not supported, List roots not supported, ok"
        )


async def test_an_answer_larger_than_a_result_may_be_is_refused_and_the_server_stays() -> None:
    async with odd("huge", str(5 * 1024 * 1024)) as tools:
        result = await said(tools, "go")
        assert "ask for a part of it" in (result.error or "")


async def test_a_message_beyond_all_bounds_ends_the_session() -> None:
    async with odd("huge", str(17 * 1024 * 1024)) as tools:
        result = await said(tools, "go")
        assert "was lost while 'go' was called: it sent a message of more than 16,777,216" in (
            result.error or ""
        )


async def test_a_server_that_dies_in_a_call_is_started_again_by_the_next(tmp_path: Path) -> None:
    calls = tmp_path / "calls"
    async with odd("dies once", str(calls), env={"TOKEN": "s3cret-token"}) as tools:
        lost = await said(tools, "go")
        assert lost.error == (
            "ToolUnavailable: MCP server 'odd' was lost while 'go' was called: it ended by signal 9; "
            "its stderr ends with: out of coffee, token ***; whether the call had its effect is not known"
        )
        assert lost.metadata == {"code": "TOOL_UNAVAILABLE"}
        assert calls.read_text() == "x"
        assert (await said(tools, "go")).error is None


async def test_the_call_of_an_idempotent_tool_is_made_again(tmp_path: Path) -> None:
    calls = tmp_path / "calls"
    async with odd("dies once", str(calls)) as tools:
        result = await said(tools, "look")
        assert result.text.startswith("look: ")
        assert calls.read_text() == "xx"


async def test_a_server_that_was_killed_between_calls_is_started_again_for_any_tool() -> None:
    server = odd()
    async with server as tools:
        first = int((await said(tools, "go")).text.removeprefix("go: "))
        os.kill(first, signal.SIGKILL)
        await until(lambda: not Path(f"/proc/{first}").exists())
        second = await said(tools, "go")
        assert second.error is None
        assert int(second.text.removeprefix("go: ")) != first


async def test_a_tool_that_a_program_says_is_gone_is_unavailable() -> None:
    server = odd("loses")
    async with server as tools:
        look = by_name(tools)["look"]
        assert await look.available(a_context()) is True
        assert (await said(tools, "go")).error is None
        await until(lambda: server.offers("look") is not True)
        assert await look.available(a_context()) == "MCP server 'odd' does not offer 'look' any more"


async def test_names_that_providers_refuse_are_made_fitting_and_doubles_are_told() -> None:
    with pytest.raises(
        UserError, match=r"'files/read' and 'files\.read' of MCP server 'odd' would both be called"
    ):
        await odd("names").toolset_async()
    async with odd("names", deny=["files/read"], prefix="my files") as tools:
        assert tools.names[0] == "my_files__files_read"
        assert len(tools.names[1]) == 64
        assert (await said(tools, tools.names[0])).text.startswith("files.read: ")
