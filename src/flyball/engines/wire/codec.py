"""Codec: a vendor's wire, without the wire."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Protocol

from flyball.engines.wire.transport import Call
from flyball.inference.request import Request, Result
from flyball.inference.stream import StreamEvent


class StreamReader(Protocol):
    """Makes the events of one answer from the data of its server-sent events."""

    @property
    def ended(self) -> bool:
        """Whether the server has said that this was all; one that never says so ends with its stream."""
        ...

    def feed(self, data: bytes) -> Iterable[StreamEvent]:
        """The events of one more piece of data.

        Raises:
            FlyballError: the server says that it failed, or says what cannot be read.
        """
        ...

    def close(self) -> Iterable[StreamEvent]:
        """The events that are left when the stream has ended, the `Finish` last.

        Raises:
            FlyballError: it ended before the answer did.
        """
        ...


class Codec(Protocol):
    """Requests as a vendor takes them and its answers as we do. Pure: the same in gives the same out."""

    def call(self, request: Request, *, stream: bool) -> Call:
        """The HTTP call that asks for an answer. Its headers have no key yet.

        Raises:
            FlyballError: the request cannot be put to this vendor.
        """
        ...

    def result(self, request: Request, body: bytes, headers: Mapping[str, str]) -> Result:
        """The answer to a request that the body of a whole reply is.

        Raises:
            UnexpectedModelBehavior: it is none; `body` has its beginning.
        """
        ...

    def reader(self, request: Request, headers: Mapping[str, str]) -> StreamReader:
        """A reader for the stream that answers a request and begins with these headers."""
        ...
