"""The projector: keeps what others look at in step with the journals, off the loops' own way.

    AGENT_LOOPS          <loop>            the loop, as a LoopEntity
                         COMPLETE_<loop>   how it ended
    AGENT_TRAJECTORIES   <loop>            its steps; too many of them are kept in AGENT_TRAJECTORIES_LARGE
    agent.created|complete|failed|cancelled.<loop>  is published when it happens

It reads the journals' own streams, as one more consumer: where loops begin and end, and what was said to
them. It acknowledges what it has written down; so nothing of that is left out, whatever dies. How far a loop
has come between is written now and then, by whoever carries it on. Changes that come close together are
written once. All of it can be made again from the journals, and nothing rests on it.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from contextlib import suppress
from typing import Any, TypeVar

import msgspec

from flyball.core.errors import FlyballError, JournalFailure, JournalUnreachable
from flyball.core.events import Event
from flyball.core.forms.semstreams import AnyPayload, LoopEntity
from flyball.orchestrate.ledger import Ledger
from flyball.orchestrate.machine import fold
from flyball.orchestrate.projections import (
    Detail,
    LoopEnded,
    entity_of,
    loop_created,
    loop_ended,
    loop_entity,
    trajectory,
)
from flyball.runtime.nats.blobs import Blobs
from flyball.runtime.nats.bus import Bus
from flyball.runtime.nats.deliveries import Delivery, Post
from flyball.runtime.nats.entry import BLOB, LENGTH, decode_entry
from flyball.runtime.nats.fetching import Tail, tail
from flyball.runtime.nats.journal import NatsJournal
from flyball.runtime.nats.layout import make_bucket
from flyball.runtime.nats.messages.frame import write
from flyball.runtime.nats.naming import BEGIN, bucket_key, entries, journal_stream
from flyball.runtime.nats.stored import WRONG_LAST, Stored
from flyball.runtime.nats.subjects import event_subject

PayloadT = TypeVar("PayloadT", bound=LoopEntity | LoopEnded)
LOOPS, TRAJECTORIES = "AGENT_LOOPS", "AGENT_TRAJECTORIES"
LARGE = "AGENT_TRAJECTORIES_LARGE"
"""The object store for trajectories that are too large for a message."""
_ROOM = 16_384
"""Bytes of a message that are left to its envelope, its headers and its subject."""
_LONGEST_RESULT = 65_536
_KNOWN = 10_000
_ENDED = "ended"
_TOLD_BY = (BEGIN, _ENDED, "signalreceived", "reopened")
"""The kinds of entries that are waited for: an entry is of the kind of its last event."""


class Projector:
    """Writes down what the journals tell. Any number of them may: none undoes what a later one wrote."""

    kind = "projector"

    def __init__(
        self,
        bus: Bus,
        journal: NatsJournal,
        *,
        hold: float = 30.0,
        interval: float = 0.25,
        passing: float = 1.0,
        detail: Detail = "summary",
    ) -> None:
        """`interval`: seconds within which a loop's changes are written once; `passing`: those of one that is
        on its way, and not said to have begun, ended or been signalled. `detail`: of trajectories; in full
        they have each request's messages, so that they grow with the square of a loop's turns.
        """
        self._detail: Detail = detail
        self._bus = bus
        self._journal = journal
        self._interval = interval
        self._large = Blobs(bus.connection, journal.layout.replicas, LARGE)
        self._passing = passing
        self._writing: dict[str, _Writing] = {}
        self._moved: dict[str, Ledger] = {}
        self._sweeping: asyncio.Task[None] | None = None
        self._written: OrderedDict[str, Tail] = OrderedDict()
        """Where what was last written stands, so that it need not be asked for."""
        self.posts = [
            Post(
                journal_stream(number),
                "projector",
                tuple([entries(number, kind) for kind in _TOLD_BY]),
                room=512,
                hold=hold,
            )
            for number in range(journal.partitions)
        ]

    async def set_up(self) -> None:
        """Make the buckets, where they are missing.

        Raises:
            UserError: the server does not make one.
        """
        for name in (LOOPS, TRAJECTORIES):
            await make_bucket(self._bus.connection, name, self._journal.layout.replicas)

    async def work(self, delivery: Delivery) -> None:
        """Take notice of an entry; returns when what it leads to is written."""
        blob = delivery.headers.get(BLOB)
        data = await self._journal.blob(blob, delivery.subject) if blob else delivery.data
        loop_id = decode_entry(data, delivery.subject).loop_id
        kind = delivery.subject.rpartition(".")[2]
        writing = self._writing.get(loop_id)
        if writing is not None:
            writing.notice(kind)
            await asyncio.shield(writing.done)
            return
        writing = self._writing[loop_id] = _Writing()
        writing.notice(kind)
        try:
            await writing.soon(self._interval)
            del self._writing[loop_id]  # what comes from here on is written the next time
            await self._write(loop_id, begins=writing.begins)
        except BaseException as error:
            self._writing.pop(loop_id, None)
            writing.failed(error)
            raise
        writing.done.set_result(None)

    def moved(self, loop: Ledger) -> None:
        """A loop has come further. It is written some time from now, if it is still on its way then."""
        self._moved[loop.loop_id] = loop
        if self._sweeping is None:
            self._sweeping = asyncio.ensure_future(self._sweep())

    def ended(self, loop: Ledger) -> None:
        """A loop is over: what was going to be written of its way need not be."""
        self._moved.pop(loop.loop_id, None)

    async def _sweep(self) -> None:
        """Write those that are on their way, one after the other, in a tenth of the time at most."""
        pause = self._passing
        while True:
            await asyncio.sleep(pause)
            began = time.monotonic()
            for loop_id in tuple(self._moved):
                loop = self._moved.pop(loop_id, None)
                # Of one that is paused, or has just been told something, more is known from its journal.
                if loop is None or loop.pending or loop.state.paused or loop.state.pausing:
                    continue
                data = _told(entity_of(loop.state), self._limit)[1]
                with suppress(FlyballError):  # the next change tells it, or the end
                    await self._put(f"$KV.{LOOPS}.{bucket_key(loop_id)}", data, loop.length)
            pause = max(self._passing, 9 * (time.monotonic() - began))

    async def aclose(self) -> None:
        """Let go of what was going to be written."""
        if self._sweeping is not None:
            self._sweeping.cancel()
            await asyncio.wait([self._sweeping])

    async def _write(self, loop_id: str, *, begins: bool) -> None:
        events = await self._journal.read(loop_id)
        state, entity, length = fold(events, f"loop {loop_id}"), loop_entity(events), len(events)
        key, limit = bucket_key(loop_id), self._limit
        writes = [self._put(f"$KV.{LOOPS}.{key}", _told(entity, limit)[1], length)]
        ended = loop_ended(state, entity.completed_at or state.started_at) if state.at == "done" else None
        if ended is not None:
            ended, data = _told(ended, limit)
            writes.append(self._put(f"$KV.{LOOPS}.COMPLETE_{key}", data, length))
            writes.append(self._keep_trajectory(key, events))
        await asyncio.gather(*writes)
        # Told when it is written: who hears of it finds it there.
        if begins:
            await self._tell("created", loop_id, loop_created(state), f"{loop_id}/created")
        if ended is not None:
            await self._tell(entity.state, loop_id, ended, f"{loop_id}/{state.attempt}/ended")

    @property
    def _limit(self) -> int:
        return self._bus.connection.max_payload - _ROOM

    async def _tell(self, what: str, loop_id: str, payload: AnyPayload, name: str) -> None:
        await self._bus.publish(event_subject(what, loop_id), write(payload, name), name, loop_id=loop_id)

    async def _keep_trajectory(self, key: str, events: list[Event]) -> None:
        """Write a loop's way; where it is too large for a message, without its steps, which are elsewhere."""
        whole = trajectory(events, self._detail)
        data = whole.marshal_json()
        if len(data) > self._limit:
            where = {"bucket": LARGE, "name": await self._large.put(data)}
            data = msgspec.structs.replace(
                whole, steps=(), extra={"flyball": {"object": where}}
            ).marshal_json()
        await self._put(f"$KV.{TRAJECTORIES}.{key}", data, len(events))

    async def _put(self, subject: str, data: bytes, length: int) -> None:
        """Write what a journal of this length tells, unless what is there tells more."""
        connection, stream = self._bus.connection, f"KV_{subject.split('.', 2)[1]}"
        known = self._written.get(subject)
        while True:
            if known is None:
                known = await tail(connection, stream, subject)
            if known.length >= length:
                return
            headers = {"Nats-Expected-Last-Subject-Sequence": str(known.sequence), LENGTH: str(length)}
            answer = msgspec.json.decode((await connection.request(subject, data, headers)).data, type=Stored)
            if answer.error is None:
                self._written[subject] = Tail(answer.seq, length)
                if len(self._written) > _KNOWN:
                    self._written.popitem(last=False)
                return
            if answer.error.err_code != WRONG_LAST:
                raise JournalFailure(f"NATS does not take {subject}: {answer.error.description}")
            known = None


