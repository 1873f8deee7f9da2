"""Asking running tool calls to detach: a word in passing, like that of `stopping`, which may be lost.

That they were asked is recorded, and noted beside the wire: whoever is given a call that another worker had
begun with looks there, for the message may be older than the signal. Whoever sends the signal again has the
word said again.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import msgspec

from flyball.core.detach import Detach
from flyball.runtime.nats.bus import Bus
from flyball.runtime.nats.connection import Connection
from flyball.runtime.nats.naming import token
from flyball.tool.detach import Detaches

if TYPE_CHECKING:
    from nats.aio.msg import Msg

_ALL = "fly.b.*"


async def ask_to_detach(bus: Bus, loop_id: str, calls: Iterable[str]) -> None:
    """Ask calls of a loop to move their work to the background, wherever they run."""
    asked = list(calls)
    for call in asked:
        await bus.note(f"{call}/detached")
    await bus.connection.publish(f"fly.b.{token(loop_id)}", msgspec.json.encode(asked))


async def was_asked(bus: Bus, call: str) -> bool:
    """Whether a call was asked to detach, as far as that is noted."""
    return await bus.is_noted(f"{call}/detached")


class Detaching:
    """The calls of one worker that can be asked. See `DetachSource`."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._detaches = Detaches()  # also those that were asked and are not begun yet

    async def listen(self) -> None:
        """Hear who is asked, until the connection is closed."""
        await self._connection.subscribe(_ALL, self._heard)

    def detach(self, call: str, *, asked: bool = False) -> Detach:
        """See `DetachSource.detach`."""
        return self._detaches.detach(call, asked=asked)

    async def _heard(self, message: Msg) -> None:
        self._detaches.ask(msgspec.json.decode(message.data, type=list[str]))
