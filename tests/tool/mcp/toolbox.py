"""A proper server, made with the official SDK: as a program it speaks over stdio, in tests over HTTP too."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from typing import Any, cast

from mcp.server import MCPServer
from mcp.server.mcpserver import Context, Image
from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import (
    AudioContent,
    BlobResourceContents,
    CallToolResult,
    EmbeddedResource,
    ImageContent,
    ResourceLink,
    TextContent,
    TextResourceContents,
    ToolAnnotations,
)
from pydantic import BaseModel

READ_ONLY = ToolAnnotations(read_only_hint=True)
PIXEL = "iVBORw0KGgo="


class Forecast(BaseModel):
    """What is to come."""

    city: str
    degrees: float


def make() -> MCPServer[Any]:
    """A server with tools of all kinds."""
    server = MCPServer("toolbox", instructions="Add before you {{echo}}.")

    @server.tool(title="Sum", annotations=READ_ONLY)
    def add(a: int, b: int) -> int:
        """Add two numbers."""
        return a + b

    @server.tool(annotations=ToolAnnotations(idempotent_hint=True))
    def echo(text: str) -> str:
        """Say it again."""
        return text

    @server.tool()
    def forecast(city: str) -> Forecast:
        return Forecast(city=city, degrees=18.5)

    @server.tool()
    def everything() -> CallToolResult:
        return CallToolResult(
            content=[
                TextContent(type="text", text="one"),
                TextContent(type="text", text="two"),
                ImageContent(type="image", data=PIXEL, mime_type="image/png"),
                AudioContent(type="audio", data="AAAA", mime_type="audio/wav"),
                EmbeddedResource(
                    type="resource",
                    resource=TextResourceContents(uri="file:///a.txt", mime_type="text/plain", text="inside"),
                ),
                EmbeddedResource(
                    type="resource",
                    resource=BlobResourceContents(uri="file:///b.png", mime_type="image/png", blob=PIXEL),
                ),
                ResourceLink(type="resource_link", uri="file:///c.txt", name="c", description="see there"),
            ]
        )

    @server.tool()
    def picture() -> Image:
        return Image(data=b"\x89PNG", format="png")

    @server.tool()
    def fail() -> str:
        raise ToolError("the shelf is empty")

    @server.tool()
    def pid() -> int:
        return os.getpid()

    @server.tool()
    def variables() -> list[str]:
        return sorted(os.environ)

    @server.tool()
    def header(name: str, ctx: Context) -> str:
        return (ctx.headers or {}).get(name.lower(), "none")

    @server.tool(annotations=READ_ONLY)
    async def wait(file: str) -> str:
        """Wait until the file says what to do, and say in others that it began, and was cancelled."""
        with Path(file).with_suffix(".began").open("a", encoding="utf-8") as began:
            began.write("x")
        try:
            while not os.path.exists(file):  # noqa: ASYNC110, ASYNC240 - another process makes it
                await asyncio.sleep(0.005)
        except asyncio.CancelledError:
            Path(file).with_suffix(".cancelled").write_text("x")
            raise
        return await asyncio.to_thread(Path(file).read_text)

    @server.tool()
    async def lose(name: str, ctx: Context) -> str:
        server.remove_tool(name)
        await ctx.notify_tools_changed()
        await cast("Any", ctx.session).send_tool_list_changed()
        return f"lost {name}"

    @server.tool()
    async def talk(ctx: Context) -> str:
        """Report progress on the way."""
        await ctx.report_progress(0.5, 1.0, "half")
        return "done"

    return server


if __name__ == "__main__":
    if sys.argv[1:] == ["aloud"]:
        print("toolbox: started", file=sys.stderr, flush=True)
    if sys.argv[1:2] == ["http"]:
        from tests.tool.mcp.served import Served

        with Served(port=int(sys.argv[2])):
            print("ready", flush=True)
            sys.stdin.read()
    else:
        make().run()
