"""NatsJournal: loops in JetStream, for as many machines as want to write and read them.

An append is one message. The server takes it only if the loop's last message is the one that the writer
knows: that is the compare-and-set, and nothing else here is relied upon. A writer who was not answered asks
again; if its message was taken the first time, the server, or the end of the loop, says so.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Coroutine, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar

import msgspec

from flyball.core.errors import JournalConflict, JournalUnreachable
from flyball.core.events import Event
from flyball.core.ids import new_id
from flyball.runtime.nats.begun import Begun
from flyball.runtime.nats.blobs import Blobs
from flyball.runtime.nats.connection import Connection, NatsOptions, connect
from flyball.runtime.nats.entry import BEFORE, BLOB, LENGTH, encode_entry, events_of
from flyball.runtime.nats.fetching import Tail, after, at_places, header, sequence, tail
from flyball.runtime.nats.layout import Layout, set_up
from flyball.runtime.nats.naming import BEGIN, LoopSubjects
from flyball.runtime.nats.server.running import meant
from flyball.runtime.nats.stored import WRONG_LAST, Stored, not_taken
from flyball.runtime.nats.watching import Watches

if TYPE_CHECKING:
    from nats.aio.msg import Msg

T = TypeVar("T")
_KNOWN = 2_000
"""How many loops' ends are kept in mind: a loop that is not among them costs one question more."""
_ROOM = 16_384
"""Bytes of a message that are left to its headers and its subject."""
_AT_ONCE = 100
"""How many loops are asked for their ends at once."""
_LOOK = 1.0
"""Seconds after which somebody who waits looks for himself."""


