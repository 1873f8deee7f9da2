"""The MCP servers that are named on the command line, for the time of one command.

Their tools need approval, but for those that a server marks as read-only; a file may say otherwise.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager

from flyball.core.errors import UserError
from flyball.tool.mcp import MCPServer, mcp_servers, unless_read_only
from flyball.tool.toolset import Toolset


def named(texts: Sequence[str]) -> tuple[MCPServer, ...]:
    """The servers that these texts name: commands, addresses, files.

    Raises:
        UserError: one of them names none.
    """
    try:
        return tuple([server for text in texts for server in mcp_servers(text, approval=unless_read_only)])
    except UserError as error:
        raise UserError(f"--mcp: {error.message}", **error.details) from error


@asynccontextmanager
async def opened(texts: Sequence[str]) -> AsyncGenerator[list[Toolset]]:
    """The toolsets of these servers; at the end all servers are closed.

    Raises:
        UserError: a text names none, or a program is not there.
        ToolFailure: a server cannot be used.
    """
    servers = named(texts)
    try:
        asked = [asyncio.ensure_future(server.toolset_async()) for server in servers]
        try:
            yield list(await asyncio.gather(*asked))
        finally:
            for one in asked:
                one.cancel()
    finally:
        await asyncio.gather(*[server.aclose() for server in servers])
