"""The client library's client, with three things changed.

They are how headers are read, what ends its reading, and what becomes of a line that was not made whole.

The library looks at every character of every header's name, for every message. Names are few, and are looked
at once here. The result is the same; a test holds both to it.

The library stops reading for good where a pong comes for somebody who waits for it no longer, as its own
flushes do on a busy machine, and tells nobody: the line seems to be up, and is dead. Here such a pong is
nothing to anybody, and a line that is not read any more is made anew.

Where a server takes a line and is too slow to greet, as on a busy machine, the library makes another one, and
leaves the first open. Here it is closed.
"""

# pyright: reportUnknownMemberType=false

from __future__ import annotations

import asyncio
from typing import Any

from nats.aio.client import Client
from nats.errors import UnexpectedEOF

_MOST = 1_000
"""How many names are kept in mind: anybody may send any."""
_names: dict[bytes, str] = {}
"""Header names as text; an empty text for one that counts as none."""


class FastClient(Client):
    """nats-py's client."""

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
