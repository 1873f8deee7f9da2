"""The official client of a server that runs here: over real pipes, in either era of the protocol."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from typing import Any, Protocol

import anyio
from mcp import Client
from mcp.client import ClientRequestContext
from mcp.shared.message import SessionMessage
from mcp_types import CallToolResult, ElicitRequestParams, ElicitResult, TextContent, jsonrpc_message_adapter

from flyball.adapters.mcp.stdio import serve_stdio
from flyball.orchestrate.service import Service
from tests.patience import PATIENCE

ERAS = ["legacy", "auto"]
"""How clients begin: with a handshake, or with each request by itself."""


class Ask(Protocol):
    """What a client asks its user with."""

    async def __call__(self, context: ClientRequestContext, params: ElicitRequestParams) -> ElicitResult: ...


@asynccontextmanager
async def pipes(reading: int, writing: int) -> AsyncGenerator[Any]:
    """A client's streams over two descriptors; closing them is what a server is told of its going."""
    told, incoming = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    outgoing, said = anyio.create_memory_object_stream[SessionMessage](0)
    reader = asyncio.StreamReader(limit=1 << 24)
    loop = asyncio.get_running_loop()
    transport, _ = await loop.connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(reading, "rb", 0)
    )

    async def read() -> None:
        async with told:
            while line := await reader.readline():
                with suppress(anyio.BrokenResourceError):
                    await told.send(SessionMessage(jsonrpc_message_adapter.validate_json(line)))

    async def write() -> None:
        async with said:
            async for message in said:
                text = message.message.model_dump_json(by_alias=True, exclude_unset=True)
                await asyncio.to_thread(os.write, writing, text.encode() + b"\n")

    async with anyio.create_task_group() as group:
        group.start_soon(read)
        group.start_soon(write)
        try:
            yield incoming, outgoing
        finally:
            os.close(writing)
            group.cancel_scope.cancel()
            transport.close()


class Served:
    """A server that runs here, and the client that it serves."""

    def __init__(self, client: Client, serving: asyncio.Task[None], notes: list[str]) -> None:
        self.client = client
        self.serving = serving
        self.notes = notes


@asynccontextmanager
async def served(
    service: Service, era: str, *, tools: bool = False, ask: Ask | None = None, **options: Any
) -> AsyncGenerator[Served]:
    """A service's server with a client; when the block ends the client goes, and then the server ends."""
    asked, asking = os.pipe()
    told, telling = os.pipe()
    notes: list[str] = []
    serving = asyncio.create_task(
        serve_stdio(service, reading=asked, writing=telling, tools=tools, note=notes.append, **options)
    )
    try:
        client = Client(pipes(told, asking), mode=era, elicitation_callback=ask)
        async with client:
            yield Served(client, serving, notes)
        async with asyncio.timeout(PATIENCE):
            await asyncio.gather(serving, return_exceptions=True)
    finally:
        serving.cancel()
        await asyncio.gather(serving, return_exceptions=True)
        os.close(telling)
        os.close(asked)


def text_of(result: CallToolResult) -> str:
    """The text of a result."""
    return "\n".join([part.text for part in result.content if isinstance(part, TextContent)])


def loop_of(result: CallToolResult) -> str:
    """The run that a result is of."""
    return (result.meta or {})["flyball/loop_id"]
