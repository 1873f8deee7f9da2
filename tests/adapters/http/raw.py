"""A client that says what it likes: bytes on a socket, and what came back for them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

from httpx import AsyncClient
from msgspec import Struct

from tests.patience import PATIENCE


class Reply(Struct, frozen=True):
    """An answer. `raw` is its head as it came."""

    status: int
    headers: dict[str, str]
    body: bytes
    raw: bytes

    @property
    def code(self) -> str:
        """The code of a problem, whose form is checked; where OpenAI's clients are told, or its type."""
        if self.headers["content-type"] == "application/json":
            fault = json.loads(self.body)["error"]
            assert fault["message"]
            return fault["code"] or fault["type"]
        assert self.headers["content-type"] == "application/problem+json", self
        document = json.loads(self.body)
        assert document["status"] == self.status
        assert document["type"] == f"urn:flyball:error:{document['code']}"
        assert document["title"]
        assert document["detail"]
        return document["code"]


class Wire:
    """A connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    async def send(self, data: bytes) -> None:
        """Say something."""
        self.writer.write(data)
        await self.writer.drain()

    async def reply(self) -> Reply:
        """The next answer, to its end."""
        async with asyncio.timeout(PATIENCE):
            raw = await self.reader.readuntil(b"\r\n\r\n")
            if raw.startswith(b"HTTP/1.1 100"):
                raw = await self.reader.readuntil(b"\r\n\r\n")
            line, *lines = raw.decode("latin-1").split("\r\n")[:-2]
            headers = dict([one.split(": ", 1) for one in lines])
            body = b""
            if headers.get("transfer-encoding") == "chunked":
                while size := int(await self.reader.readuntil(b"\r\n"), 16):
                    body += (await self.reader.readexactly(size + 2))[:-2]
                await self.reader.readexactly(2)
            elif "content-length" in headers:
                body = await self.reader.readexactly(int(headers["content-length"]))
            return Reply(int(line.split(" ")[1]), headers, body, raw)

    async def closed(self) -> bytes:
        """Wait until the server has hung up; what it said before."""
        async with asyncio.timeout(PATIENCE):
            try:
                return await self.reader.read()
            except ConnectionError:
                return b""

    def vanish(self) -> None:
        """Be gone, without a word."""
        self.writer.transport.abort()


def port_of(client: AsyncClient) -> int:
    """The port of the server that a client is for."""
    port = client.base_url.port
    assert port is not None
    return port


@asynccontextmanager
async def wire(client: AsyncClient, limit: int = 2**24) -> AsyncGenerator[Wire]:
    """A connection to the server that a client is for; more than `limit` is not taken before it is read."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port_of(client), limit=limit)
    try:
        yield Wire(reader, writer)
    finally:
        writer.transport.abort()
        try:
            await writer.wait_closed()
        except OSError:
            pass  # it was reset


def head(line: str, *headers: str) -> bytes:
    """A request's line and headers."""
    return "\r\n".join([f"{line} HTTP/1.1", "Host: localhost", *headers, "", ""]).encode("latin-1")


def post(path: str, body: bytes, *headers: str) -> bytes:
    """A request with a body of JSON, or of what is said to be."""
    return (
        head(f"POST {path}", "Content-Type: application/json", f"Content-Length: {len(body)}", *headers)
        + body
    )


async def asked(client: AsyncClient, data: bytes) -> Reply:
    """What a server answers to some bytes, on a connection of their own."""
    async with wire(client) as connection:
        await connection.send(data)
        return await connection.reply()


def prompt(text: Any) -> bytes:
    """A request to an agent, as JSON."""
    return json.dumps({"messages": [{"role": "user", "content": text}]}).encode()
