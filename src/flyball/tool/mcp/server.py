"""MCPServer: a server, and the toolset of what it offers."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from concurrent.futures import Future
from os import PathLike
from threading import Lock
from types import TracebackType
from typing import TYPE_CHECKING, Any, Unpack

from flyball.tool.mcp.background import background
from flyball.tool.mcp.connection import Connection
from flyball.tool.mcp.faults import Faults
from flyball.tool.mcp.listing import Listing, spec_of
from flyball.tool.mcp.naming import fitting_names
from flyball.tool.mcp.options import CONNECT_TIMEOUT, ServerOptions, check_options
from flyball.tool.mcp.place import CallHeaders, Place, Program, Service, check_headers
from flyball.tool.mcp.selection import check_named, selected
from flyball.tool.mcp.tool import MCPTool
from flyball.tool.options import Availability
from flyball.tool.toolset import Toolset

if TYPE_CHECKING:
    from mcp_types import CallToolResult

    from flyball.core.messages import ToolResult


class MCPServer:
    """An MCP server: a program that is started here (`stdio`), or a service at an address (`http`).

    `toolset()` connects to it and gives its tools; any number of agents, on any event loop, share the one
    connection. When it is lost, the next call opens it again. It is closed by `close()`, at the end of a
    `with` or `async with` block (which gives the toolset), or with the process.

    Nothing happens when one is made. It can be made at a module's level, and so can its toolset.
    """

    __slots__ = ("_connection", "_lock", "_options", "_place", "name")

    def __init__(self, place: Place, **options: Unpack[ServerOptions]) -> None:
        """Use `stdio` or `http`.

        Raises:
            UserError: an option cannot be.
        """
        check_options(options)
        self.name = options.get("name") or place.name
        self._place = place
        self._options = options
        self._lock = Lock()
        self._connection: Connection | None = None

    @classmethod
    def stdio(
        cls,
        command: str | PathLike[str],
        *args: str | PathLike[str],
        env: Mapping[str, str] | None = None,
        cwd: str | PathLike[str] | None = None,
        **options: Unpack[ServerOptions],
    ) -> MCPServer:
        """A server that is a program, spoken to over its stdin and stdout.

        Args:
            command: the program; no shell is involved.
            args: its arguments.
            env: its environment, besides PATH, HOME and the like; no more of this process's is passed on.
            cwd: the folder that it runs in.
            options: see `ServerOptions`.

        Raises:
            UserError: something cannot be.
        """
        return cls(Program(command, args, env, cwd), **options)

    @classmethod
    def http(
        cls,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        call_headers: CallHeaders | None = None,
        **options: Unpack[ServerOptions],
    ) -> MCPServer:
        """A server that is a service, spoken to over streamable HTTP.

        Args:
            url: its address, without a user or a password.
            headers: sent with each request. The mapping is read each time: one that changes is followed.
            call_headers: a function of the RunContext, sync or async, which gives further headers for one
                call, such as the token of the user whom the run is for.
            options: see `ServerOptions`.

        Raises:
            UserError: something cannot be.
        """
        return cls(Service(url, headers, call_headers), **options)

    def toolset(self) -> Toolset:
        """The server's tools. Connects to it, if need be, and blocks until it has answered.

        On an event loop, which this would hold up, there is `toolset_async`.

        Raises:
            MissingExtra: the SDK is not installed: `pip install 'flyball[mcp]'`.
            UserError: the program is not there, or an option does not fit what the server has.
            ToolFailure: the server cannot be used; see `flyball.tool.mcp.faults`.
            SchemaMalformed: a tool's schema is none.
        """
        asked = self._ask()
        try:
            return self._made(asked.result())
        except BaseException:
            asked.cancel()
            raise

    async def toolset_async(self) -> Toolset:
        """As `toolset`, on an event loop. Cancelling it gives up a connection that is being made."""
        return self._made(await asyncio.wrap_future(self._ask()))

    def close(self) -> None:
        """End the session, and the program with it; blocks until it has. Its tools are then unavailable."""
        if (closing := self._closing()) is not None:
            closing.result()

    async def aclose(self) -> None:
        """As `close`, on an event loop."""
        if (closing := self._closing()) is not None:
            await asyncio.wrap_future(closing)

    @property
    def stderr(self) -> tuple[str, ...]:
        """The last lines that the program has written to its stderr."""
        return () if self._connection is None else self._connection.stderr

    def offers(self, tool: str) -> Availability:
        """Whether the server offers a tool, by its own name for it, as far as is known; or why not."""
        connection = self._connection
        if connection is None or connection.closed:
            return f"MCP server {self.name!r} was closed"
        listing = connection.listing
        if listing is None or tool in listing.names:
            return True
        return f"MCP server {self.name!r} does not offer {tool!r} any more"

    def call(
        self, tool: str, arguments: dict[str, Any], headers: Mapping[str, str]
    ) -> Future[CallToolResult | ToolResult]:
        """Call a tool by the server's own name for it, as its tools do. Cancelling it tells the server so.

        Raises:
            UserError: the headers have become such as cannot be sent.
        """
        if isinstance(self._place, Service):
            check_headers(self._place.headers)  # a mapping may change
        connection = self._connect(again=False)
        return connection.home.submit(connection.call(tool, arguments, headers))

    def _connect(self, *, again: bool) -> Connection:
        home = background()
        with self._lock:
            there = self._connection
            # In a process that was forked off, the connection is that of the process above.
            if there is None or there.home is not home or (again and there.closed):
                seconds = self._options.get("connect_timeout", CONNECT_TIMEOUT)
                there = Connection(self._place, Faults(self.name, self._place), seconds, home)
                self._connection = there
            return there

    def _ask(self) -> Future[Listing]:
        connection = self._connect(again=True)
        return connection.home.submit(connection.open())

    def _closing(self) -> Future[None] | None:
        connection = self._connection
        if connection is None or connection.home is not background():
            return None
        return connection.home.submit(connection.close())

    def _made(self, listing: Listing) -> Toolset:
        options, names = self._options, listing.names
        taken = selected(self.name, names, options)
        approval, safety = options.get("approval", False), options.get("safety")
        if not isinstance(approval, bool) and not callable(approval):
            check_named(self.name, "approval", names, approval)
        if isinstance(safety, Mapping):
            check_named(self.name, "safety", names, list(safety))
        here = fitting_names(self.name, taken, options.get("prefix", ""))
        headers = self._place.call_headers if isinstance(self._place, Service) else None
        tools = [
            MCPTool(
                self,
                listed.name,
                spec_of(self.name, listed, here[listed.name], options, changes=listing.changes),
                headers,
            )
            for listed in listing.tools
            if listed.name in here
        ]
        told = listing.instructions if options.get("instructions", False) else ""
        return Toolset(self.name, tools, instructions=told)

    def __enter__(self) -> Toolset:
        return self.toolset()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    async def __aenter__(self) -> Toolset:
        return await self.toolset_async()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    def __repr__(self) -> str:
        return f"<MCPServer {self.name}>"
