"""The client library's client, with four things changed.

They are how headers are read, what ends its reading, what becomes of a line that was not made whole, and of a
request that the server refuses.

The library looks at every character of every header's name, for every message. Names are few, and are looked
at once here. The result is the same; a test holds both to it.

The library stops reading for good where a pong comes for somebody who waits for it no longer, as its own
flushes do on a busy machine, and tells nobody: the line seems to be up, and is dead. Here such a pong is
nothing to anybody, and a line that is not read any more is made anew.

Where a server takes a line and is too slow to greet, as on a busy machine, the library makes another one, and
leaves the first open. Here it is closed.

A request on a subject that the user may not use waits for its time to run out there. Here it fails at once.
"""

# pyright: reportUnknownMemberType=false

from __future__ import annotations

import asyncio
from typing import Any

from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.errors import UnexpectedEOF

from flyball.core.errors import PermissionDenied

_MOST = 1_000
"""How many names are kept in mind: anybody may send any."""
_names: dict[bytes, str] = {}
"""Header names as text; an empty text for one that counts as none."""


class FastClient(Client):
    """nats-py's client."""

    def __init__(self) -> None:
        super().__init__()
        self._requests: dict[asyncio.Task[Msg], str] = {}
        self._refused: dict[asyncio.Task[Msg], PermissionDenied] = {}

    async def request(
        self,
        subject: str,
        payload: bytes = b"",
        timeout: float = 0.5,  # noqa: ASYNC109 - the library's
        old_style: bool = False,
        headers: dict[str, Any] | None = None,
    ) -> Msg:
        """See the library.

        Raises:
            PermissionDenied: the user may not ask on this subject.
        """
        task = asyncio.ensure_future(super().request(subject, payload, timeout, old_style, headers))
        self._requests[task] = subject
        try:
            return await task
        except asyncio.CancelledError:
            if (error := self._refused.pop(task, None)) is not None:
                raise PermissionDenied(error.message, **error.details) from None
            raise
        finally:
            del self._requests[task]

    def denied(self, subject: str, error: PermissionDenied) -> bool:
        """End the requests on a subject that the server has refused; whether there are any."""
        open_ = [task for task, asked in self._requests.items() if asked.lower() == subject]
        for task in open_:
            self._refused[task] = error
            task.cancel()
        return bool(open_)

    async def _process_pong(self) -> None:
        if self._pongs and self._pongs[0].done():
            self._pongs[0] = asyncio.get_running_loop().create_future()
        await super()._process_pong()

    async def _read_loop(self) -> None:
        await super()._read_loop()
        if self.is_connected and asyncio.current_task() is self._reading_task:
            await self._process_op_err(UnexpectedEOF())

    async def _connect_to_server(self, s: Any) -> None:
        if self._transport is not None:
            tasks: list[asyncio.Task[Any] | None] = [
                self._reading_task,
                self._ping_interval_task,
                self._flusher_task,
            ]
            for task in tasks:
                if task is not None:
                    task.cancel()
            self._transport.close()
        await super()._connect_to_server(s)

    @staticmethod
    def _parse_header_lines(raw: bytes) -> dict[str, str]:
        headers: dict[str, str] = {}
        for line in raw.split(b"\r\n"):
            name, mark, value = line.partition(b":")
            if not mark:
                continue
            key = _names.get(name)
            if key is None:
                key = _read_name(name)
            if key:
                headers[key] = value.strip().decode("utf-8", "replace")
        return headers


def _read_name(name: bytes) -> str:
    """A header's name as text; nothing of one that is not ASCII, or has a blank inside."""
    try:
        key = name.strip().decode("ascii")
    except UnicodeDecodeError:
        key = ""
    if any(letter.isspace() for letter in key):
        key = ""
    if len(_names) < _MOST:
        _names[name] = key
    return key
