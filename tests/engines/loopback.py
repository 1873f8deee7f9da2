"""A server on this machine that answers as the test says, down to the byte: chunks, resets, silence.

    async with Loopback(lambda got: Answer(b"{}")) as server:
        engine = OpenAIEngine("m", base_url=f"{server.url}/v1", api_key="k", server="openai")

It is written on bare sockets, so that it can also do what no proper server would.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from types import TracebackType
from typing import Any, Literal

import msgspec
from msgspec import Struct

from tests.patience import PATIENCE


class Received(Struct, frozen=True):
    """A request as it came; header names are in lower case."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return msgspec.json.decode(self.body)


class Answer(Struct, frozen=True):
    """What to answer. `body` as chunks is sent in pieces, each by itself.

    `end`: `close` ends the reply as it should be; `reset` breaks the connection after the last chunk, `stall`
    says nothing more until the client goes away.
    """

    body: bytes | Sequence[bytes] = b""
    status: int = 200
    headers: Mapping[str, str] = {}
    end: Literal["close", "reset", "stall"] = "close"


Handler = Callable[[Received], "Answer | Awaitable[Answer]"]


def sse(*data: Any, ended: bool = True, chunk: int | None = None) -> Answer:
    """A stream of server-sent events: JSON values, or bytes as they are; cut after every `chunk` bytes."""
    told = [item if isinstance(item, bytes) else msgspec.json.encode(item) for item in data]
    if ended:
        told.append(b"[DONE]")
    whole = b"".join(b"data: " + item + b"\n\n" for item in told)
    pieces = [whole] if chunk is None else [whole[at : at + chunk] for at in range(0, len(whole), chunk)]
    return Answer(pieces, headers={"Content-Type": "text/event-stream"})


def as_json(value: Any, status: int = 200, **headers: str) -> Answer:
    told = {name.replace("_", "-"): text for name, text in headers.items()}
    return Answer(msgspec.json.encode(value), status, {"Content-Type": "application/json", **told})


class Loopback:
    """The server: `received` has what came, `connections` how many were made."""

    def __init__(self, handler: Handler) -> None:
        self.handler = handler
        self.received: list[Received] = []
        self.connections = 0
        self.asked = asyncio.Event()
        """Set when a request has come."""
        self.gone = asyncio.Event()
        """Set when a client went away in the middle of a reply."""
        self._tasks: set[asyncio.Task[None]] = set()
        self._writers: set[asyncio.StreamWriter] = set()

    async def __aenter__(self) -> Loopback:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0, limit=2**26)
        self.port: int = self._server.sockets[0].getsockname()[1]
        return self

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.close()
        await self.drop()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=PATIENCE)

    async def drop(self) -> None:
        """End all connections, as a server does that has kept them long enough."""
        for writer in self._writers:
            writer.close()
        await asyncio.gather(*[writer.wait_closed() for writer in self._writers], return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self.connections += 1
        self._writers.add(writer)
        try:
            while await self._one(reader, writer):
                pass
        except (ConnectionError, asyncio.IncompleteReadError):
            self.gone.set()
        finally:
            self._tasks.discard(task)
            self._writers.discard(writer)
            writer.close()

    async def _one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        head = await reader.readuntil(b"\r\n\r\n")
        first, *lines = head.decode("latin-1").rstrip().split("\r\n")
        method, path, _ = first.split(" ")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        body = await reader.readexactly(int(headers.get("content-length", 0)))
        got = Received(method, path, headers, body)
        self.received.append(got)
        self.asked.set()
        answer = self.handler(got)
        if not isinstance(answer, Answer):
            answer = await answer
        whole = isinstance(answer.body, bytes)
        told = {**answer.headers, **({"Content-Length": str(len(answer.body))} if whole else {})}
        if not whole:
            told["Transfer-Encoding"] = "chunked"
        lines = [f"HTTP/1.1 {answer.status} Said", *(f"{name}: {value}" for name, value in told.items())]
        writer.write("\r\n".join([*lines, "", ""]).encode("latin-1"))
        for piece in [answer.body] if isinstance(answer.body, bytes) else answer.body:
            writer.write(piece if whole else b"%x\r\n%s\r\n" % (len(piece), piece))
            await writer.drain()
            await asyncio.sleep(0)
        if answer.end == "stall":
            await reader.read(1)
            self.gone.set()
            return False
        if answer.end == "reset":
            writer.transport.abort()
            return False
        if not whole:
            writer.write(b"0\r\n\r\n")
            await writer.drain()
        return True
