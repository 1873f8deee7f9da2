"""MCP servers on the command line: what they offer, and runs with their tools."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.adapters.cli.conftest import ROOT, Flyball

SERVER = str(ROOT / "tests" / "tool" / "mcp" / "odd_server.py")


def odd(*how: str) -> str:
    """A server, as it is typed."""
    return shlex.join([sys.executable, "-IS", SERVER, *how])


@pytest.fixture
def servers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A file with one server, which has a secret."""
    monkeypatch.setenv("ODD_TOKEN", "s3cret-token")
    entry: dict[str, Any] = {
        "command": sys.executable,
        "args": ["-IS", SERVER, "", "--token=${ODD_TOKEN}"],
        "env": {"TOKEN": "${ODD_TOKEN}"},
    }
    file = tmp_path / "servers.json"
    file.write_text(json.dumps({"mcpServers": {"odd": entry}}))
    return str(file)


@pytest.mark.integration
def test_what_a_server_offers(flyball: Flyball, servers: str) -> None:
    said = flyball("mcp", "tools", odd())
    assert (said.code, said.err) == (0, "")
    assert [line.split()[:2] for line in said.out.splitlines()[-2:]] == [["go", "asked"], ["look"]]
    rows = flyball("mcp", "tools", odd("pages"), servers, "--json").json
    assert [row["name"] for row in rows] == ["tool0", "tool1", "tool2", "tool3", "odd__go", "odd__look"]
    assert rows[-1] == {
        "server": "odd",
        "name": "odd__look",
        "description": "",
        "parameters": {"type": "object", "properties": {}},
        "safety": "idempotent",
        "approval": False,
        "annotations": {"readOnlyHint": True},
    }
    assert "no tools" in flyball("mcp", "tools", odd("no tools")).out


@pytest.mark.integration
def test_a_server_that_cannot_be_used(flyball: Flyball) -> None:
    said = flyball("mcp", "tools", odd("exits"))
    assert said.code == 5
    assert said.err == (
        "flyball: TOOL_UNAVAILABLE: MCP server 'odd_server' cannot be used: it ended with exit code 3; its "
        "stderr ends with: line one | no such database: token\n"
    )
    said = flyball("ask", "Go.", "-m", "test", "--mcp", "no-such-program-x")
    assert (said.code, "'no-such-program-x' of an MCP server is not found" in said.err) == (2, True)
    said = flyball("ask", "Go.", "-m", "test", "--mcp", "https://u:s3cret@host/")
    assert (said.code, "s3cret" in said.err) == (2, False)
    assert "--mcp: the address" in said.err
    assert flyball("mcp", "tools").code == 2


@pytest.mark.integration
def test_a_call_is_approved_by_somebody_unless_it_only_reads(flyball: Flyball) -> None:
    said = flyball("ask", "Go.", "-m", "scripted:forecast", "--mcp", odd(), "-q")
    assert (said.code, "nobody is here to approve it" in said.out) == (0, True)
    said = flyball("ask", "Go.", "-m", "scripted:forecast", "--mcp", odd(), "-q", "--yes")
    assert "It says: go: " in said.out
    said = flyball("ask", "Go.", "-m", "scripted:forecast", "--mcp", odd("pages"), "-q")
    assert "nobody is here to approve it" in said.out


@pytest.mark.integration
def test_a_run_is_gone_on_with_by_the_servers_that_it_began_with(
    flyball: Flyball, home: Path, servers: str
) -> None:
    said = flyball("ask", "Go.", "-m", "scripted:forecast", "--mcp", servers, "--yes", "--json")
    assert said.code == 0
    journal = (home / "runs.db").read_bytes().decode("latin-1")
    assert servers in journal
    assert "s3cret" not in journal + flyball("show", "--json").out + flyball("why", "--json").out
    again = flyball("fork", "last", "--at", "0", "--yes", "-q")
    assert (again.code, "It says: go: " in again.out) == (0, True)


@pytest.mark.integration
def test_servers_that_are_named_anew_go_first(flyball: Flyball) -> None:
    flyball("ask", "Go.", "-m", "scripted:forecast", "--mcp", odd(), "--yes")
    other = flyball("fork", "last", "--at", "0", "--yes", "-q", "--mcp", odd("refuses"))
    assert "refused 'go': the moon is in the wrong phase" in other.out


def test_a_run_that_was_stopped_is_resumed_with_its_servers(process: Flyball, servers: str) -> None:
    said = process(
        "ask", "Go.", "-m", "scripted:forecast-hangs", "--mcp", servers, "--yes", "-q", SIGNAL="15"
    )
    assert said.code == 143
    assert "flyball resume" in said.err
    said = process("resume", "-q", GO="1")
    assert (said.code, said.err) == (0, "")
    assert "It says: go: " in said.out


@pytest.mark.integration
def test_a_conversation_keeps_its_servers(flyball: Flyball) -> None:
    lines = "Go.\n/model scripted:forecast\nAgain.\n"
    said = flyball("chat", "-m", "scripted:forecast", "--mcp", odd(), "--yes", "-q", stdin=lines)
    assert said.code == 0
    assert said.out.count("It says: go: ") == 2
