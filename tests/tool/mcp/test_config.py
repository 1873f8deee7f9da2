"""Servers that are named by a text or a file."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from flyball.core.errors import UserError
from flyball.tool.mcp import mcp_servers
from flyball.tool.mcp.place import Program, Service
from tests.tool.mcp.conftest import HERE


def places(text: str) -> list[Any]:
    return [server._place for server in mcp_servers(text)]  # pyright: ignore[reportPrivateUsage]


def written(tmp_path: Path, document: Any) -> str:
    file = tmp_path / "servers.json"
    file.write_text(document if isinstance(document, str) else json.dumps(document))
    return str(file)


def test_a_command_is_cut_as_a_shell_would_and_its_variables_are_filled_in(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("MY_TOKEN", "a b; rm -rf")
    (place,) = places("uvx --quiet 'my server' --token ${MY_TOKEN} ${NOT_SET:-x}")
    assert isinstance(place, Program)
    assert (place.command, place.args) == ("uvx", ("--quiet", "my server", "--token", "a b; rm -rf", "x"))
    assert place.name == "my server"


@pytest.mark.parametrize(
    ("command", "name"),
    [
        ("uvx mcp-server-time", "mcp-server-time"),
        ("npx -y @scope/server-files /home", "server-files"),
        ("uv run server.py", "server"),
        ("/usr/bin/python3 -m my.server", "my.server"),
        ("docker run -i image", "image"),
        ("./tools/shop.sh --token s3cret", "shop"),
        ("sh -c 'TOKEN=s3cret exec server'", "sh"),
        ("python", "python"),
    ],
)
def test_a_program_is_called_by_what_it_is_and_by_no_secret(command: str, name: str) -> None:
    (server,) = mcp_servers(command)
    assert server.name == name
    assert "s3cret" not in repr((server, places(command)))


def test_an_address_is_a_service() -> None:
    (server,) = mcp_servers("https://host.example/mcp", prefix="x")
    assert server.name == "host.example"
    assert isinstance(places("https://host.example/mcp")[0], Service)


def test_a_file_names_servers_of_both_kinds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_TOKEN", "t0ken")
    text = written(
        tmp_path,
        {
            "mcpServers": {
                "files": {"command": "npx", "args": ["-y", "files", 3], "env": {"K": "${MY_TOKEN}"}, "x": 1},
                "shop": {"type": "http", "url": "https://h/mcp?k=1", "headers": {"A": "Bearer ${MY_TOKEN}"}},
                "off": {"disabled": True},
            }
        },
    )
    files, shop = places(text)
    assert (files.args, files.env) == (("-y", "files", "3"), {"K": "t0ken"})
    assert (shop.url, shop.headers) == ("https://h/mcp?k=1", {"A": "Bearer t0ken"})
    assert [server.name for server in mcp_servers(text)] == ["files", "shop"]
    assert "t0ken" not in repr(mcp_servers(text)) + repr((files, shop))


async def test_tools_of_a_file_bear_the_servers_name_and_its_options(tmp_path: Path) -> None:
    entry = {"command": sys.executable, "args": ["-IS", str(HERE / "odd_server.py")]}
    text = written(tmp_path, {"servers": {"my odd": {**entry, "allow": ["go"], "timeout": 3}}})
    (server,) = mcp_servers(text, timeout=9)
    async with server as tools:
        assert tools.names == ("my_odd__go",)
        assert tools.tools[0].spec.timeout == 3


@pytest.mark.parametrize(
    ("document", "told"),
    [
        ("{", "holds no JSON"),
        ([], "must be an object, not a list"),
        ({}, "there are no servers"),
        ({"mcpServers": {}}, "there are no servers in it"),
        ({"mcpServers": {"a": {"comand": "x"}}}, "server 'a' has neither a command nor a url"),
        ({"mcpServers": {"a": {"command": "x", "args": "y"}}}, "server 'a': args must be a list"),
        ({"mcpServers": {"a": {"command": ["x"]}}}, "server 'a': command must be text"),
        ({"mcpServers": {"a": {"url": "https://h/sse", "type": "sse"}}}, "server 'a': is of type 'sse'"),
        ({"mcpServers": {"a": {"url": "https://u:p@h/"}}}, "server 'a': the address.*carries a user"),
        ({"mcpServers": {"a": {"command": "x", "env": {"K": "${NOT_SET}"}}}}, "env K of 'a'.*NOT_SET, which"),
        ({"mcpServers": {"a": {"command": "x", "allow": "y"}}}, "server 'a': an MCP server's allow='y'"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_files_that_cannot_be(tmp_path: Path, document: Any, told: str) -> None:
    with pytest.raises(UserError, match=told):
        mcp_servers(written(tmp_path, document))


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("  ", "the text is empty"),
        ("uvx 'half", "cannot be read: No closing quotation"),
        ("nowhere/servers.json", "cannot be read: No such file"),
        ("https://host/mcp?key=s3cret", "has a query"),
        ("ftp://host/mcp", "no address of an MCP server"),
        ("run ${NOT_SET}", "needs the variable NOT_SET"),
    ],
)
def test_texts_that_cannot_be(text: str, told: str) -> None:
    with pytest.raises(UserError, match=told) as raised:
        mcp_servers(text)
    assert "s3cret" not in str(raised.value)
