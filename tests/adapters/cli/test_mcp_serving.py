"""`flyball mcp serve` as clients start it: a process of its own, with the official client before it."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp_types import CallToolResult, TextContent

from flyball.adapters.cli.cluster import Cluster
from flyball.core.events import Ended, Started
from flyball.runtime.sqlite import SQLiteJournal
from tests.adapters.cli.conftest import COMMAND, Flyball
from tests.adapters.cli.test_cluster import AGENTS, ready, stopped
from tests.patience import PATIENCE

MODULE = "tests.adapters.cli.mcp_agents"
Start = Callable[..., "subprocess.Popen[str]"]


def server(*argv: str) -> StdioServerParameters:
    command, *words = [*COMMAND, "mcp", "serve", *argv]
    return StdioServerParameters(command=command, args=words, env=dict(os.environ))


def text_of(result: CallToolResult) -> str:
    return "\n".join([part.text for part in result.content if isinstance(part, TextContent)])


@pytest.mark.integration
async def test_what_agents_print_does_not_reach_the_client(home: Path, tmp_path: Path) -> None:
    journal, log = tmp_path / "runs.db", tmp_path / "stderr"
    argv = (MODULE, "--journal", str(journal), "--deps", f"{AGENTS}:made", "--tools", "--yes")
    with log.open("w") as err:
        async with Client(stdio_client(server(*argv), errlog=err)) as client:
            tools = [tool.name for tool in (await client.list_tools()).tools]
            noisy = await client.call_tool("noisy", {"prompt": "Go on", "loop_id": "mine"})
            paid = await client.call_tool("shop", {"prompt": "Pay"})
            alone = await client.call_tool("pay")
    assert tools == ["noisy", "shop", "waits", "noise", "pay"]
    assert text_of(noisy) == "Then: made by hand, stdin gives ''"
    assert [text_of(one) for one in (paid, alone)] == ["Then: paid", "paid"]
    assert log.read_text().splitlines() == [
        "printed while it is imported",
        "ready: noisy, shop, waits, noise, pay, for one MCP client",
        "printed by a tool",
        "written by a tool",
        "printed by a child",
    ]
    async with SQLiteJournal(journal) as recorded:
        assert isinstance((await recorded.read("mine"))[-1], Ended)


async def test_told_to_stop_it_leaves_runs_as_they_are_recorded(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, journal = tmp_path / "asked", tmp_path / "runs.db"
    monkeypatch.setenv("ASKED", str(asked))
    child = start("mcp", "serve", f"{MODULE}:waits", "--journal", str(journal), stdin=subprocess.PIPE)
    try:
        out, err = await asyncio.to_thread(_call_and_stop, child, asked)
    finally:
        child.kill()
        child.wait()
    assert child.returncode == 0
    assert [line[:23] for line in out.splitlines()] == ['{"jsonrpc":"2.0","id":1', '{"jsonrpc":"2.0","id":2']
    assert err.splitlines()[-1].startswith("stopped: what was not over is recorded")
    async with SQLiteJournal(journal) as recorded:
        events = await recorded.read("mine")
    assert [type(event) for event in events] == [Started]


def _call_and_stop(child: subprocess.Popen[str], asked: Path) -> tuple[str, str]:
    """Call an agent, and tell the server to stop while it waits; its stdin stays open."""
    assert child.stdin is not None
    child.stdin.write(
        '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25",'
        '"capabilities":{},"clientInfo":{"name":"by hand","version":"1"}}}\n'
        '{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"waits",'
        '"arguments":{"prompt":"Hello","loop_id":"mine"}}}\n'
    )
    child.stdin.flush()
    _until(asked.exists, child)
    child.send_signal(signal.SIGTERM)
    assert child.wait(PATIENCE) == 0
    return child.communicate(timeout=PATIENCE)


def _until(there: Callable[[], bool], child: subprocess.Popen[Any]) -> None:
    """Wait for what a process does; nobody tells us."""
    while not there():
        try:
            child.wait(0.02)
        except subprocess.TimeoutExpired:
            continue
        pytest.fail("it ended before that")


async def test_runs_on_nats_are_carried_on_by_workers(start: Start, tmp_path: Path) -> None:
    up = await asyncio.to_thread(start, "up", AGENTS)
    try:
        await asyncio.to_thread(ready, up)
        options = Cluster().options()
        url = options.servers[0].replace("//", f"//{options.token}@")
        with (tmp_path / "stderr").open("w") as err:
            async with Client(stdio_client(server(AGENTS, "--nats", url), errlog=err)) as client:
                hello = await client.call_tool("greeter", {"prompt": "Hello"})
                waits = await client.call_tool("shop", {"prompt": "Pay"})
        assert text_of(hello) == "Hello."
        assert text_of(waits).startswith("AWAITING_APPROVAL: ")
        assert f"approve --nats {options.servers[0]}`" in text_of(waits)  # and not the secret in it
        assert (await asyncio.to_thread(stopped, up))[0] == 0
    finally:
        up.kill()
        await asyncio.to_thread(up.communicate)


@pytest.mark.parametrize(
    ("argv", "line"),
    [
        ([], "AGENTS is missing: name the module with the agents, or a model with -m"),
        (["nowhere"], "there is no module 'nowhere'"),
        ([AGENTS, "--yes", "--nats", "nats://127.0.0.1:1"], "--yes is for agents that run here"),
        ([AGENTS, "--journal", "x.db", "--nats", "nats://127.0.0.1:1"], "name two places"),
    ],
)
def test_what_cannot_be_is_one_line(flyball: Flyball, argv: list[str], line: str) -> None:
    said = flyball("mcp", "serve", *argv)
    assert said.code == 2
    assert said.out == ""
    assert line in said.err
    assert said.err.count("\n") == 1