class NatsJournal:
    """Loops in JetStream. Made by `open`, or on a connection that somebody else closes.

    Durable means: as the server is. Our own has what it answered on its disk; so has a cluster whose
    `sync_interval` is `always`. Any other loses nothing unless all its machines lose their power at once.
    """

    def __init__(self, connection: Connection, layout: Layout) -> None:
        """Use what `set_up` found or made on this connection's server."""
        self.connection = connection
        self.layout = layout
        self.partitions = layout.partitions
        self._salt = layout.salt
        self._blobs = Blobs(connection, layout.replicas)
        self._read: OrderedDict[str, Tail] = OrderedDict()
        """How far loops were read, so that who follows one does not begin anew each time."""
        self._tails: OrderedDict[str, Tail] = OrderedDict()
        self._watches = Watches(connection)
        self._begun = Begun(connection, layout, self._entry)

    @classmethod
    async def open(cls, options: NatsOptions | None = None, layout: Layout | None = None) -> Self:
        """Connect to a server, and make there what is missing; `aclose` it after use.

        Without options it is that of $FLYBALL_NATS, or the one that `flyball up` runs here, or one at NATS'
        usual port of this machine.

        Raises:
            UserError, MissingExtra, JournalUnreachable: see `connect` and `set_up`.
        """
        options = options or meant() or NatsOptions()
        wanted = layout or Layout(options.partitions, options.replicas)
        connection = await connect(options)
        try:
            return cls(connection, await set_up(connection, wanted))
        except BaseException:
            await connection.aclose()
            raise

    async def aclose(self) -> None:
        """Close the connection."""
        await self.connection.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    # Writing

    async def append(self, loop_id: str, events: Sequence[Event], expected: int) -> int:
        """See `Journal.append`. One that is cancelled is decided before the cancellation goes on.

        Raises:
            JournalFull: there is no room for them; they may be appended when there is.
            JournalUnreachable: the server did not answer for as long as patience lasts. Whether the events
                were taken is not known; whoever reads the loop finds out.
        """
        subjects = LoopSubjects(loop_id, self.partitions, self._salt)
        known = self._tails.get(loop_id)
        if known is None or known.length != expected:
            known = await self._end(loop_id, subjects)
        if known.length != expected:
            raise _conflict(loop_id, expected, known.length)
        if not events:
            return expected
        return await _decided(self._put(loop_id, subjects, events, known))

    async def _put(self, loop_id: str, subjects: LoopSubjects, events: Sequence[Event], known: Tail) -> int:
        """Publish events after the entry that is known to be the last.

        Raises:
            JournalConflict: it is not.
        """
        data, length = encode_entry(loop_id, known.length, events), known.length + len(events)
        kind = type(events[-1]).__name__.lower() if known.length else BEGIN
        name = f"{subjects.token}/{known.length}/{new_id()}"
        headers = {
            "Nats-Msg-Id": name,
            "Nats-Expected-Last-Subject-Sequence": str(known.sequence),
            "Nats-Expected-Last-Subject-Sequence-Subject": subjects.all,
            LENGTH: str(length),
        }
        if before := known.before():
            headers[BEFORE] = before
        if len(data) + _ROOM > self.connection.max_payload:
            headers[BLOB] = await self._blobs.put(data)
            data = b""
        message = await self.connection.request(subjects.entry(kind), data, headers)
        answer = msgspec.json.decode(message.data, type=Stored)
        if answer.error is None:
            return self._learn(loop_id, known.then(answer.seq, length, name)).length
        if answer.error.err_code != WRONG_LAST:
            what = f"events of loop {loop_id!r}"
            code = answer.error.err_code
            raise not_taken(self.connection.identity, what, answer.error, loop_id=loop_id, code=code)
        end = await self._end(loop_id, subjects)
        if end.id == name:
            return length  # it was taken, and the answer was lost on its way
        raise _conflict(loop_id, known.length, end.length)

    # Reading

    def known_length(self, loop_id: str) -> int:
        """How many events a loop has, as far as it is known here: it may have more."""
        known = self._tails.get(loop_id)
        return 0 if known is None else known.length

    async def read(self, loop_id: str, start: int = 0) -> list[Event]:
        """See `Journal.read`."""
        subjects = LoopSubjects(loop_id, self.partitions, self._salt)
        place = self._read.get(loop_id)
        # An entry begins where the last one that was read ended, or all are read.
        reached = place if place is not None and place.length <= start else Tail()
        messages = await self._named(reached, loop_id, subjects)
        if messages is None:
            messages = await self._from(reached.sequence + 1, loop_id, subjects)
        if messages:
            _keep(self._read, loop_id, Tail(sequence(messages[-1]), _length(messages[-1])))
        wanted = [message for message in messages if _length(message) > start]
        return events_of([await self._entry(message) for message in wanted], loop_id, start)

    async def _named(self, reached: Tail, loop_id: str, subjects: LoopSubjects) -> list[Msg] | None:
        """A loop's entries after what was read, by the places that the last one names; None if it names none.

        Looking through a stream for a loop's entries takes the longer the more loops there are.
        """
        end = await self._end(loop_id, subjects)
        if end.length <= reached.length:
            return []
        if end.entries is None:
            return None
        places = tuple([place for place in end.entries if place > reached.sequence])
        return await at_places(self.connection, subjects.stream, places)

    async def _from(self, first: int, loop_id: str, subjects: LoopSubjects) -> list[Msg]:
        """The entries of a loop from a place in the stream on, as far as they are known to be there."""
        until = time.monotonic() + self.connection.patience
        while True:
            messages = await after(self.connection, subjects.stream, subjects.all, first)
            length = _length(messages[-1]) if messages else 0
            known = self._tails.get(loop_id)
            if known is None or length >= known.length or known.sequence < first:
                return messages
            # A copy that is behind has answered: what we know to be there must be found.
            if time.monotonic() >= until:
                raise JournalUnreachable(
                    f"loop {loop_id!r} has {known.length} events, and only {length} can be read: is the "
                    "cluster whole?",
                    loop_id=loop_id,
                )
            await asyncio.sleep(0.02)

    async def wait(self, loop_id: str, length: int, timeout: float | None = None) -> bool:  # noqa: ASYNC109
        """See `Journal.wait`."""
        subjects = LoopSubjects(loop_id, self.partitions, self._salt)
        if (await self._end(loop_id, subjects)).length > length:
            return True
        if timeout is not None and timeout <= 0:
            return False
        time_out = asyncio.timeout(timeout)
        try:
            async with time_out, self._watches.watching(loop_id, subjects) as watch:
                watch.learn((await self._end(loop_id, subjects)).length)
                while watch.length <= length:
                    await watch.grown(_LOOK)
                    if watch.length <= length:
                        watch.learn((await self._end(loop_id, subjects)).length)
        except TimeoutError:
            if not time_out.expired():
                raise  # it is somebody else's
            return False
        return True

    async def loops(self, before: str = "", limit: int | None = None) -> list[str]:
        """See `Journal.loops`. The first time all beginnings are read, later those that are new."""
        return await self._begun.newest(before, limit)

    async def sizes(self, loop_ids: Sequence[str]) -> list[int]:
        """See `Journal.sizes`: a question a loop, many of them at once."""
        found: list[int] = []
        for first in range(0, len(loop_ids), _AT_ONCE):
            names = loop_ids[first : first + _AT_ONCE]
            ends = [self._end(name, LoopSubjects(name, self.partitions, self._salt)) for name in names]
            found += [end.length for end in await asyncio.gather(*ends)]
        return found

    async def blob(self, name: str, place: str) -> bytes:
        """An entry that was too large for a message; raises as `read` does."""
        return await self._blobs.get(name, place)

    async def _entry(self, message: Msg) -> tuple[bytes, str]:
        """A message's entry, from wherever it is, and its place."""
        place = f"{header(message, 'Nats-Stream')} {header(message, 'Nats-Sequence')}"
        blob = header(message, BLOB)
        return (await self._blobs.get(blob, place) if blob else message.data), place

    async def _end(self, loop_id: str, subjects: LoopSubjects) -> Tail:
        return self._learn(loop_id, await tail(self.connection, subjects.stream, subjects.all))

    def _learn(self, loop_id: str, end: Tail) -> Tail:
        """Keep a loop's end in mind, if it is news; gives it."""
        known = self._tails.get(loop_id)
        if end.length and (known is None or known.length <= end.length):
            _keep(self._tails, loop_id, end)
            self._watches.learn(loop_id, end.length)
        return end


def _length(message: Msg) -> int:
    """How many events a loop has with an entry."""
    return int(header(message, LENGTH))


def _keep(tails: OrderedDict[str, Tail], loop_id: str, end: Tail) -> None:
    """Keep an end in mind, and forget the one that was not asked for for longest."""
    tails[loop_id] = end
    tails.move_to_end(loop_id)
    if len(tails) > _KNOWN:
        tails.popitem(last=False)


async def _decided(work: Coroutine[Any, Any, T]) -> T:
    """Do it to its end, also if the caller is cancelled; then the cancellation goes on."""
    task = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        # Who is cancelled again does not wait for it.
        task.add_done_callback(_seen)
        await asyncio.wait([task])
        raise


def _seen(task: asyncio.Task[Any]) -> None:
    """Look at what a task failed with: the caller learns of the cancellation, and of nothing else."""
    if not task.cancelled():
        task.exception()


def _conflict(loop_id: str, expected: int, actual: int) -> JournalConflict:
    return JournalConflict(
        f"loop {loop_id!r} has {actual} events, not {expected}: somebody else appended to it",
        loop_id=loop_id,
        expected=expected,
        actual=actual,
    )
