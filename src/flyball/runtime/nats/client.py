"""The client library's client, with two things changed: how headers are read, and what ends its reading.

The library looks at every character of every header's name, for every message. Names are few, and are looked
at once here. The result is the same; a test holds both to it.

The library stops reading for good where a pong comes for somebody who waits for it no longer, as its own
flushes do on a busy machine, and tells nobody: the line seems to be up, and is dead. Here such a pong is
nothing to anybody, and a line that is not read any more is made anew.
"""

# pyright: reportUnknownMemberType=false

from __future__ import annotations

import asyncio

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
