"""The server over a process's own streams, until nothing more is read, or it is told to stop.

The streams are read and written by threads that nobody waits for: a client that neither says anything nor
reads holds up nothing. When a client goes away, what it waited for is cancelled; when the process is told to
stop, what runs is left as it is recorded.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable
from typing import Any, TypeAlias

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.server import Server
from mcp.shared.message import SessionMessage
from mcp_types import jsonrpc_message_adapter

from flyball.adapters.mcp.client import Caller
from flyball.adapters.mcp.offering import Offer
from flyball.adapters.mcp.running import Desk
from flyball.adapters.mcp.server import mcp_server
from flyball.orchestrate.service import Service

Incoming: TypeAlias = MemoryObjectSendStream[SessionMessage | Exception]
_MOMENT = 1.5
"""Seconds that what was cancelled has to come to its end; clients kill a server that takes 2."""
_LAST = 1.0
"""Seconds that a client has to read what was said last."""
_CHUNK = 1 << 16


async def serve_stdio(
    service: Service,
    *,
    reading: int,
    writing: int,
    tools: bool = False,
    how: str = "flyball signal {loop_id} approve",
    note: Callable[[str], None] = lambda _: None,
    begun: Callable[[list[str]], None] = lambda _: None,
) -> None:
    """Serve one client until it goes away, or until cancelled.

    Args:
        service: whose agents are served; it is drained at the end, and not closed.
        reading: the descriptor that the client's messages come from.
        writing: the one that ours go to; nobody else may write there.
        tools: whether the agents' tools are offered by themselves, too.
        how: how a person approves a call who cannot be asked, with `{loop_id}` in it.
        note: called with what whoever started this should know.
        begun: called with the names of what is offered.
    """
    offer = Offer([system.agent for system in service.systems.values()], tools=tools)
    for text in offer.notes:
        note(text)
    parking = False
    server = mcp_server(Desk(service, how, lambda: parking), offer, lambda _: Caller())
    begun([tool.name for tool in offer.tools()])
    serving = asyncio.ensure_future(_serve(server, reading, writing))
    try:
        await asyncio.shield(serving)
        await service.drain(_MOMENT)
    except asyncio.CancelledError:
        parking = True
        serving.cancel()
        await asyncio.gather(serving, return_exceptions=True)
        await service.drain(0)
        raise


async def _serve(server: Server[Any], reading: int, writing: int) -> None:
    told, incoming = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    outgoing, answers = anyio.create_memory_object_stream[SessionMessage](0)
    reads = asyncio.create_task(_read(reading, told))
    writes = asyncio.create_task(_write(writing, answers))
    try:
        await server.run(incoming, outgoing, server.create_initialization_options())
    finally:
        reads.cancel()
        await asyncio.wait([writes], timeout=_LAST)  # what was said last
        writes.cancel()
        await asyncio.gather(reads, writes, return_exceptions=True)


async def _read(descriptor: int, told: Incoming) -> None:
    """Pass on what comes, line by line, until its end."""
    loop, lines = asyncio.get_running_loop(), asyncio.Queue[bytes | None]()

    def put(line: bytes | None) -> None:
        try:
            loop.call_soon_threadsafe(lines.put_nowait, line)
        except RuntimeError:
            return  # the loop is closed: nobody listens any more

    threading.Thread(target=_lines, args=(descriptor, put), name="mcp-reading", daemon=True).start()
    async with told:
        while (line := await lines.get()) is not None:
            message: SessionMessage | Exception
            try:
                message = SessionMessage(jsonrpc_message_adapter.validate_json(line, by_name=False))
            except ValueError as error:
                message = error
            await told.send(message)


def _lines(descriptor: int, put: Callable[[bytes | None], None]) -> None:
    """Read lines in a thread; None is the end."""
    rest = b""
    while True:
        try:
            chunk = os.read(descriptor, _CHUNK)
        except OSError:
            chunk = b""
        *whole, rest = (rest + chunk).split(b"\n")
        for line in whole:
            if line.strip():
                put(line)
        if not chunk:
            put(None)
            return


async def _write(descriptor: int, answers: MemoryObjectReceiveStream[SessionMessage]) -> None:
    """Write what is to be said, until there is nothing more, or nobody reads it."""
    async with answers:
        async for said in answers:
            text = said.message.model_dump_json(by_alias=True, exclude_unset=True)
            try:
                await asyncio.to_thread(_write_all, descriptor, text.encode() + b"\n")
            except OSError:
                return  # its client has gone; the end of what it says comes too


def _write_all(descriptor: int, data: bytes) -> None:
    left = memoryview(data)
    while left:
        left = left[os.write(descriptor, left) :]
