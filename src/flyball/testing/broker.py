"""What stands between the parts of a split world: a queue, claims, and a channel for deltas.

Commands and reports are encoded and delivered at least once, doubled and out of order: one stays in the
queue until it was acknowledged. Deltas are encoded too, and nobody acknowledges them: they may also be
lost, and come late. A seed decides it all.
"""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from contextlib import contextmanager
from random import Random

import msgspec
from msgspec import Struct

from flyball.core.errors import OrchestrationFailure
from flyball.orchestrate.commands import ExecuteCommand, InferCommand, Report
from flyball.orchestrate.elsewhere import Delta


class Chaos(Struct, frozen=True):
    """How bad the world is: the chance of each mishap, at every point where it can happen."""

    double: float = 0.0
    reorder: float = 0.0
    crash: float = 0.0
    lose: float = 0.0
    """Only what nothing rests on can be lost: the deltas of a stream."""


CALM = Chaos()
ROUGH = Chaos(double=0.2, reorder=0.5, crash=0.2, lose=0.2)


class Crash(Exception):  # noqa: N818 - it is a mishap of the simulation, not an error
    """A performer died at this point."""


class Message:
    """A message in the queue. `busy` while somebody works on it."""

    __slots__ = ("busy", "data", "kind", "loop_id")

    def __init__(self, kind: str, loop_id: str, data: bytes) -> None:
        self.kind = kind
        self.loop_id = loop_id
        self.data = data
        self.busy = False


class Inbox:
    """Where one follower's deltas arrive."""

    def __init__(self) -> None:
        self._data: list[bytes] = []
        self.filled = asyncio.Event()

    def put(self, data: list[bytes]) -> None:
        """Let deltas arrive."""
        self._data += data
        self.filled.set()

    def take(self) -> list[Delta]:
        """What has arrived, and was not taken yet."""
        data, self._data = self._data, []
        self.filled.clear()
        return [msgspec.json.decode(one, type=Delta) for one in data]


class Broker:
    """One world's messages, claims and mishaps."""

    def __init__(self, seed: int, chaos: Chaos) -> None:
        self.crashes = 0
        self._random = Random(seed)
        self._chaos = chaos
        self._queue: list[Message] = []
        self._published: set[str] = set()
        self._claims: set[str] = set()
        self._budget = 10_000
        self._inboxes: dict[str, list[Inbox]] = {}
        self._air: dict[str, list[bytes]] = {}

    def chance(self, probability: float) -> bool:
        """Whether a mishap happens now."""
        return bool(probability) and self._random.random() < probability

    def maybe_crash(self) -> None:
        """Perhaps die here."""
        if self.doomed():
            self.crash()

    def doomed(self) -> bool:
        """Whether somebody is going to die."""
        return self.chance(self._chaos.crash)

    def crash(self) -> None:
        """Die here."""
        self.crashes += 1
        raise Crash

    # Commands and reports

    def is_quiet(self, loop_id: str) -> bool:
        """Whether no message of a loop is on its way."""
        return not any(message.loop_id == loop_id for message in self._queue)

    def command(self, kind: str, body: InferCommand | ExecuteCommand) -> None:
        """Put a command on its way, unless it was: a broker knows one that it had by its id.

        Brokers forget: then it goes out again, although it was or is being carried out.
        """
        if body.id not in self._published or self.chance(self._chaos.double):
            self._published.add(body.id)
            self.publish(kind, body)

    def publish(self, kind: str, body: InferCommand | ExecuteCommand | Report) -> None:
        """Put a message on its way, perhaps twice."""
        data = msgspec.json.encode(body)
        self._queue.append(Message(kind, body.loop_id, data))
        if self.chance(self._chaos.double):
            self._queue.append(Message(kind, body.loop_id, data))

    def next_message(self, loop_id: str) -> Message | None:
        """The message of a loop that is delivered next; it stays in the queue until it is acknowledged."""
        waiting = [message for message in self._queue if message.loop_id == loop_id and not message.busy]
        if not waiting:
            return None
        self._budget -= 1
        if self._budget < 0:
            raise OrchestrationFailure("the loop does not come to an end: 10,000 messages were delivered")
        last = len(waiting) - 1
        return waiting[self._random.randint(0, last) if self.chance(self._chaos.reorder) else 0]

    def acknowledge(self, message: Message) -> None:
        """The message was handled; where two drive one loop, perhaps by both."""
        if message in self._queue:
            self._queue.remove(message)

    def claim(self, name: str) -> bool:
        """Create-only: whether this is the first to ask."""
        if name in self._claims:
            return False
        self._claims.add(name)
        return True

    # Deltas

    @contextmanager
    def listening(self, loop_id: str) -> Generator[Inbox]:
        """Let the deltas of a loop arrive here."""
        inbox = Inbox()
        self._inboxes.setdefault(loop_id, []).append(inbox)
        try:
            yield inbox
        finally:
            self._inboxes[loop_id].remove(inbox)

    def is_heard(self, loop_id: str) -> bool:
        """Whether somebody listens."""
        return bool(self._inboxes.get(loop_id))

    def hand_on(self, loop_id: str, delta: Delta) -> None:
        """Put a delta on its way: it may be lost, come twice, out of order, or later."""
        if self.chance(self._chaos.lose):
            return
        try:
            data = msgspec.json.encode(delta)
        except (TypeError, ValueError):
            # It holds what cannot be written (half a character). The recorded answer, made sound, makes up
            # for it.
            return
        air = self._air.setdefault(loop_id, [])
        for _ in range(2 if self.chance(self._chaos.double) else 1):
            air.insert(
                self._random.randint(0, len(air)) if self.chance(self._chaos.reorder) else len(air), data
            )
        if not self.chance(self._chaos.reorder):
            self.land(loop_id)

    def land(self, loop_id: str) -> None:
        """Let the deltas arrive that are still on their way."""
        data = self._air.pop(loop_id, None)
        for inbox in self._inboxes.get(loop_id, ()):
            if data:
                inbox.put(data)
