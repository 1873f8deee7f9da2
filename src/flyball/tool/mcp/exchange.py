"""What is known of one exchange beyond the server's answer: what is sent with it, and what became of it."""

from __future__ import annotations

from collections.abc import Mapping
from contextvars import ContextVar


class Exchange:
    """The headers of a call, and what the wire notes about it.

    `status` is the HTTP status of its last answer, `fault` why there was none. `unsent`: the server has
    certainly not seen it.
    """

    __slots__ = ("fault", "headers", "status", "unsent")

    def __init__(self, headers: Mapping[str, str] | None = None) -> None:
        self.headers = headers or {}
        self.status = 0
        self.fault = ""
        self.unsent = False


EXCHANGE: ContextVar[Exchange | None] = ContextVar("flyball_mcp_exchange", default=None)
"""The one that this code is part of; the SDK carries the context of a call to where its request is sent."""
