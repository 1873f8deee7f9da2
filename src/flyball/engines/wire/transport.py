"""The seam to the network: one HTTP call, and its reply as it comes."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from types import TracebackType
from typing import Any, Protocol

from msgspec import Struct


class Call(Struct, frozen=True):
    """An HTTP request, complete. What stands in its headers may be a key, and is not shown."""

    url: str
    headers: Mapping[str, str]
    body: bytes | None = None
    method: str = "POST"

    def __repr__(self) -> str:
        return f"Call({self.method} {self.url}, headers: {', '.join(self.headers)})"

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        return [("method", self.method), ("url", self.url), ("headers", list(self.headers))]


class Reply(Protocol):
    """An HTTP response whose head has come. Header names are looked up in any case."""

    @property
    def status(self) -> int:
        """The status."""
        ...

    @property
    def headers(self) -> Mapping[str, str]:
        """The headers."""
        ...

    async def read(self) -> bytes:
        """The whole body."""
        ...

    def pieces(self) -> AsyncIterator[bytes]:
        """The body as it comes."""
        ...


class Exchange(Protocol):
    """`async with transport.open(call) as reply:` a call, from its beginning to the end of its reply.

    Leaving the block before the body was read to its end closes the connection: the server notices.
    """

    async def __aenter__(self) -> Reply: ...

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


class Transport(Protocol):
    """Moves bytes to a server and back.

    Guarantees: a failure on the way is an `EngineError`, of opening as of reading; cancelling closes the
    connection; calls may overlap; it may be used from one event loop after another.
    """

    def open(self, call: Call) -> Exchange:
        """Make a call."""
        ...

    async def aclose(self) -> None:
        """Let go of all connections of this event loop; a later call makes new ones."""
        ...
