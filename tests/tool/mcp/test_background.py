"""A process that has spoken to servers ends as any other: at once, silently, and nobody is left behind."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest

from flyball.core.errors import MissingExtra, UserError
from flyball.tool.mcp import MCPServer
from flyball.tool.mcp.background import background
from tests.patience import PATIENCE
from tests.tool.mcp.conftest import HERE, ROOT, by_name, odd

PROGRAM = f"""
import asyncio, os, sys
from flyball.tool.mcp import MCPServer
from flyball.tool.execute import execute
from flyball.core.messages import ToolCall

server = MCPServer.stdio({sys.executable!r}, "-IS", {str(HERE / "odd_server.py")!r})
go = server.toolset().tools[0]

def call():
    return asyncio.run(execute(go, ToolCall("1", "go"), None)).text

"""


def run(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", PROGRAM + code],
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )


def test_a_process_ends_and_its_servers_with_it() -> None:
    finished = run("print(call())\nsys.exit(7)")
    assert (finished.returncode, finished.stderr) == (7, "")
    pid = finished.stdout.strip().removeprefix("go: ")
    assert not Path(f"/proc/{pid}").exists()


def test_a_process_that_is_forked_off_has_servers_of_its_own() -> None:
    finished = run(
        "first = call()\n"
        "child = os.fork()\n"
        "if child == 0:\n"
        "    second = call()\n"
        "    server.close()\n"
        "    os._exit(0 if first != second else 1)\n"
        "print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), call() == first)\n"
    )
    assert (finished.stdout, finished.stderr) == ("0 True\n", "")


async def test_a_server_cannot_be_waited_for_from_within_the_background() -> None:
    async def inside() -> None:
        odd().toolset()

    with pytest.raises(UserError, match="cannot wait for an MCP server"):
        await asyncio.wrap_future(background().submit(inside()))


async def test_giving_up_a_connection_ends_the_program() -> None:
    server = odd("silent")
    opening = asyncio.create_task(server.toolset_async())
    await asyncio.sleep(0)
    opening.cancel()
    with pytest.raises(asyncio.CancelledError):
        await opening
    await server.aclose()


async def test_closing_while_it_is_opened_ends_that() -> None:
    server = odd("silent")
    opening = asyncio.create_task(server.toolset_async())
    await asyncio.sleep(0)
    await server.aclose()
    with pytest.raises(Exception, match="was closed"):
        await opening


async def test_a_program_that_does_not_end_by_itself_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    from flyball.tool.mcp.wire import process

    monkeypatch.setattr(process, "_TO_END", 0.05)
    stubborn = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(600)"
    with pytest.raises(Exception, match=r"does not answer within 0\.3"):
        await MCPServer.stdio(sys.executable, "-c", stubborn, connect_timeout=0.3).toolset_async()


async def test_without_the_extra_the_command_that_installs_it_is_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delitem(sys.modules, "flyball.tool.mcp.wire.session", raising=False)
    monkeypatch.setitem(sys.modules, "mcp", None)
    with pytest.raises(MissingExtra, match=r"pip install 'flyball\[mcp\]'"):
        await odd().toolset_async()


def test_tools_are_named_in_reprs_and_nothing_else() -> None:
    with odd() as tools:
        assert repr(by_name(tools)["go"]) == "<MCPTool go of odd>"
        assert repr(tools) == "<Toolset odd: go, look>"
