"""A service as a server of the official SDK's: the protocol's requests, each with what serves it."""

from __future__ import annotations

import logging
from collections.abc import Callable
from importlib.metadata import version
from typing import Any, TypeAlias

from mcp import MCPError
from mcp.server import Server
from mcp.server.context import ServerRequestContext
from mcp_types import (
    INVALID_PARAMS,
    INVALID_REQUEST,
    CallToolRequestParams,
    CallToolResult,
    InputRequiredResult,
    ListResourcesResult,
    ListResourceTemplatesResult,
    ListToolsResult,
    PaginatedRequestParams,
    ReadResourceRequestParams,
    ReadResourceResult,
)

from flyball.adapters.mcp import resources
from flyball.adapters.mcp.calling import call_agent, call_tool
from flyball.adapters.mcp.client import Caller, Client
from flyball.adapters.mcp.offering import AgentOffer, Offer
from flyball.adapters.mcp.results import failed
from flyball.adapters.mcp.running import Desk
from flyball.core.errors import FlyballError, OrchestrationFailure

Context: TypeAlias = ServerRequestContext[Any, Any]
CallerOf: TypeAlias = Callable[[Context], Caller]

NAME = "flyball"
_INSTRUCTIONS = (
    "Each tool that takes a prompt asks an agent, which works by itself, perhaps for minutes, and gives its "
    "answer. It sees nothing of your conversation but the prompt: say all that it needs. Every call is a "
    "recorded run; its result links to it (flyball://loops/…). To go on with what was said in a run, call "
    "the agent again with that link as continue_from."
)
_log = logging.getLogger(__name__)


def mcp_server(desk: Desk, offer: Offer, caller_of: CallerOf) -> Server[Any]:
    """The server.

    Args:
        desk: where calls are served.
        offer: what is offered.
        caller_of: who asks, of a request.
    """

    async def list_tools(_: Context, __: PaginatedRequestParams | None) -> ListToolsResult:
        return ListToolsResult(tools=offer.tools())

    async def call(context: Context, params: CallToolRequestParams) -> CallToolResult | InputRequiredResult:
        offered = offer.get(params.name)
        if offered is None:
            known = ", ".join([tool.name for tool in offer.tools()])
            raise MCPError(INVALID_PARAMS, f"there is no tool {params.name[:100]!r}; there are: {known}")
        client = Client(context, caller_of(context))
        try:
            if isinstance(offered, AgentOffer):
                return await call_agent(desk, offered, params, client)
            return await call_tool(desk, offered, params, client)
        except FlyballError as error:
            return failed(error.record(), "", client.version)
        except MCPError:
            raise
        except Exception:
            _log.exception("the call of %s failed unexpectedly", params.name)
            hidden = OrchestrationFailure("the server failed unexpectedly: its log says more")
            hidden.__suppress_context__ = True
            return failed(hidden.record(), "", client.version)

    async def list_resources(context: Context, _: PaginatedRequestParams | None) -> ListResourcesResult:
        found = await resources.listed(desk.service) if caller_of(context).reads else []
        return ListResourcesResult(resources=found)

    async def list_templates(_: Context, __: PaginatedRequestParams | None) -> ListResourceTemplatesResult:
        return ListResourceTemplatesResult(resource_templates=resources.TEMPLATES)

    async def read_resource(context: Context, params: ReadResourceRequestParams) -> ReadResourceResult:
        if not caller_of(context).reads:
            raise MCPError(INVALID_REQUEST, "the token has not the scope read")
        return await resources.read(desk.service, params.uri)

    return Server(
        NAME,
        version=version("flyball"),
        title="flyball agents",
        instructions=_INSTRUCTIONS,
        get_tool_input_schema=offer.schema,
        on_list_tools=list_tools,
        on_call_tool=call,
        on_list_resources=list_resources,
        on_list_resource_templates=list_templates,
        on_read_resource=read_resource,
    )
