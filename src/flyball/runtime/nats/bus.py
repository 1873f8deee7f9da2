"""The wire between workers: the stream AGENT, its subjects, and what was put aside.

Everything here can be worked out again from the journals: a command that was lost is published again by
whoever looks at its loop. What is published has the effect's id, by which the server knows a double.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import partial
from math import ceil
from typing import Any

import msgspec
from msgspec import Struct

from flyball.core.errors import FlyballError, JournalFailure
from flyball.core.events import TimePassed
from flyball.core.ids import new_id
from flyball.orchestrate.commands import Report
from flyball.runtime.nats.connection import Connection
from flyball.runtime.nats.deliveries import Delivery
from flyball.runtime.nats.fetching import after, header, sequence
from flyball.runtime.nats.layout import make
from flyball.runtime.nats.naming import token
from flyball.runtime.nats.stored import WRONG_LAST, Stored

AGENT, DEAD, CLAIMS = "AGENT", "AGENT_DEAD", "CLAIMS"
_KEPT = 3 * 24 * 3600.0
"""Seconds that the wire is kept: nothing rests on it once a loop is over."""
_WHY = "Flyball-Dead"
_LONGEST_REASON = 2_000
_SUBJECTS = ("agent.>", "tool.>", "user.>")

TASKS, REPORTS = ("agent.task.>",), ("agent.response.>", "tool.result.>")
SIGNALS, REQUESTS = ("agent.signal.>", "agent.timer.>"), ("agent.request.>",)


def task_subject(loop_id: str) -> str:
    """Where a loop is asked for."""
    return f"agent.task.{token(loop_id)}"


def request_subject(loop_id: str) -> str:
    """Where a model call of a loop is asked for."""
    return f"agent.request.{token(loop_id)}"


def response_subject(effect: str) -> str:
    """Where a model call is answered."""
    return f"agent.response.{token(effect)}"


def execute_subject(tool: str) -> str:
    """Where calls of a tool are asked for."""
    return f"tool.execute.{token(tool)}"


def result_subject(effect: str) -> str:
    """Where a tool call is answered."""
    return f"tool.result.{token(effect)}"


def signal_subject(loop_id: str) -> str:
    """Where something is said to a loop."""
    return f"agent.signal.{token(loop_id)}"


def deltas_subject(loop_id: str) -> str:
    """Where the pieces of a loop's answers pass by: nothing is kept there."""
    return f"fly.d.{token(loop_id)}"


class Dead(Struct, frozen=True):
    """A message that was put aside, and why."""

    subject: str
    headers: dict[str, str]
    code: str
    reason: str
    at: float
    times: int
    data: bytes = b""


class Bus:
    """The wire, on one connection."""

    def __init__(self, connection: Connection, replicas: int) -> None:
        self.connection = connection
        self._replicas = replicas
        self._claims: Any = None

    async def set_up(self) -> None:
        """Make what is missing.

        Raises:
            UserError: the server does not make it; the message says why.
        """
        from nats.js.api import KeyValueConfig, StorageType, StreamConfig

        shared: dict[str, Any] = {"storage": StorageType.FILE, "num_replicas": self._replicas}
        for config in (
            StreamConfig(
                AGENT,
                subjects=list(_SUBJECTS),
                max_age=_KEPT,
                duplicate_window=120,
                allow_direct=True,
                allow_msg_schedules=True,
                **shared,
            ),
            StreamConfig(DEAD, subjects=["fly.dead.>"], allow_direct=True, **shared),
        ):
            await make(self.connection, config.name or "", partial(self.connection.js.add_stream, config))
        claims = KeyValueConfig(CLAIMS, ttl=_KEPT, storage=StorageType.FILE, replicas=self._replicas)
        await make(self.connection, CLAIMS, partial(self.connection.js.create_key_value, claims))
        self._claims = await self.connection.patiently(lambda: self.connection.js.key_value(CLAIMS))

    async def publish(
        self,
        subject: str,
        data: bytes,
        name: str,
        *,
        first: bool = False,
        more: Mapping[str, str] | None = None,
    ) -> bool:
        """Put a message on the wire, durably; `name` is its id. With `first`, only if its subject has none.

        Returns whether it is there: False only where somebody else's was first.

        Raises:
            JournalUnreachable: the server does not answer.
            JournalFailure: it does not take it.
        """
        headers = {"Nats-Msg-Id": name, **(more or {})}
        if first:
            headers["Nats-Expected-Last-Subject-Sequence"] = "0"
        answer = await self.connection.request(subject, data, headers)
        refusal = msgspec.json.decode(answer.data, type=Stored).error
        if refusal is None:
            return True
        if first and refusal.err_code == WRONG_LAST:
            return False
        raise JournalFailure(f"NATS does not take a message for {subject}: {refusal.description}")

    async def remind(self, loop_id: str, effect: str, at: float) -> None:
        """Have a loop told when a time has come, by the server: whoever is there then."""
        where = token(loop_id)
        when = datetime.fromtimestamp(ceil(at * 1000) / 1000, UTC).isoformat(timespec="milliseconds")
        schedule = {
            "Nats-Schedule": f"@at {when.replace('+00:00', 'Z')}",
            "Nats-Schedule-Target": f"agent.timer.{where}",
        }
        told = Report(loop_id, TimePassed(at))
        await self.publish(
            f"agent.schedule.{where}", msgspec.json.encode(told), f"{effect}/timer", more=schedule
        )

    async def claim(self, name: str) -> bool:
        """Take something that only one may have; whether this is the first who asks."""
        from nats.js.errors import KeyWrongLastSequenceError

        key, mine = token(name), new_id().encode()
        try:
            await self.connection.patiently(lambda: self._claims.create(key, mine))
        except KeyWrongLastSequenceError:
            # Our own, perhaps, whose answer was lost.
            there = await self.connection.patiently(lambda: self._claims.get(key))
            return there.value == mine
        return True

    async def dead(self) -> list[tuple[int, Dead]]:
        """What was put aside, each with its number; the oldest first.

        Raises:
            JournalUnreachable: the server does not answer.
        """
        found = await after(self.connection, DEAD, "fly.dead.>")
        told = [(sequence(one), msgspec.json.decode(header(one, _WHY), type=Dead), one.data) for one in found]
        return [(number, msgspec.structs.replace(dead, data=data)) for number, dead, data in told]

    async def requeue(self, number: int, dead: Dead) -> None:
        """Give a message that was put aside to the workers again; then it is put aside no more."""
        headers = {name: value for name, value in dead.headers.items() if not name.startswith("Nats-")}
        await self.publish(dead.subject, dead.data, f"requeued/{number}", more=headers)
        await self.connection.patiently(lambda: self.connection.js.delete_msg(DEAD, number))

    async def put_aside(self, delivery: Delivery, why: Exception) -> None:
        """Keep a message that cannot be worked on, with the reason."""
        code = why.code if isinstance(why, FlyballError) else type(why).__name__
        dead = Dead(
            delivery.subject, delivery.headers, code, str(why)[:_LONGEST_REASON], time.time(), delivery.times
        )
        # The reason goes beside the message, which may be as large as a message can be. A header is ASCII.
        reason = json.dumps(msgspec.to_builtins(dead))
        where = f"fly.dead.{delivery.subject}"
        await self.publish(where, delivery.data, f"dead/{delivery.reply}", more={_WHY: reason})
