"""MCPTool: a tool that a server has."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Mapping
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, Protocol

from flyball.core.context import RunContext
from flyball.core.errors import UserError
from flyball.core.messages import ToolResult
from flyball.core.tools import ToolSpec
from flyball.tool.given_schema import validator_for
from flyball.tool.mcp.content import returned
from flyball.tool.mcp.place import CallHeaders, check_headers
from flyball.tool.options import Availability

if TYPE_CHECKING:
    from mcp_types import CallToolResult


class Caller(Protocol):
    """What a tool needs of its server. See `flyball.tool.mcp.server.MCPServer`."""

    @property
    def name(self) -> str:
        """What it is called."""
        ...

    def call(
        self, tool: str, arguments: dict[str, Any], headers: Mapping[str, str]
    ) -> Future[CallToolResult | ToolResult]:
        """Call a tool by the server's own name for it; cancelling it tells the server so."""
        ...

    def offers(self, tool: str) -> Availability:
        """Whether it offers a tool, or why not."""
        ...


class MCPTool:
    """A tool of an MCP server, which calls it `remote_name`. It may be called on any event loop.

    Cancelling a call, as its time-out does, tells the server so.
    """

    __slots__ = ("_headers", "_validate", "remote_name", "server", "spec", "wants_context")

    def __init__(
        self, server: Caller, remote_name: str, spec: ToolSpec, call_headers: CallHeaders | None
    ) -> None:
        self.server = server
        self.remote_name = remote_name
        self.spec = spec
        self.wants_context = call_headers is not None
        self._headers = call_headers
        self._validate = validator_for(spec.definition.parameters)

    async def run(self, args_json: str, context: RunContext[Any] | None) -> object:
        """Call the tool.

        Raises:
            ModelRetry: the arguments are no object, or lack what is required.
            ToolFailure: the server cannot be reached, is gone, or answered what cannot be taken.
            UserError: `call_headers` gave what is none.
        """
        arguments = self._validate(args_json)
        headers: Mapping[str, str] = {} if self._headers is None else await self._headers_for(context)
        answer = await asyncio.wrap_future(self.server.call(self.remote_name, arguments, headers))
        return answer if isinstance(answer, ToolResult) else returned(answer)

    async def available(self, context: RunContext[Any]) -> Availability:
        """Whether the server still offers it, as far as is known."""
        return self.server.offers(self.remote_name)

    async def _headers_for(self, context: RunContext[Any] | None) -> Mapping[str, str]:
        assert self._headers is not None
        if context is None:
            raise UserError(f"{self!r} has call_headers, which take a RunContext, and was run without one")
        given: Any = self._headers(context)
        return check_headers(await given if inspect.isawaitable(given) else given)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.spec.definition.name} of {self.server.name}>"
