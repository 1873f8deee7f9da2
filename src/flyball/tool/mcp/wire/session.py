"""One session with a server: its whole life is one task.

It is ready when the server has answered and listed its tools, and over when it was closed, or the server is
gone. One that is over stays so; `flyball.tool.mcp.connection` opens others.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from importlib.metadata import version
from typing import Any

import anyio
import mcp_types as types
from mcp import Client, MCPError
from mcp.client.subscriptions import SubscriptionLost
from mcp_types import CONNECTION_CLOSED

from flyball.core.backoff import Backoff
from flyball.tool.mcp.course import Course
from flyball.tool.mcp.exchange import EXCHANGE, Exchange
from flyball.tool.mcp.listing import Listed, Listing
from flyball.tool.mcp.place import Place, Program
from flyball.tool.mcp.wire.http import over_http
from flyball.tool.mcp.wire.stdio import over_stdio

_MOST_PAGES = 1_000
_WAITS = Backoff(0.5, factor=2.0, most=30.0)
"""How long is waited before a service is listened to again."""
# What the SDK tells its loggers is told by errors here; a program that configures logging still gets it.
for _name in ("mcp", "client"):
    logging.getLogger(_name).addHandler(logging.NullHandler())


class Session:
    """A session. `ready` is done when it can be used, or cannot be; `task` when it is over."""

    def __init__(self, place: Place) -> None:
        self.listing = Listing()
        self.course = Course()
        self.opening = Exchange()
        self.error: BaseException | None = None
        self.over = asyncio.Event()
        self.ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._place = place
        self._client: Client | None = None
        self._scope = anyio.CancelScope()
        self._changed = asyncio.Event()
        self.task = asyncio.create_task(self._live())

    @property
    def remembered(self) -> bool:
        """Whether the server keeps something of this session, which it may forget."""
        return self._client is not None and self._client.session.initialize_result is not None

    async def call(self, name: str, arguments: dict[str, Any], exchange: Exchange) -> types.CallToolResult:
        """Call a tool. Cancelling it tells the server so.

        Raises:
            MCPError: the server answered with an error, or the connection is gone.
        """
        if self._client is None or self.over.is_set():
            exchange.unsent = True
            raise MCPError(CONNECTION_CLOSED, "the session is over")
        EXCHANGE.set(exchange)
        return await self._client.call_tool(name, arguments)

    def close(self) -> None:
        """Have it end; `task` is done when it has."""
        self.over.set()
        if not self.ready.done():
            self._scope.cancel()

    async def _live(self) -> None:
        EXCHANGE.set(self.opening)
        place = self._place
        transport = (
            over_stdio(place, self.course, self.over.set) if isinstance(place, Program) else over_http(place)
        )
        me = types.Implementation(name="flyball", version=version("flyball"))
        try:
            with self._scope:
                async with Client(
                    transport, cache=None, client_info=me, message_handler=self._hear
                ) as client:
                    self._client = client
                    self.listing = await self._listed(client)
                    async with anyio.create_task_group() as tasks:
                        if self.listing.changes:
                            tasks.start_soon(self._follow, client)
                        if not self.over.is_set() and not self.ready.done():
                            self.ready.set_result(None)
                        await self.over.wait()
                        tasks.cancel_scope.cancel()
        except Exception as error:
            self.error = error
        finally:
            self.over.set()
            if not self.ready.done():
                self.ready.set_result(None)

    async def _hear(self, message: object) -> None:
        if isinstance(message, types.ToolListChangedNotification):
            self._changed.set()

    async def _follow(self, client: Client) -> None:
        """List the tools again whenever the server says that they have changed."""
        async with anyio.create_task_group() as tasks:
            if not self.remembered:
                tasks.start_soon(self._subscribe, client)
            while True:
                await self._changed.wait()
                self._changed.clear()
                try:
                    self.listing = await self._listed(client)
                except Exception:  # noqa: S112 - what is known stays; the next call tells what is wrong
                    continue

    async def _subscribe(self, client: Client) -> None:
        """In the protocol's newer form, changes are told only to who has asked for them."""
        lost = 0
        while True:
            try:
                async with client.listen(tools_list_changed=True) as events:
                    if lost:
                        self._changed.set()  # perhaps, while nobody listened
                    lost = 0
                    async for _ in events:
                        self._changed.set()
            except MCPError as error:
                if error.code != CONNECTION_CLOSED:
                    return  # it does not tell: its listing stays as it is
            except SubscriptionLost:
                pass
            lost += 1
            await asyncio.sleep(_WAITS.wait(lost))

    @staticmethod
    async def _listed(client: Client) -> Listing:
        offered = client.server_capabilities.tools
        if offered is None:
            return Listing(instructions=client.instructions or "")
        tools: list[Listed] = []
        cursor: str | None = None
        seen: set[str] = set()
        while True:
            page = await client.list_tools(cursor=cursor)
            tools.extend([_as_listed(tool) for tool in page.tools])
            cursor = page.next_cursor
            if cursor is None:
                return Listing(tuple(tools), client.instructions or "", bool(offered.list_changed))
            if cursor in seen or len(seen) >= _MOST_PAGES:
                raise RuntimeError("its list of tools does not end")
            seen.add(cursor)


def _as_listed(tool: types.Tool) -> Listed:
    hints: Mapping[str, Any] = (
        {} if tool.annotations is None else tool.annotations.model_dump(by_alias=True, exclude_none=True)
    )
    title = tool.title or hints.get("title") or ""
    return Listed(tool.name, dict(tool.input_schema), tool.description or "", title, dict(hints))
