"""Something between a browser and its server that can fall silent: it takes connections, and says nothing."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager


class Between:
    """Passes bytes on, both ways, while it is not `silent`; what comes meanwhile is lost."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._tasks: set[asyncio.Task[None]] = set()
        self._writers: set[asyncio.StreamWriter] = set()
        self.silent = False
        self.url = ""

    async def take(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """A connection."""
        there, onward = await asyncio.open_connection("127.0.0.1", self._port)
        self._writers |= {writer, onward}
        for one in (self._pass(reader, onward), self._pass(there, writer)):
            self._tasks.add(asyncio.create_task(one))

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        dead = self.silent
        try:
            while data := await reader.read(65536):
                dead = dead or self.silent  # half of a connection that was lost does not come back
                if not dead:
                    writer.write(data)
                    await writer.drain()
        except OSError:
            return
        finally:
            if not dead:
                writer.close()

    async def close(self) -> None:
        """End all connections."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for writer in self._writers:
            writer.transport.abort()


@asynccontextmanager
async def between(url: str) -> AsyncGenerator[Between]:
    """One before a server."""
    made = Between(int(url.rpartition(":")[2]))
    server = await asyncio.start_server(made.take, "127.0.0.1", 0)
    made.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield made
    finally:
        server.close()
        await made.close()
