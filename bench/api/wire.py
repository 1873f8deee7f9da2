"""HTTP on bare sockets: no more than it takes to load a server, and to time what it sends."""

from __future__ import annotations

import json
import selectors
import socket
from collections.abc import Iterator
from typing import Any


def request(method: str, path: str, body: Any = None, token: str = "") -> bytes:
    """A request as it goes over the wire."""
    data = b"" if body is None else json.dumps(body).encode()
    lines = [f"{method} {path} HTTP/1.1", "Host: localhost"]
    lines += [f"Authorization: Bearer {token}"] if token else []
    lines += ["Content-Type: application/json", f"Content-Length: {len(data)}"] if data else []
    return "\r\n".join([*lines, "", ""]).encode() + data


def asked(prompt: str) -> dict[str, Any]:
    """A request to an agent."""
    return {"messages": [{"role": "user", "content": prompt}]}


class Reply:
    """What comes back on a connection: fed as it comes, and `done` when it is whole."""

    def __init__(self) -> None:
        self.status = 0
        self.body = bytearray()
        self.done = False
        self._raw = b""
        self._left = 0
        self._chunked = False

    def feed(self, data: bytes) -> None:
        """Some bytes more."""
        self._raw += data
        if not self.status and not self._head():
            return
        if self._chunked:
            self._chunks()
        else:
            self.body += self._raw
            self._raw = b""
            self.done = len(self.body) >= self._left

    def _head(self) -> bool:
        head, found, rest = self._raw.partition(b"\r\n\r\n")
        if not found:
            return False
        lower = head.lower()
        self.status = int(head[9:12])
        self._chunked = b"transfer-encoding: chunked" in lower
        at = lower.find(b"content-length:")
        self._left = int(lower[at + 15 :].split(b"\r\n", 1)[0]) if at >= 0 else 0
        self._raw = rest
        return True

    def _chunks(self) -> None:
        at = 0
        while (end := self._raw.find(b"\r\n", at)) >= 0:
            size = int(self._raw[at:end], 16)
            if len(self._raw) < end + 2 + size + 2:
                break
            self.body += self._raw[end + 2 : end + 2 + size]
            at = end + 2 + size + 2
            if not size:
                self.done = True
                break
        self._raw = self._raw[at:]

    def json(self) -> Any:
        """The body, read."""
        return json.loads(self.body)


def connect(port: int) -> socket.socket:
    """A connection."""
    connection = socket.create_connection(("127.0.0.1", port))
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection


def once(port: int, message: bytes) -> Reply:
    """One request on a connection of its own, and its answer."""
    with connect(port) as connection:
        connection.sendall(message)
        reply = Reply()
        while not reply.done:
            data = connection.recv(65536)
            if not data:
                raise SystemExit(f"the server hung up: {reply.status} {bytes(reply.body[:500])!r}")
            reply.feed(data)
        return reply


class Crowd:
    """Many connections, each with one reply under way."""

    def __init__(self) -> None:
        self._selector = selectors.DefaultSelector()
        self.replies: dict[socket.socket, Reply] = {}

    def send(self, connection: socket.socket, message: bytes) -> Reply:
        """Ask for something on a connection that has nothing under way."""
        if connection not in self.replies:
            self._selector.register(connection, selectors.EVENT_READ)
        reply = self.replies[connection] = Reply()
        connection.sendall(message)
        return reply

    def heard(self, timeout: float | None = None) -> Iterator[tuple[socket.socket, Reply]]:
        """Those to whom something came."""
        for key, _ in self._selector.select(timeout):
            connection: Any = key.fileobj
            data = connection.recv(262144)
            reply = self.replies[connection]
            if not data:
                raise SystemExit(f"the server hung up: {reply.status} {bytes(reply.body[-500:])!r}")
            reply.feed(data)
            yield connection, reply

    def leave(self) -> None:
        """Close all connections."""
        for connection in self.replies:
            connection.close()
        self.replies.clear()
        self._selector.close()
        self._selector = selectors.DefaultSelector()
