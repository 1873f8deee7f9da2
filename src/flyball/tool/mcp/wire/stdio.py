"""Messages over a process's pipes: one JSON document a line. What is no message there is put aside."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import anyio
from mcp.shared.message import SessionMessage
from mcp_types import jsonrpc_message_adapter

from flyball.tool.mcp.course import ENDED, Course
from flyball.tool.mcp.place import Program
from flyball.tool.mcp.wire.http import MAX_MESSAGE
from flyball.tool.mcp.wire.process import Process

if TYPE_CHECKING:
    from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
    from mcp.client._transport import TransportStreams


@asynccontextmanager
async def over_stdio(
    program: Program, course: Course, ended: Callable[[], None]
) -> AsyncGenerator[TransportStreams]:
    """The streams of a program that is started for it, and ended with it. `ended` is told when it is gone.

    Raises:
        UserError: it cannot be started.
    """
    process = Process(program, course)
    incoming, read = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    write, outgoing = anyio.create_memory_object_stream[SessionMessage](0)
    async with anyio.create_task_group() as tasks:
        try:
            await process.connect(MAX_MESSAGE)
            tasks.start_soon(_receive, process, incoming, course, ended)
            tasks.start_soon(_send, process, outgoing)
            yield read, write
        finally:
            with anyio.CancelScope(shield=True):
                course.stopping = True
                read.close()
                course.code = await process.stop()
            for stream in (write, incoming, outgoing):
                stream.close()
            tasks.cancel_scope.cancel()


async def _receive(
    process: Process,
    incoming: MemoryObjectSendStream[SessionMessage | Exception],
    course: Course,
    ended: Callable[[], None],
) -> None:
    over = ""
    try:
        while line := await process.stdout.readline():
            if not line.strip():
                continue
            try:
                message = jsonrpc_message_adapter.validate_json(line, by_name=False)
            except ValueError:
                course.garbage = line[:4_000].decode("utf-8", "replace").strip()
                continue
            await incoming.send(SessionMessage(message))
        over = ENDED
    except (anyio.ClosedResourceError, anyio.BrokenResourceError):
        pass  # nobody reads any more: it is being closed
    except ValueError:
        over = f"it sent a message of more than {MAX_MESSAGE:,} bytes"
    except OSError as error:
        over = f"its output cannot be read: {error.strerror or error}"
    finally:
        # In this order: who finds the stream at its end finds that it is over, and why.
        course.over = "" if course.stopping else over
        ended()
        incoming.close()
    # A process that writes on must not be stuck with it while it is asked to end.
    while await process.stdout.read(65_536):
        pass


async def _send(process: Process, outgoing: MemoryObjectReceiveStream[SessionMessage]) -> None:
    async for message in outgoing:
        text = message.message.model_dump_json(by_alias=True, exclude_unset=True)
        try:
            process.stdin.write(text.encode("utf-8", "replace") + b"\n")
            await process.stdin.drain()
        except OSError:
            return  # it is gone: whoever reads from it notices
