"""The projector: keeps what others look at in step with the journals, off the loops' own way.

    AGENT_LOOPS          <loop>            the loop, as a LoopEntity
                         COMPLETE_<loop>   how it ended
    AGENT_TRAJECTORIES   <loop>            its steps; too many of them are kept in AGENT_TRAJECTORIES_LARGE
    agent.created|complete|failed|cancelled.<loop>  is published when it happens
    agent.context.<loop>  is published a moment after something was left out of its context, or summed up
    governance.violation.<severity>  is published a moment after filters found something

Whoever carries a loop on has it written down when it begins, is signalled and ends, and now and then between.
That may be lost with its process: so the projector is also a consumer of the journals' own streams, and looks
a moment later whether what was to be written is there. It acknowledges what is. All of it can be made again
from the journals, and nothing rests on it.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, TypeVar

import msgspec

from flyball.core.errors import FlyballError
from flyball.core.events import Event
from flyball.core.forms.semstreams import AnyPayload, LoopEntity
from flyball.orchestrate.keeping import Keeper
from flyball.orchestrate.machine import fold
from flyball.orchestrate.machines import is_flow
from flyball.orchestrate.projections import (
    Detail,
    LoopEnded,
    context_events,
    entity_of,
    loop_created,
    loop_ended,
    loop_entity,
    trajectory,
    violations,
)
from flyball.runtime.nats.blobs import Blobs
from flyball.runtime.nats.bus import Bus
from flyball.runtime.nats.deliveries import Delivery
from flyball.runtime.nats.entry import BLOB, LENGTH, decode_entry
from flyball.runtime.nats.fetching import Tail, tail
from flyball.runtime.nats.governance import make_governance, write_violation
from flyball.runtime.nats.hiring import Post
from flyball.runtime.nats.journal import NatsJournal
from flyball.runtime.nats.layout import make_bucket
from flyball.runtime.nats.messages.frame import write
from flyball.runtime.nats.naming import BEGIN, bucket_key, entries, journal_stream
from flyball.runtime.nats.stored import WRONG_LAST, Stored, not_taken
from flyball.runtime.nats.subjects import event_subject, reader_subject, violation_subject
from flyball.runtime.nats.wire import AGENT

PayloadT = TypeVar("PayloadT", bound=LoopEntity | LoopEnded)
LOOPS, TRAJECTORIES = "AGENT_LOOPS", "AGENT_TRAJECTORIES"
LARGE = "AGENT_TRAJECTORIES_LARGE"
"""The object store for trajectories that are too large for a message."""
_ROOM = 16_384
"""Bytes of a message that are left to its envelope, its headers and its subject."""
_LONGEST_RESULT = 65_536
_KNOWN = 2_000
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
        interval: float = 0.5,
        passing: float = 1.0,
        detail: Detail = "summary",
    ) -> None:
        """Nothing happens yet.

        Args:
            bus: where loops are told of.
            journal: where they are.
            hold: seconds after which a dead projector's work is given to another.
            interval: seconds after which it is looked whether an entry's loop was written down.
            passing: seconds between two writings of a loop that is on its way.
            detail: of trajectories; in full they have each request's messages, so that they grow with the
                square of a loop's turns.
        """
        self._bus = bus
        self._journal = journal
        self._interval = interval
        self._passing = passing
        self._detail: Detail = detail
        self._large = Blobs(bus.connection, journal.layout.replicas, LARGE)
        self._moved: dict[str, Keeper] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._sweeping: asyncio.Task[None] | None = None
        self._written: OrderedDict[str, Tail] = OrderedDict()
        """Where what was last written stands, so that it need not be asked for."""
        self._contexts: OrderedDict[str, int] = OrderedDict()
        """How many things were told of a loop's context."""
        self._violations: OrderedDict[str, int] = OrderedDict()
        """How many of a loop's violations were told."""
        self.posts = [
            Post(AGENT, self.kind, (reader_subject(self.kind),), hold=hold),
            *[
                Post(
                    journal_stream(number),
                    self.kind,
                    tuple([entries(number, kind, journal.layout.salt) for kind in _TOLD_BY]),
                    room=128,
                    hold=hold,
                    only_new=True,
                )
                for number in range(journal.partitions)
            ],
        ]

    async def set_up(self) -> None:
        """Make the buckets and the stream of violations, where they are missing.

        Raises:
            UserError: the server does not make one.
        """
        for name in (LOOPS, TRAJECTORIES):
            await make_bucket(self._bus.connection, name, self._journal.layout.replicas)
        await make_governance(self._bus.connection, self._journal.layout.replicas)

    # By whoever carries a loop on

    def moved(self, loop: Keeper, *, told: bool) -> None:
        """A loop has come further; `told`: it was begun, or something was said to it."""
        if told or loop.state.at == "done":
            self._moved.pop(loop.loop_id, None)
            task = asyncio.ensure_future(self._write_now(loop.loop_id, tuple(loop.events)))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
            return
        self._moved[loop.loop_id] = loop
        if self._sweeping is None:
            self._sweeping = asyncio.ensure_future(self._sweep())

    async def _write_now(self, loop_id: str, events: Sequence[Event]) -> None:
        with suppress(FlyballError):  # it is looked for again a moment later
            await self._write(loop_id, events)

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
                # What it tells and how long it is belong together: it goes on while the server is asked.
                data, length = _told(entity_of(loop.state), self._limit)[1], loop.length
                key = _loop_key(loop_id)
                with suppress(FlyballError):  # the next change tells it, or the end
                    known = self._written.get(key) or await self._tail(key)
                    if known.length:  # it is told of as created before anything else is
                        await self._tell_contexts(loop_id, loop.events)
                        await self._tell_violations(loop_id, loop.events)
                        await self._put(key, data, length)
            pause = max(self._passing, 9 * (time.monotonic() - began))

    async def aclose(self) -> None:
        """Let go of what was going to be written."""
        tasks = [*self._tasks, *([] if self._sweeping is None else [self._sweeping])]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    # For certain

    async def work(self, delivery: Delivery) -> None:
        """See to it that what an entry tells is written down."""
        await asyncio.sleep(self._interval)
        _, _, _, where, kind = delivery.subject.split(".")
        key = where.replace("~", "==")
        marker = f"$KV.{LOOPS}.{'COMPLETE_' if kind == _ENDED else ''}{key}"
        length = int(delivery.headers[LENGTH])
        known = self._written.get(marker)
        if known is None or known.length < length:
            known = await self._tail(marker)
        if known.length >= length:
            return
        blob = delivery.headers.get(BLOB)
        data = await self._journal.blob(blob, delivery.shown) if blob else delivery.data
        loop_id = decode_entry(data, delivery.shown).loop_id
        await self._write(loop_id, await self._journal.read(loop_id))

    async def _write(self, loop_id: str, events: Sequence[Event]) -> None:
        """Write down what a journal tells. What is written last says that the rest is there.

        A flow is none of SemStreams' loops; those under it are, and are told of like any others.
        """
        if is_flow(events):
            return
        state, entity, length = fold(events, f"loop {loop_id}"), loop_entity(events), len(events)
        key = _loop_key(loop_id)
        if key not in self._written and len(events) > 1:
            await self._tail(key)
        if not self._written.get(key, Tail()).length:
            await self._tell("created", loop_id, loop_created(state), f"{loop_id}/created", first=True)
        await self._tell_contexts(loop_id, events)
        await self._tell_violations(loop_id, events)
        writes = [self._put(key, _told(entity, self._limit)[1], length)]
        if state.at != "done":
            await asyncio.gather(*writes)
            return
        ended = loop_ended(state, entity.completed_at or state.started_at)
        assert ended is not None, "its outcome is decided"
        ended, data = _told(ended, self._limit)
        writes.append(self._keep_trajectory(bucket_key(loop_id), events))
        await asyncio.gather(*writes)
        # Told when it is written: who hears of it finds it there.
        await self._tell(entity.state, loop_id, ended, f"{loop_id}/{state.attempt}/ended")
        await self._put(f"$KV.{LOOPS}.COMPLETE_{bucket_key(loop_id)}", data, length)

    @property
    def _limit(self) -> int:
        return self._bus.connection.max_payload - _ROOM

    async def _tell(
        self, what: str, loop_id: str, payload: AnyPayload, name: str, *, first: bool = False
    ) -> None:
        where, data = event_subject(what, loop_id), write(payload, name)
        await self._bus.publish(where, data, name, loop_id=loop_id, first=first)

    async def _tell_contexts(self, loop_id: str, events: Sequence[Event]) -> None:
        """Tell what became of a loop's context since it was last told, by this process."""
        known = self._contexts.get(loop_id, 0)
        told = context_events(events)
        for number in range(known, len(told)):
            await self._tell("context", loop_id, told[number], f"{loop_id}/context/{number}")
        if len(told) > known:
            _remember(self._contexts, loop_id, len(told))

    async def _tell_violations(self, loop_id: str, events: Sequence[Event]) -> None:
        """Tell what filters found since it was last told here; what others told, the server knows."""
        known = self._violations.get(loop_id, 0)
        found = violations(events)
        for one in found[known:]:
            where, name = violation_subject(one.severity), f"violation/{one.id}"
            await self._bus.publish(where, write_violation(one), name, loop_id=loop_id, whole=True)
        if len(found) > known:
            _remember(self._violations, loop_id, len(found))

    async def _keep_trajectory(self, key: str, events: Sequence[Event]) -> None:
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
        connection = self._bus.connection
        known = self._written.get(subject) or Tail()
        while known.length < length:
            headers = {"Nats-Expected-Last-Subject-Sequence": str(known.sequence), LENGTH: str(length)}
            answer = msgspec.json.decode((await connection.request(subject, data, headers)).data, type=Stored)
            if answer.error is None:
                self._keep(subject, Tail(answer.seq, length, entries=None))
                return
            if answer.error.err_code != WRONG_LAST:
                raise not_taken(connection.identity, subject, answer.error)
            known = await self._tail(subject)

    async def _tail(self, subject: str) -> Tail:
        """What was written last, by whoever did."""
        known = await tail(self._bus.connection, f"KV_{subject.split('.', 2)[1]}", subject)
        self._keep(subject, known)
        return known

    def _keep(self, subject: str, known: Tail) -> None:
        self._written[subject] = known
        if len(self._written) > _KNOWN:
            self._written.popitem(last=False)


def _remember(kept: OrderedDict[str, int], loop_id: str, count: int) -> None:
    kept[loop_id] = count
    if len(kept) > _KNOWN:
        kept.popitem(last=False)


def _loop_key(loop_id: str) -> str:
    return f"$KV.{LOOPS}.{bucket_key(loop_id)}"


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
