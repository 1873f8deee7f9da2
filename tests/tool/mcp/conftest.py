"""Servers for the tests here: one of each kind is shared, what is to be broken is a test's own."""

from __future__ import annotations

import sys
from collections.abc import Generator
from pathlib import Path
from typing import Any, Unpack

import pytest

from flyball.tool.mcp import MCPServer, ServerOptions
from flyball.tool.toolset import Toolset
from tests.tool.mcp.served import Served

ROOT = Path(__file__).resolve().parents[3]
HERE = Path(__file__).parent


def toolbox(*args: str, env: dict[str, str] | None = None, **options: Unpack[ServerOptions]) -> MCPServer:
    """The toolbox as a program."""
    options.setdefault("name", "toolbox")
    paths = {"PYTHONPATH": f"{ROOT / 'src'}:{ROOT}", **(env or {})}
    return MCPServer.stdio(sys.executable, "-m", "tests.tool.mcp.toolbox", *args, env=paths, **options)


def odd(*how: str, env: dict[str, str] | None = None, **options: Unpack[ServerOptions]) -> MCPServer:
    """A server that is odd in some way."""
    options.setdefault("name", "odd")
    return MCPServer.stdio(sys.executable, "-IS", HERE / "odd_server.py", *how, env=env, **options)


def by_name(tools: Toolset) -> dict[str, Any]:
    return {tool.spec.definition.name: tool for tool in tools}


@pytest.fixture(scope="session")
def stdio_server() -> Generator[MCPServer]:
    """The toolbox as a program, for tests that leave it as it is."""
    server = toolbox("aloud", env={"GIVEN": "yes"})
    yield server
    server.close()


@pytest.fixture(scope="session")
def service() -> Generator[Served]:
    with Served() as served:
        yield served


@pytest.fixture(scope="session")
def http_server(service: Served) -> Generator[MCPServer]:
    """The toolbox as a service, for tests that leave it as it is."""
    server = MCPServer.http(service.url, name="toolbox")
    yield server
    server.close()
