"""A connection, as uvicorn has it; and what is done about those who do not keep to HTTP, or keep us waiting.

- A head that is too large, or is none, is answered with a problem like any other, and that is the end of it.
- A head that does not come, or the rest of a body whose request was answered, is waited for so long.
- Who goes away is gone for all that was asked for on the connection, not only for what was asked for last.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import msgspec
from httptools import HttpParserError
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle

from flyball.adapters.http.limits import Limits
from flyball.adapters.http.problems import MEDIA_TYPE, HeadTooLarge, Malformed, Refused, problem_of
from flyball.core.ids import new_id

_SILENT = logging.Logger("flyball.http", logging.CRITICAL + 1)
"""What uvicorn has to say is said by the gate's log, or is the doing of whoever is at the other end."""


class PatientProtocol(HttpToolsProtocol):
    """uvicorn's protocol, within limits."""

    def __init__(self, *args: Any, limits: Limits, **more: Any) -> None:
        super().__init__(*args, **more)
        self.logger = _SILENT
        self._limits = limits
        self._late: asyncio.TimerHandle | None = None
        self._size = 0
        self._asked: list[RequestResponseCycle] = []
        """What was asked for here, and is not answered yet."""

    def connection_made(self, transport: Any) -> None:
        """Somebody has come."""
        super().connection_made(transport)
        self._hurry()

    def connection_lost(self, exc: Exception | None) -> None:
        """It has gone. uvicorn tells that only to the request that came last."""
        self._relax()
        for cycle in self._asked:
            if not cycle.response_complete:
                cycle.disconnected = True
                cycle.message_event.set()
        self._asked.clear()
        self.pipeline.clear()
        super().connection_lost(exc)

    def on_message_begin(self) -> None:
        """A request begins."""
        self._size = 0
        self._hurry()
        super().on_message_begin()

    def on_url(self, url: bytes) -> None:
        """Some of its line has come."""
        self._count(url)
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        """A header has come."""
        self._count(name, value)
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """All of its head has come."""
        self._relax()
        super().on_headers_complete()
        self._asked = [cycle for cycle in self._asked if not cycle.response_complete]
        self._asked.append(self.cycle)

    def on_message_complete(self) -> None:
        """All of it has come."""
        self._relax()
        super().on_message_complete()

    def on_response_complete(self) -> None:
        """It was answered; if not all of it has come, the rest has its time."""
        super().on_response_complete()
        if self.cycle.response_complete and self.cycle.more_body:
            self._hurry()

    def send_400_response(self, msg: str) -> None:
        """Say that this is no request, and hang up; without a word where the answer to another is to come."""
        before = [cycle for cycle in self._asked if not cycle.response_complete]
        if before and before[-1] is self.cycle and self.cycle.more_body and not self.cycle.response_started:
            before.pop().disconnected = True  # it is this one, whose body is none
        if before:
            self.transport.close()
            return
        refusal: Refused = Malformed("this is no HTTP request that can be read")
        if self._size > self._limits.head:
            refusal = HeadTooLarge(f"the line and the headers have more than {self._limits.head} bytes")
        number = new_id()
        body = msgspec.json.encode(problem_of(refusal.record(), number))
        head = f"content-type: {MEDIA_TYPE}\r\ncontent-length: {len(body)}\r\nx-request-id: {number}\r\n"
        self.transport.write(
            b"%s%sconnection: close\r\n\r\n%s" % (STATUS_LINE[refusal.status], head.encode(), body)
        )
        self.transport.close()

    def _unsupported_upgrade_warning(self) -> None:
        """Who asks for another protocol is answered in this one."""

    def _count(self, *parts: bytes) -> None:
        self._size += sum([len(part) + 4 for part in parts])
        if self._size > self._limits.head:
            raise HttpParserError("the head is too large")

    def _hurry(self) -> None:
        self._relax()
        self._late = self.loop.call_later(self._limits.head_seconds, self._give_up)

    def _relax(self) -> None:
        if self._late is not None:
            self._late.cancel()
            self._late = None

    def _give_up(self) -> None:
        if not self.transport.is_closing():
            self.transport.abort()