class _Writing:
    """A loop that is about to be written down, by the first who heard of it; others wait for that."""

    def __init__(self) -> None:
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.begins = False
        self._urgent = asyncio.Event()

    def notice(self, kind: str) -> None:
        """An entry of this kind has come. The end of a loop is not waited with."""
        self.begins = self.begins or kind == BEGIN
        if kind == _ENDED:
            self._urgent.set()

    async def soon(self, seconds: float) -> None:
        """Wait for what else comes."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._urgent.wait()

    def failed(self, error: BaseException) -> None:
        """It was not written: those who wait are given it again."""
        stopped = JournalUnreachable("the projector was stopped")
        self.done.set_exception(error if isinstance(error, Exception) else stopped)
        self.done.exception()  # there may be nobody who waits


def _told(payload: PayloadT, limit: int) -> tuple[PayloadT, bytes]:
    """A payload with its bytes; a result that is too large for a message is cut, and said to be."""
    data = payload.marshal_json()
    if len(data) <= limit:
        return payload, data
    result = getattr(payload, "result", "")[:_LONGEST_RESULT]
    changed: dict[str, Any] = {"extra": {"flyball": {"truncated": True}}}
    if isinstance(payload, LoopEntity):
        changed["pending_tool_results"] = None
    if result:
        changed["result"] = result
    cut = msgspec.structs.replace(payload, **changed)
    return cut, cut.marshal_json()
